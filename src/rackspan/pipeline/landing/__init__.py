"""The landing tables: snapshots as they were collected, each stored completely or not at all, each once.

Begin with store.py. rows.py converts a snapshot to Arrow, markers.py finds stored snapshots in the marker table `snapshots`,
read.py reads a stored snapshot, or the cluster members of many. No Spark.
"""
