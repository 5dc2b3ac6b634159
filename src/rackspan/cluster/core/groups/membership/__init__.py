"""Members of a group: joins, syncs, heartbeats, and the rebalances they cause.

Begin with rebalance.py (when a rebalance begins and ends), then joins.py. Nothing here assigns a partition: the group's leader does.
"""
