"""The records of `__consumer_offsets`, in Kafka's own formats.

Keys: OffsetCommitKey (version 1; 0 is read too) and GroupMetadataKey (version 2): the key's leading int16 says which of
the two follows. Values are written as Kafka 4 writes them (version 3 of both) and read in every version Kafka ever wrote
(0-4). A null value is a tombstone. Source: the JSON schemas of those four names in Kafka's group coordinator.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from rackspan.errors import InvalidRecord
from rackspan.kafka_bytes import (
    ByteReader,
    array,
    byte_string,
    int16,
    int32,
    int64,
    malformed_as,
    nullable_string,
    string,
)

OFFSET_COMMIT_KEY_VERSION: Final = 1
GROUP_METADATA_KEY_VERSION: Final = 2
VALUE_VERSION: Final = 3
_FLEXIBLE_VERSION: Final = 4


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    group_id: str


Key: TypeAlias = OffsetCommitKey | GroupMetadataKey


@dataclass(frozen=True, slots=True)
class OffsetCommitValue:
    """A committed offset. `leader_epoch` is -1 if the client did not send one; times are in ms."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """A group at the start of a generation. `protocol` and `leader` are None while it has no members."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberMetadata, ...] = ()


def encode_key(key: Key) -> bytes:
    match key:
        case OffsetCommitKey():
            return int16(OFFSET_COMMIT_KEY_VERSION) + string(key.group_id) + string(key.topic) + int32(key.partition)
        case GroupMetadataKey():
            return int16(GROUP_METADATA_KEY_VERSION) + string(key.group_id)


@malformed_as(InvalidRecord)
def decode_key(data: bytes) -> Key | None:
    """None for a key of another kind: Kafka's newer group types share the topic, and a reader skips them."""
    reader = ByteReader(data)
    version = reader.int16()
    if version in (0, OFFSET_COMMIT_KEY_VERSION):
        return OffsetCommitKey(reader.string(), reader.string(), reader.int32())
    if version == GROUP_METADATA_KEY_VERSION:
        return GroupMetadataKey(reader.string())
    return None


def encode_offset(value: OffsetCommitValue) -> bytes:
    return (
        int16(VALUE_VERSION)
        + int64(value.offset)
        + int32(value.leader_epoch)
        + string(value.metadata)
        + int64(value.commit_timestamp_ms)
    )


@malformed_as(InvalidRecord)
def decode_offset(data: bytes) -> OffsetCommitValue:
    """Raises InvalidRecord for a version that Kafka has never written."""
    reader = ByteReader(data)
    version = _version(reader, "OffsetCommitValue")
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= VALUE_VERSION else -1
    metadata = reader.compact_string() if version >= _FLEXIBLE_VERSION else reader.string()
    return OffsetCommitValue(offset, leader_epoch, metadata, reader.int64())


def encode_group(value: GroupMetadataValue) -> bytes:
    return (
        int16(VALUE_VERSION)
        + string(value.protocol_type)
        + int32(value.generation)
        + nullable_string(value.protocol)
        + nullable_string(value.leader)
        + int64(value.state_timestamp_ms)
        + array(_encode_member(member) for member in value.members)
    )


def _encode_member(member: MemberMetadata) -> bytes:
    return (
        string(member.member_id)
        + nullable_string(member.group_instance_id)
        + string(member.client_id)
        + string(member.client_host)
        + int32(member.rebalance_timeout_ms)
        + int32(member.session_timeout_ms)
        + byte_string(member.subscription)
        + byte_string(member.assignment)
    )


@malformed_as(InvalidRecord)
def decode_group(data: bytes) -> GroupMetadataValue:
    """Raises InvalidRecord for a version that Kafka has never written."""
    reader = ByteReader(data)
    version = _version(reader, "GroupMetadataValue")
    if version >= _FLEXIBLE_VERSION:
        return _flexible_group(reader)
    return GroupMetadataValue(
        protocol_type=reader.string(),
        generation=reader.int32(),
        protocol=reader.nullable_string(),
        leader=reader.nullable_string(),
        state_timestamp_ms=reader.int64() if version >= 2 else -1,
        members=tuple(reader.array(lambda: _member(reader, version))),
    )


def _flexible_group(reader: ByteReader) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=reader.compact_string(),
        generation=reader.int32(),
        protocol=reader.compact_nullable_string(),
        leader=reader.compact_nullable_string(),
        state_timestamp_ms=reader.int64(),
        members=tuple(reader.compact_array(lambda: _flexible_member(reader))),
    )


def _member(reader: ByteReader, version: int) -> MemberMetadata:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    # Version 0 knew one timeout only, and it comes last.
    timeouts = [reader.int32() for _ in range(2 if version >= 1 else 1)]
    return MemberMetadata(
        *(member_id, instance_id, client_id, client_host, timeouts[0], timeouts[-1]),
        subscription=reader.byte_string(),
        assignment=reader.byte_string(),
    )


def _flexible_member(reader: ByteReader) -> MemberMetadata:
    member = MemberMetadata(
        member_id=reader.compact_string(),
        group_instance_id=reader.compact_nullable_string(),
        client_id=reader.compact_string(),
        client_host=reader.compact_string(),
        rebalance_timeout_ms=reader.int32(),
        session_timeout_ms=reader.int32(),
        subscription=reader.compact_byte_string(),
        assignment=reader.compact_byte_string(),
    )
    reader.tagged_fields()
    return member


def _version(reader: ByteReader, name: str) -> int:
    version = reader.int16()
    if not 0 <= version <= _FLEXIBLE_VERSION:
        raise InvalidRecord(f"{name} of version {version}: versions 0-{_FLEXIBLE_VERSION} can be read")
    return version
