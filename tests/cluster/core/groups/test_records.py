"""The records of `__consumer_offsets`, held against Kafka's own classes both ways."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.cluster.core.groups import records
from rackspan.cluster.core.groups.records import GroupMetadataValue, MemberMetadata, OffsetCommitValue
from rackspan.errors import InvalidRecord
from tests.cluster.core.groups import record_strategies as drawn
from tests.compat import coordinator_records as kafka
from tests.examples_of import examples_of

MANY = 200

T = TypeVar("T")


@given(drawn.KEYS)
def test_a_key_is_read_as_it_was_written(key: records.Key) -> None:
    assert records.decode_key(records.encode_key(key)) == key


@given(drawn.OFFSETS)
def test_an_offset_is_read_as_it_was_written(value: OffsetCommitValue) -> None:
    assert records.decode_offset(records.encode_offset(value)) == value


@given(drawn.GROUPS)
def test_a_group_is_read_as_it_was_written(value: GroupMetadataValue) -> None:
    assert records.decode_group(records.encode_group(value)) == value


GROUP = GroupMetadataValue(
    "consumer", 7, "range", "m-1", 99, (MemberMetadata("m-1", "i", "c", "/127.0.0.1", 300, 45, b"\1\2", b"\3"),)
)
GROUP_BY_VERSION = [
    "00000008636f6e73756d657200000007000572616e676500036d2d310000000100036d2d31000163000a2f3132372e302e302e31"
    "0000002d0000000201020000000103",
    "00010008636f6e73756d657200000007000572616e676500036d2d310000000100036d2d31000163000a2f3132372e302e302e31"
    "0000012c0000002d0000000201020000000103",
    "00020008636f6e73756d657200000007000572616e676500036d2d3100000000000000630000000100036d2d31000163000a2f31"
    "32372e302e302e310000012c0000002d0000000201020000000103",
    "00030008636f6e73756d657200000007000572616e676500036d2d3100000000000000630000000100036d2d31000169000163"
    "000a2f3132372e302e302e310000012c0000002d0000000201020000000103",
    "000409636f6e73756d6572000000070672616e6765046d2d31000000000000006302046d2d31026902630b2f3132372e302e302e31"
    "0000012c0000002d03010202030000",
]
OFFSET = OffsetCommitValue(5, 2, "x", 99)
OFFSET_BY_VERSION = [
    "000000000000000000050001780000000000000063",
    "0001000000000000000500017800000000000000630000000000000007",
    "000200000000000000050001780000000000000063",
    "00030000000000000005000000020001780000000000000063",
    "00040000000000000005000000020278000000000000006300",
]
"""As Kafka 4.1's classes wrote them (KafkaCoordinatorRecords.java), a version after the other."""


@pytest.mark.parametrize("version", range(5))
def test_what_kafka_wrote_in_any_version_is_read(version: int) -> None:
    assert records.decode_group(bytes.fromhex(GROUP_BY_VERSION[version])) == as_version(GROUP, version)
    expected = OFFSET if version >= 3 else replace(OFFSET, leader_epoch=-1)
    assert records.decode_offset(bytes.fromhex(OFFSET_BY_VERSION[version])) == expected


def test_a_key_of_a_newer_group_type_is_passed_by() -> None:
    assert records.decode_key(b"\x00\x03\x00\x01g") is None


@pytest.mark.parametrize("decode", [records.decode_offset, records.decode_group])
def test_a_value_of_an_unknown_version_is_refused(decode: Callable[[bytes], object]) -> None:
    with pytest.raises(InvalidRecord, match="of version 5: versions 0-4"):
        decode(b"\x00\x05" + bytes(40))


@given(drawn.GROUPS, st.data())
def test_no_cut_group_is_read(value: GroupMetadataValue, data: st.DataObject) -> None:
    whole = records.encode_group(value)
    with pytest.raises(InvalidRecord):
        records.decode_group(whole[: data.draw(st.integers(0, len(whole) - 1))])


@pytest.mark.java
def test_kafka_writes_and_reads_the_same_keys() -> None:
    keys = examples_of(drawn.KEYS, MANY)
    ours = [records.encode_key(key) for key in keys]
    named = [drawn.key_json(key) for key in keys]
    assert kafka.write([(kind, 0, fields) for kind, fields in named]) == ours
    read = kafka.read([(kind, data) for (kind, _), data in zip(named, ours, strict=True)])
    assert [fields for _, fields in read] == [fields for _, fields in named]


@pytest.mark.java
def test_kafka_writes_and_reads_the_same_offsets() -> None:
    values = examples_of(drawn.OFFSETS, MANY)
    held_against_kafka("OffsetCommitValue", values, records.encode_offset, drawn.offset_json)


@pytest.mark.rest
@pytest.mark.java
def test_kafka_writes_and_reads_the_same_groups() -> None:
    values = examples_of(drawn.GROUPS, MANY)
    held_against_kafka("GroupMetadataValue", values, records.encode_group, drawn.group_json)


def held_against_kafka(
    kind: str, values: list[T], encode: Callable[[T], bytes], fields: Callable[[T, int], dict[str, Any]]
) -> None:
    ours = [encode(value) for value in values]
    version = records.VALUE_VERSION
    named = [fields(value, version) for value in values]
    assert kafka.write([(kind, version, each) for each in named]) == ours
    assert kafka.read([(kind, data) for data in ours]) == [(version, each) for each in named]


@pytest.mark.java
def test_offsets_of_every_version_of_kafka_are_read() -> None:
    values = examples_of(drawn.OFFSETS, MANY)
    cases = [(value, version) for value in values for version in range(5)]
    written = kafka.write([("OffsetCommitValue", v, drawn.offset_json(value, v)) for value, v in cases])
    expected = [value if v >= 3 else replace(value, leader_epoch=-1) for value, v in cases]
    assert [records.decode_offset(data) for data in written] == expected


@pytest.mark.java
def test_groups_of_every_version_of_kafka_are_read() -> None:
    values = examples_of(drawn.GROUPS, MANY)
    cases = [(value, version) for value in values for version in range(5)]
    written = kafka.write([("GroupMetadataValue", v, drawn.group_json(value, v)) for value, v in cases])
    assert [records.decode_group(data) for data in written] == [as_version(value, v) for value, v in cases]


def as_version(value: GroupMetadataValue, version: int) -> GroupMetadataValue:
    """What is left of a group in an older format."""
    members = value.members
    if version < 1:
        members = tuple(replace(m, rebalance_timeout_ms=m.session_timeout_ms) for m in members)
    if version < 3:
        members = tuple(replace(m, group_instance_id=None) for m in members)
    return replace(value, members=members, state_timestamp_ms=value.state_timestamp_ms if version >= 2 else -1)
