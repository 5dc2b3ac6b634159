"""ConsumerProtocol: a consumer's subscription and assignment, around the user data of its assignor.

Newer versions only append fields, so bytes behind the known fields are ignored.
"""

from dataclasses import dataclass
from typing import Final

from rackspan.kafka_bytes import ByteReader
from rackspan.model.ids import RackId, TopicPartition
from rackspan.streams.user_data.java_bytes import invalid_user_data

WITH_RACK: Final = 3
"""The first version of a subscription with `client.rack` (KIP-881, Kafka 3.4)."""


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """`rack` is `client.rack`, None where it is unset or `version` has no field for it."""

    version: int
    user_data: bytes
    rack: RackId | None = None


@dataclass(frozen=True, slots=True)
class ConsumerAssignment:
    """The partitions a consumer reads, and the user data of its assignor."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes


def decode_consumer_subscription(data: bytes, label: str) -> ConsumerSubscription:
    """Decode a member's metadata. Errors: InvalidGroup."""
    with invalid_user_data(label):
        return _read_subscription(ByteReader(data))


def _read_subscription(reader: ByteReader) -> ConsumerSubscription:
    version = reader.int16()
    reader.array(reader.string, 2)
    user_data = reader.nullable_byte_string() or b""
    if version >= 1:
        _topic_partitions(reader)
    if version >= 2:
        reader.int32()
    rack = reader.nullable_string() if version >= WITH_RACK else None
    # An empty client.rack is the same as none (KIP-392).
    return ConsumerSubscription(version, user_data, RackId(rack) if rack else None)


def decode_consumer_assignment(data: bytes, label: str) -> ConsumerAssignment:
    """Decode a member's assignment. Errors: InvalidGroup."""
    with invalid_user_data(label):
        reader = ByteReader(data)
        reader.int16()
        return ConsumerAssignment(_topic_partitions(reader), reader.nullable_byte_string() or b"")


def _topic_partitions(reader: ByteReader) -> tuple[TopicPartition, ...]:
    partitions: list[TopicPartition] = []
    for _ in range(reader.elements(reader.int32(), 6)):
        topic = reader.string()
        partitions += [TopicPartition(topic, reader.int32()) for _ in range(reader.elements(reader.int32(), 4))]
    return tuple(partitions)
