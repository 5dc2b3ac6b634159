"""The Spark data source "rackspan-kafka": each task reads the replica in its own executor's rack. It writes to Kafka too.

Begin with data_source.py (what Spark calls), then ranges.py (which offsets), reading/progress.py (which broker, and what a response
means), records/columns.py (bytes to columns) and writing/sender.py (rows to Kafka). It joins no consumer group.
Depends on: acks, client, kafka_bytes, model, producers, wire.
"""
