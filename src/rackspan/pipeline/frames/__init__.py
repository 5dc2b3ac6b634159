"""Spark data frames: small functions from frame to frame, each of which names its grain.

Begin with inputs.py (what a run reads), then requirements.py and durability.py: batches.py passes Arrow batches to the
functions of rackspan.audit, and Spark joins, groups and sorts. bits/ computes two tables in Spark's own columns where brokers
and racks fit into bits. `snapshot` in a frame is the number of a snapshot within its run, a smaller key than its cluster
and time.
"""
