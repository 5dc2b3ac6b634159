"""The sources of snapshots: a running cluster, a JSON file, or a folder of Parquet files; and racks from elsewhere.

Begin with live/cluster.py and snapshot_file.py; rack_locator.py is the interface for racks that brokers do not register.
What is returned is a ClusterSnapshot, marked partial where something could not be
read. This package judges nothing and never writes to a cluster.
Depends on: audit, client, clients, kafka_bytes, model, plan, traffic, wire.
"""
