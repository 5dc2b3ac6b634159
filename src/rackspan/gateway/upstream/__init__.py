"""What the gateway reads of the cluster, and the config topic it writes, on connections of its own.

Begin with guard_readers.py. It judges nothing: acks/verification.py does.
"""
