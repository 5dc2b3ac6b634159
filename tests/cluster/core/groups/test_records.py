"""The records of `__consumer_offsets`, held against Kafka's own classes both ways."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.cluster.core.groups import records
from rackspan.cluster.core.groups.records import GroupMetadataValue, OffsetCommitValue
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
