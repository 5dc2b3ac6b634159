"""Producers that write to partitions led in their own rack (KIP-1123's idea): confluent-kafka, kafka-python and aiokafka.

Begin with partitioner.py, which decides and does no I/O; the others give it each client's metadata. Records with a key, and
records whose partition the caller names, go where they would go without it. This package imports no client: each is needed by
its own module only.
"""
