"""Changes to a running cluster: a topic, partitions, topic configs. Each is one request, and Kafka says yes or no to it.

Begin with changes.py. This room decides nothing: what to write arrives as values, and who calls it has been told to by
`--apply`. Nothing is tried twice, since a change that timed out may have been made; it says so instead.
"""

from rackspan.apply.changes import alter_topic_configs, create_partitions, create_topic

__all__ = ["alter_topic_configs", "create_partitions", "create_topic"]
