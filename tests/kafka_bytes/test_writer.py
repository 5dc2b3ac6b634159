"""Primitive types against the examples of the protocol guide."""

import pytest

from rackspan.kafka_bytes.writer import (
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
