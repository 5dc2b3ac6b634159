"""Primitive types against the examples of the protocol guide. The reader gives back what is written, and raises MalformedBytes alone for
whatever is cut or damaged."""

from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import InvalidRecord, MalformedBytes
from rackspan.kafka_bytes import ByteReader, malformed_as
from rackspan.kafka_bytes import primitives as writer
from rackspan.kafka_bytes.primitives import (
    array,
    byte_string,
    compact_array,
    compact_string,
    nullable_string,
    tagged_fields,
    unsigned_varint,
    varint,
)

VARINTS = [(0, "00"), (-1, "01"), (1, "02"), (-2, "03"), (63, "7e"), (64, "8001"), (2**63 - 1, "feffffffffffffffff01")]


@pytest.mark.parametrize(("number", "data"), VARINTS)
def test_varints_are_zigzag_and_least_bits_first(number: int, data: str) -> None:
    assert varint(number).hex() == data


def test_a_compact_length_is_one_more_than_the_length() -> None:
    assert compact_string("ab") == b"\x03ab"
    assert compact_array([b"x", b"y"]) == b"\x03xy"


def test_a_null_string_has_length_minus_one() -> None:
    assert nullable_string(None) == b"\xff\xff"


def test_every_null_is_read_as_none_and_no_tags_as_none_of_them() -> None:
    assert (writer.NULL_STRING, writer.COMPACT_NULL, writer.NO_TAGS) == (b"\xff\xff", b"\x00", b"\x00")
    assert ByteReader(writer.NULL_STRING).nullable_string() is None
    assert ByteReader(writer.COMPACT_NULL).compact_nullable_string() is None
    assert ByteReader(writer.COMPACT_NULL).compact_nullable_array(list) is None
    assert ByteReader(writer.NO_TAGS).tagged_fields() == {}


def test_tagged_fields_are_in_the_order_of_their_tags() -> None:
    assert tagged_fields({2: b"z", 0: b"a"}) == b"\x02" + b"\x00\x01a" + b"\x02\x01z"


def test_strings_bytes_and_arrays_begin_with_their_length() -> None:
    assert byte_string(b"ab") == b"\x00\x00\x00\x02ab"
    assert array(iter([b"x", b"y", b"z"])) == b"\x00\x00\x00\x03xyz"
    assert nullable_string("é") == b"\x00\x02\xc3\xa9"


@pytest.mark.parametrize(
    ("number", "data"), [(0, "00"), (127, "7f"), (128, "8001"), (16383, "ff7f"), (16384, "808001")]
)
def test_an_unsigned_varint_takes_a_byte_for_each_seven_bits(number: int, data: str) -> None:
    assert unsigned_varint(number).hex() == data


READS: dict[str, Callable[[ByteReader], object]] = {
    name: getattr(ByteReader, name)
    for name in (
        *("boolean", "int8", "int16", "int32", "int64", "uint16", "float64", "uuid", "unsigned_varint", "varint"),
        *("varlong", "string", "nullable_string", "compact_string", "compact_nullable_string", "byte_string"),
        *("nullable_byte_string", "compact_byte_string", "tagged_fields"),
    )
} | {
    name: lambda reader, name=name: getattr(reader, name)(reader.string)
    for name in ("array", "nullable_array", "compact_array", "compact_nullable_array")
}


@pytest.mark.parametrize(("number", "data"), VARINTS)
def test_varlongs_are_zigzag_and_least_bits_first(number: int, data: str) -> None:
    assert ByteReader(bytes.fromhex(data)).varlong() == number


