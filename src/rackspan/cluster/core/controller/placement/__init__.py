"""Replica placement in the controller: which brokers get the replicas of new partitions.

The cluster's placer is placement/cluster_placer.py, and the algorithms are beside it.
"""
