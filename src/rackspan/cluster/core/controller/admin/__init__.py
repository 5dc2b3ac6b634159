"""The administrative requests to the controller: topics, partitions, configs, reassignments, producer ids, the quorum.

One module a kind of request; each validates it whole and writes metadata records. Nothing here contacts a broker.
"""
