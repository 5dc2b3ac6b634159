"""The records of `__transaction_state`, in Kafka's own formats.

Key: TransactionLogKey, version 0. Value: TransactionLogValue, read in versions 0 and 1; written as version 1, which
Kafka 4 writes once transaction.version is 2 (KIP-890), so that an epoch's overflow and the client's version survive a
change of coordinator. Source: the JSON schemas of those names in Kafka's transaction coordinator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rackspan.errors import InvalidRecord
from rackspan.kafka_bytes import (
    COMPACT_NULL,
    NO_TAGS,
    ByteReader,
    compact_array,
    compact_string,
    int8,
    int16,
    int32,
    int64,
    malformed_as,
    string,
    tagged_fields,
)

KEY_VERSION: Final = 0
VALUE_VERSION: Final = 1
NO_PRODUCER_ID: Final = -1
_PREVIOUS_PRODUCER_ID, _NEXT_PRODUCER_ID, _CLIENT_VERSION = range(3)


class TransactionState(IntEnum):
    """The state of a transaction, by the numbers in the record."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


@dataclass(frozen=True, slots=True)
class TransactionLogValue:
    """One transactional id: its producer, and the partitions of the transaction under way. Times are in ms."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[tuple[str, tuple[int, ...]], ...]
    updated_ms: int
    started_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0


def encode_key(transactional_id: str) -> bytes:
    return int16(KEY_VERSION) + string(transactional_id)


@malformed_as(InvalidRecord)
def decode_key(data: bytes) -> str | None:
    """None for a key of an unknown kind, which a reader skips."""
    reader = ByteReader(data)
    return reader.string() if reader.int16() == KEY_VERSION else None


def encode_value(value: TransactionLogValue) -> bytes:
    return (
        int16(VALUE_VERSION)
        + int64(value.producer_id)
        + int16(value.producer_epoch)
        + int32(value.timeout_ms)
        + int8(value.state)
        + _encode_partitions(value)
        + int64(value.updated_ms)
        + int64(value.started_ms)
        + tagged_fields(_tags(value))
    )


def _encode_partitions(value: TransactionLogValue) -> bytes:
    # Kafka writes null, not an empty array, before a transaction's first partition.
    if value.state is TransactionState.EMPTY:
        return COMPACT_NULL
    return compact_array(
        compact_string(topic) + compact_array(map(int32, partitions)) + NO_TAGS
        for topic, partitions in value.partitions
    )


def _tags(value: TransactionLogValue) -> dict[int, bytes]:
    tags = {}
    if value.previous_producer_id != NO_PRODUCER_ID:
        tags[_PREVIOUS_PRODUCER_ID] = int64(value.previous_producer_id)
    if value.next_producer_id != NO_PRODUCER_ID:
        tags[_NEXT_PRODUCER_ID] = int64(value.next_producer_id)
    if value.client_version != 0:
        tags[_CLIENT_VERSION] = int16(value.client_version)
    return tags


@malformed_as(InvalidRecord)
def decode_value(data: bytes) -> TransactionLogValue:
    """Raises InvalidRecord for a version that Kafka has never written, or an unknown state."""
    reader = ByteReader(data)
    version = reader.int16()
    if version not in (0, VALUE_VERSION):
        raise InvalidRecord(f"TransactionLogValue of version {version}: versions 0-{VALUE_VERSION} can be read")
    producer_id, epoch, timeout_ms = reader.int64(), reader.int16(), reader.int32()
    state = _state(reader.int8())
    partitions = _flexible_partitions(reader) if version == VALUE_VERSION else _partitions(reader)
    updated_ms, started_ms = reader.int64(), reader.int64()
    tags = reader.tagged_fields() if version == VALUE_VERSION else {}
    return TransactionLogValue(
        *(producer_id, epoch, timeout_ms, state, partitions, updated_ms, started_ms),
        previous_producer_id=_tag(tags, _PREVIOUS_PRODUCER_ID, ByteReader.int64, NO_PRODUCER_ID),
        next_producer_id=_tag(tags, _NEXT_PRODUCER_ID, ByteReader.int64, NO_PRODUCER_ID),
        client_version=_tag(tags, _CLIENT_VERSION, ByteReader.int16, 0),
    )


def _tag(tags: dict[int, bytes], tag: int, read: Callable[[ByteReader], int], default: int) -> int:
    return read(ByteReader(tags[tag])) if tag in tags else default


def _state(number: int) -> TransactionState:
    try:
        return TransactionState(number)
    except ValueError as failure:
        raise InvalidRecord(f"transaction state {number}: states 0-7 are known") from failure


def _partitions(reader: ByteReader) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(reader.nullable_array(lambda: (reader.string(), tuple(reader.array(reader.int32)))) or ())


def _flexible_partitions(reader: ByteReader) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple(reader.compact_nullable_array(lambda: _flexible_topic(reader)) or ())


def _flexible_topic(reader: ByteReader) -> tuple[str, tuple[int, ...]]:
    topic = reader.compact_string(), tuple(reader.compact_array(reader.int32))
    reader.tagged_fields()
    return topic


def grouped(partitions: Sequence[tuple[str, int]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """(topic, partition) pairs in the record's form: by topic, both in order, so that equal sets give equal bytes."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return tuple((topic, tuple(numbers)) for topic, numbers in topics.items())
