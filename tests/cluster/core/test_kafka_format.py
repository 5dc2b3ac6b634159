"""Primitive types: what the protocol guide's examples say, and that no cut or damaged bytes are read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.cluster.core import kafka_format as kf
from rackspan.errors import InvalidRecord


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (-2, "03"), (63, "7e"), (64, "8001"), (2**63 - 1, "feffffffffffffffff01")],
)
def test_varints_are_zigzag_and_least_bits_first(number: int, data: str) -> None:
    assert kf.varint(number).hex() == data
    assert kf.Reader(bytes.fromhex(data)).varint() == number


def test_a_compact_length_is_one_more_than_the_length() -> None:
    assert kf.compact_string("ab") == b"\x03ab"
    assert kf.compact_array([b"x", b"y"]) == b"\x03xy"


def test_tagged_fields_are_in_the_order_of_their_tags() -> None:
    assert kf.tagged_fields({2: b"z", 0: b"a"}) == b"\x02" + b"\x00\x01a" + b"\x02\x01z"


@given(st.text(), st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_is_read(text: str, number: int) -> None:
    reader = kf.Reader(kf.string(text) + kf.compact_string(text) + kf.varint(number) + kf.int64(number))
    assert (reader.string(), reader.compact_string(), reader.varint(), reader.int64()) == (text, text, number, number)
    assert reader.remaining == 0


@given(st.text(min_size=1), st.data())
def test_no_cut_string_is_read(text: str, data: st.DataObject) -> None:
    whole = kf.string(text)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(InvalidRecord):
        kf.Reader(cut).string()


@pytest.mark.parametrize("data", ["7fffffff00", "ffffffff"])
def test_an_array_asks_for_no_more_than_is_there(data: str) -> None:
    reader = kf.Reader(bytes.fromhex(data))
    with pytest.raises(InvalidRecord):
        reader.array(reader.int8)
