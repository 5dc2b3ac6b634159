"""The sink: rows written to Kafka by a Spark task. Begin with sender.py; writer.py is what Spark calls on the driver.

It never decides when a record is acknowledged: `producers` does.
"""
