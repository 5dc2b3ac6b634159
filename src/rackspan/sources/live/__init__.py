"""Reading a running cluster over Kafka's protocol: a snapshot of it, or one of its consumer groups.

Begin with cluster.py (a snapshot) or groups.py. The requests are those of client/. Nothing here writes to a cluster.
"""
