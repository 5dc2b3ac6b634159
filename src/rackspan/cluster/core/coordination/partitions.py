"""The partition of a coordinator's topic for a group or a transactional id. Its leader is the coordinator."""

from typing import Final

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})


def java_hash(text: str) -> int:
    """Java's String.hashCode as a signed int32: over UTF-16 code units, so that an emoji counts twice."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8) + units[at + 1]) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code


def partition_for(key: str, partitions: int) -> int:
    """Kafka's Utils.abs(hash) % partitions, where abs of the least int32 is 0."""
    code = java_hash(key)
    return (0 if code == -(2**31) else abs(code)) % partitions
