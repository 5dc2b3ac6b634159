"""What any consumer says when it joins, and what it is told, around the user data of its assignor (ConsumerProtocol).

Written so that a newer version only adds at the end: what is behind the fields we know is left alone.
"""

from dataclasses import dataclass
from typing import Final

from rackspan.model.ids import RackId
from rackspan.streams.user_data.assignment_info import TopicPartition
from rackspan.streams.user_data.java_bytes import JavaBytes

WITH_RACK: Final = 3
"""The version of a subscription that tells `client.rack` (KIP-881, Kafka 3.4)."""

_NULL: Final = -1


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """`rack` is `client.rack`, None where it is unset or `version` is too old to tell it."""

    version: int
    user_data: bytes
    rack: RackId | None = None


@dataclass(frozen=True, slots=True)
class ConsumerAssignment:
    """The partitions a consumer reads, and what its assignor adds."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes


def decode_consumer_subscription(data: bytes, whose: str) -> ConsumerSubscription:
    """Read a member's metadata. Errors: InvalidGroup."""
    reader = JavaBytes(data, whose)
    version = reader.int16()
    for _ in range(reader.count(2)):
        reader.string()
    user_data = _nullable_bytes(reader)
    if version >= 1:
        _topic_partitions(reader)
    if version >= 2:
        reader.int32()
    rack = reader.nullable_string() if version >= WITH_RACK else None
    # An empty client.rack is the same as none (KIP-392).
    return ConsumerSubscription(version, user_data, RackId(rack) if rack else None)


def decode_consumer_assignment(data: bytes, whose: str) -> ConsumerAssignment:
    """Read a member's assignment. Errors: InvalidGroup."""
    reader = JavaBytes(data, whose)
    reader.int16()
    return ConsumerAssignment(_topic_partitions(reader), _nullable_bytes(reader))


def _topic_partitions(reader: JavaBytes) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    for _ in range(reader.count(6)):
        topic = reader.string()
        found += [(topic, reader.int32()) for _ in range(reader.count(4))]
    return tuple(found)


def _nullable_bytes(reader: JavaBytes) -> bytes:
    length = reader.int32()
    return b"" if length == _NULL else reader.raw(length)
