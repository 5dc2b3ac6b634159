"""The Spark data source "rackspan-kafka": each task reads the replica in its own executor's rack.

Begin with data_source.py (what Spark calls), then ranges.py (which offsets), range_progress.py (which broker, and what a response
means) and record_columns.py (bytes to columns). It joins no consumer group, commits no offset and writes nothing to Kafka.
"""