@given(st.text(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_what_is_written_is_read(text: str, long: int, number: int) -> None:
    reader = ByteReader(
        writer.string(text)
        + writer.compact_string(text)
        + writer.varint(long)
        + writer.int64(long)
        + writer.varint(number)
    )
    assert (reader.string(), reader.compact_string(), reader.varlong(), reader.int64(), reader.varint()) == (
        *(text, text, long, long, number),
    )
    reader.end()


@given(st.dictionaries(st.integers(0, 2**31), st.binary()), st.none() | st.text())
def test_tagged_fields_and_nullable_strings_are_read(tags: dict[int, bytes], text: str | None) -> None:
    reader = ByteReader(memoryview(writer.tagged_fields(tags) + writer.nullable_string(text)))
    assert (reader.tagged_fields(), reader.nullable_string(), reader.remaining) == (tags, text, 0)


def test_null_is_none_where_it_may_be() -> None:
    assert ByteReader(b"\0").compact_nullable_string() is None
    assert ByteReader(b"\xff\xff\xff\xff").nullable_byte_string() is None
    assert [ByteReader(data).uuid() for data in (bytes(16), bytes([7] * 16))] == [None, UUID(bytes=bytes([7] * 16))]
    reader = ByteReader(b"\xff\xff\xff\xff\0")
    assert (reader.nullable_array(reader.int8), reader.compact_nullable_array(reader.int8)) == (None, None)


@given(st.sampled_from(sorted(READS)), st.binary(max_size=40))
def test_any_bytes_are_read_or_malformed(name: str, data: bytes) -> None:
    reader = ByteReader(data)
    with suppress(MalformedBytes):
        READS[name](reader)
    assert reader.at <= len(data)


@pytest.mark.parametrize("name", sorted(READS))
def test_no_bytes_at_all_are_malformed(name: str) -> None:
    with pytest.raises(MalformedBytes):
        READS[name](ByteReader(b""))


@given(st.text(min_size=1), st.data())
def test_no_cut_string_is_read(text: str, data: st.DataObject) -> None:
    whole = writer.string(text)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(MalformedBytes, match="are announced where"):
        ByteReader(cut).string()


@pytest.mark.parametrize("data", ["7fffffff00", "ffffffff", "fffffffe"])
def test_an_array_reads_no_more_than_is_there(data: str) -> None:
    reader = ByteReader(bytes.fromhex(data))
    with pytest.raises(MalformedBytes, match="elements are announced"):
        reader.array(reader.int8)


def test_arrays_within_arrays_share_one_limit_of_elements() -> None:
    reader = ByteReader(bytes(10))
    reader.elements_left = 12
    assert [reader.elements(5), reader.elements(5)] == [5, 5]
    with pytest.raises(MalformedBytes, match="3 elements"):
        reader.elements(3)


@pytest.mark.parametrize(("read", "size"), [(ByteReader.varint, 5), (ByteReader.varlong, 10)])
def test_a_varint_ends_within_its_bits(read: Callable[[ByteReader], int], size: int) -> None:
    assert read(ByteReader(b"\x80" * (size - 1) + b"\0")) == 0
    with pytest.raises(MalformedBytes, match="does not end"):
        read(ByteReader(b"\x80" * size + b"\0"))


@pytest.mark.parametrize(
    ("bits", "largest", "beyond"),
    [(32, b"\xff" * 4 + b"\x0f", b"\x81" + b"\x80" * 3 + b"\x10"), (64, b"\xff" * 9 + b"\1", b"\x80" * 9 + b"\2")],
)
def test_a_varint_has_no_bits_beyond_its_size(bits: int, largest: bytes, beyond: bytes) -> None:
    assert ByteReader(largest).unsigned_varint(bits) == 2**bits - 1
    with pytest.raises(MalformedBytes, match=f"a varint of more than {bits} bits"):
        ByteReader(beyond).unsigned_varint(bits)


def test_left_over_bytes_are_malformed() -> None:
    with pytest.raises(MalformedBytes, match="byte 0: 1 bytes are left over"):
        ByteReader(b"x").end()


def test_a_caller_raises_its_own_error() -> None:
    with (
        pytest.raises(InvalidRecord, match="byte 0: 4 bytes are announced where 1 are left"),
        malformed_as(InvalidRecord),
    ):
        ByteReader(b"x").int32()


def test_what_may_be_null_is_read_where_it_is_not() -> None:
    assert ByteReader(b"\x03ab").compact_nullable_string() == "ab"
    assert ByteReader(b"\x00\x00\x00\x02ab").nullable_byte_string() == b"ab"
    assert ByteReader(b"\x00\x00\x00\x02ab").byte_string() == b"ab"
    assert ByteReader(b"\x03ab").compact_byte_string() == b"ab"
    reader = ByteReader(b"\x00\x00\x00\x02\x05\x06\x03\x07\x08\x03\x09\x0a")
    assert reader.nullable_array(reader.int8) == [5, 6]
    assert reader.compact_nullable_array(reader.int8) == [7, 8]
    assert reader.compact_array(reader.int8) == [9, 10]
    reader.end()


def test_a_view_is_of_the_next_bytes_and_moves_on() -> None:
    reader = ByteReader(b"abcd", 1)
    assert (bytes(reader.view(2)), reader.at, reader.remaining) == (b"bc", 3, 1)


def test_text_that_is_no_text_is_refused_with_its_bytes() -> None:
    with pytest.raises(MalformedBytes, match=r"b'\\xff' is not text"):
        ByteReader(b"\x00\x01\xff").string()


@pytest.mark.parametrize(("announced", "fits"), [(4, True), (5, False), (-1, False)])
def test_an_array_is_refused_before_it_is_read_when_its_elements_cannot_fit(announced: int, fits: bool) -> None:
    """Four bytes are left. One for each element is the least unless the caller requires more."""
    for least_bytes in (1, 2):
        reader = ByteReader(announced.to_bytes(4, "big", signed=True) + bytes(4 * least_bytes))
        if fits:
            assert len(reader.array(reader.int8, least_bytes)) == announced
        else:
            with pytest.raises(MalformedBytes, match=f"{announced} elements are announced where {4 * least_bytes}"):
                reader.array(reader.int8, least_bytes)
    reader = ByteReader(b"\x00\x00\x00\x04" + bytes(4))
    assert reader.array(reader.int8) == [0, 0, 0, 0]
