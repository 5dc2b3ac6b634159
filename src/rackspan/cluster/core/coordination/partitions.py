"""The partition of a coordinator's topic for a group or a transactional id. Its leader is the coordinator."""

from typing import Final

from rackspan.kafka_bytes.java_hash import java_hash

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


def partition_for(key: str, partitions: int) -> int:
    """Kafka's Utils.abs(hash) % partitions, where abs of the least int32 is 0."""
    code = java_hash(key)
    return (0 if code == -(2**31) else abs(code)) % partitions
