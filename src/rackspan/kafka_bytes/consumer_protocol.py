"""ConsumerProtocol: a consumer's subscription and assignment, around the user data of its assignor.

Newer versions only append fields, so bytes behind the known fields are ignored. Errors: MalformedBytes.
"""

from dataclasses import dataclass
from typing import Final

from rackspan.kafka_bytes.primitives import ByteReader

WITH_RACK: Final = 3
"""The first version of a subscription with `client.rack` (KIP-881, Kafka 3.4)."""

Partitions = tuple[tuple[str, int], ...]
"""Topics and partitions, in the order of the bytes."""


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """`rack` is `client.rack`, None if it is unset or `version` has no field for it."""

    version: int
    topics: tuple[str, ...]
    user_data: bytes
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerAssignment:
    """The partitions a consumer reads, and the user data of its assignor."""

    partitions: Partitions
    user_data: bytes


def decode_subscribed_topics(data: bytes) -> tuple[str, ...]:
    """The topics of a member's metadata. As Kafka's coordinator does, it reads version 0 only, with which all others begin."""
    reader = ByteReader(data)
    reader.int16()
    return _first_fields(reader)[0]


def decode_consumer_subscription(data: bytes) -> ConsumerSubscription:
    """Decode a member's metadata (ConsumerProtocolSubscription)."""
    reader = ByteReader(data)
    version = reader.int16()
    topics, user_data = _first_fields(reader)
    if version >= 1:
        _partitions(reader)
    if version >= 2:
        reader.int32()
    rack = reader.nullable_string() if version >= WITH_RACK else None
    # An empty client.rack is the same as none (KIP-392).
    return ConsumerSubscription(version, topics, user_data, rack or None)


def decode_consumer_assignment(data: bytes) -> ConsumerAssignment:
    """Decode a member's assignment (ConsumerProtocolAssignment)."""
    reader = ByteReader(data)
    reader.int16()
    return ConsumerAssignment(_partitions(reader), reader.nullable_byte_string() or b"")


def _first_fields(reader: ByteReader) -> tuple[tuple[str, ...], bytes]:
    return tuple(reader.array(reader.string, 2)), reader.nullable_byte_string() or b""


def _partitions(reader: ByteReader) -> Partitions:
    partitions: list[tuple[str, int]] = []
    for _ in range(reader.elements(reader.int32(), 6)):
        topic = reader.string()
        partitions += [(topic, reader.int32()) for _ in range(reader.elements(reader.int32(), 4))]
    return tuple(partitions)
