"""The content of the report on a warehouse, which rackspan.report draws.

Begin with from_warehouse.py. summaries.py and aggregates.py sum up the tables with Arrow, batch by batch, and traffic_sums.py the part
that needs readings. No rule is defined here, and nothing needs Spark.
"""
