"""Prices by path and side, and the text of a price file."""

import json
from fractions import Fraction

import pytest

from rackspan.errors import UsageError
from rackspan.json_text import NotJson
from rackspan.traffic import Price, PriceFile, Side, TrafficPath, Unit, prices_json
from rackspan.traffic.price_file import price_file

PRODUCE = TrafficPath.PRODUCE
SOURCE, DESTINATION = Side.SOURCE, Side.DESTINATION


def of(amount: float | None, unit: Unit = Unit.GB, *sides: Side) -> Price:
    return Price((PRODUCE,), sides or (SOURCE, DESTINATION), amount, unit, "by hand", None)


def test_a_byte_costs_what_both_sides_charge_in_the_decimal_digits_of_the_file() -> None:
    prices = PriceFile("USD", {(PRODUCE, SOURCE): of(0.01), (PRODUCE, DESTINATION): of(0.02, Unit.GIB)})
    assert prices.per_byte(PRODUCE) == Fraction(1, 100 * 10**9) + Fraction(2, 100 * 2**30)


@pytest.mark.parametrize("side", Side)
def test_a_byte_has_no_price_if_that_of_either_side_is_not_known(side: Side) -> None:
    other = DESTINATION if side is SOURCE else SOURCE
    assert PriceFile("USD", {(PRODUCE, side): of(0.01)}).per_byte(PRODUCE) is None
    assert PriceFile("USD", {(PRODUCE, side): of(0.01), (PRODUCE, other): of(None)}).per_byte(PRODUCE) is None
    assert PriceFile("USD", {(PRODUCE, side): of(0.01), (PRODUCE, other): of(0)}).per_byte(PRODUCE) == Fraction(
        1, 10**11
    )


TEXT = """{"currency": "EUR", "prices": [
    {"paths": ["replicate", "produce"], "sides": ["source"], "amount": 0.01, "unit": "GiB",
     "source": "https://example.org/prices", "read_on": "2026-11-01"},
    {"paths": ["produce"], "sides": ["destination"], "amount": null, "unit": "GB", "source": "by hand", "read_on": null}
]}"""


def test_a_price_file_is_read_key_by_key() -> None:
    listed = Price(
        (TrafficPath.REPLICATE, PRODUCE), (SOURCE,), 0.01, Unit.GIB, "https://example.org/prices", "2026-11-01"
    )
    assert price_file(TEXT) == PriceFile(
        "EUR",
        {
            (TrafficPath.REPLICATE, SOURCE): listed,
            (PRODUCE, SOURCE): listed,
            (PRODUCE, DESTINATION): Price((PRODUCE,), (DESTINATION,), None, Unit.GB, "by hand", None),
        },
    )


@pytest.mark.parametrize("day", ["2026-13-45", "2026-02-30", "0000-01-01"])
def test_a_day_that_the_calendar_does_not_have_is_refused(day: str) -> None:
    with pytest.raises(UsageError) as refused:
        price_file(TEXT.replace("2026-11-01", day))
    assert (
        str(refused.value)
        == f"price file: price 1: read_on is {day!r}, not a day such as 2026-11-21; write the day on which it was read"
    )


def test_equal_prices_are_one_text_in_whatever_order_they_were_listed() -> None:
    lines = TEXT.splitlines()
    turned = "\n".join([lines[0], lines[3] + ",", *lines[1:2], lines[2].rstrip(","), lines[4]])
    assert prices_json(price_file(TEXT)) == prices_json(price_file(turned))
    assert prices_json(price_file(TEXT)) == (
        '{"currency": "EUR", "prices": ['
        '{"paths": ["produce"], "sides": ["destination"], "amount": null, "unit": "GB", "source": "by hand", "read_on": null}, '
        '{"paths": ["replicate", "produce"], "sides": ["source"], "amount": 0.01, "unit": "GiB", '
        '"source": "https://example.org/prices", "read_on": "2026-11-01"}]}'
    )
    assert price_file(prices_json(price_file(TEXT))) == price_file(TEXT)


def test_prices_are_written_in_the_order_of_their_text() -> None:
    paths = [TrafficPath.RESTORE, PRODUCE, TrafficPath.CONSUME, TrafficPath.REASSIGN, TrafficPath.REPLICATE]
    prices = {(path, SOURCE): Price((path,), (SOURCE,), 0, Unit.GB, "by hand", None) for path in paths}
    written = json.loads(prices_json(PriceFile("USD", prices)))
    assert [price["paths"] for price in written["prices"]] == [
        ["consume"],
        ["produce"],
        ["reassign"],
        ["replicate"],
        ["restore"],
    ]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"unit": "GB"', '"unit": "GB", "region": "x"', "region"),
        ('"currency": "EUR"', '"currency": "EUR", "region": "x"', "region"),
        ('"currency": "EUR"', '"currency": ""', "currency"),
        ('"source": "by hand"', '"source": ""', "source"),
        ('"paths": ["produce"]', '"paths": []', "paths"),
        ('"sides": ["destination"]', '"sides": []', "sides"),
        ('"sides": ["destination"]', '"sides": ["middle"]', "middle"),
        ('"unit": "GB"', '"unit": "MB"', "MB"),
        ('"read_on": "2026-11-01"', '"read_on": "1 November"', "read_on"),
        ('"read_on": "2026-11-01"', '"read_on": "2026-11-011"', "read_on"),
        ("null, ", "1000000.5, ", "amount is 1000000.5, outside 0 to 1000000"),
    ],
)
def test_a_key_of_a_price_file_that_is_not_as_declared_is_refused(before: str, after: str, message: str) -> None:
    assert before in TEXT
    with pytest.raises(UsageError) as error:
        price_file(TEXT.replace(before, after))
    assert message in str(error.value)


def test_the_least_and_the_largest_amount_are_prices() -> None:
    for amount in ("0", "1000000"):
        found = price_file(TEXT.replace("null, ", f"{amount}, ", 1)).prices[PRODUCE, DESTINATION]
        assert found.amount == float(amount)


def test_a_price_file_that_is_no_json_is_refused() -> None:
    with pytest.raises(NotJson):
        price_file("currency: EUR")
