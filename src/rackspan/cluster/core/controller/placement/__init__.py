"""Replica placement in the controller: which brokers get the replicas of new partitions.

Begin with new_assignments.py. The algorithms themselves are in rackspan.placement.
"""
