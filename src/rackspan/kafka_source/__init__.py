"""The Spark data source "rackspan-kafka": each task reads the replica in its own executor's rack.

Begin with data_source.py.
"""
