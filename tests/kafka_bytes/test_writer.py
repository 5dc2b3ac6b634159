"""Primitive types against the examples of the protocol guide."""

import pytest

from rackspan.kafka_bytes.writer import compact_array, compact_string, nullable_string, tagged_fields, varint

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
