"""Reads of the cluster by the gateway itself, and the config topic that it writes.

Begin with guard_readers.py. It judges nothing: acks/verification.py does.
"""
