"""The price file as a declared document. It is read where commands run: executors of Spark need not have msgspec."""

from datetime import date
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from rackspan import json_text
from rackspan.documents import InvalidDocument, convert
from rackspan.errors import UsageError
from rackspan.traffic.flows import TrafficPath
from rackspan.traffic.prices import Price, PriceFile, Side, Unit

# Above it, money is no finite number any more.
_Price: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]


class PriceEntry(Struct, forbid_unknown_fields=True):
    """A price as it is written: the fields of `Price`."""

    paths: Annotated[tuple[TrafficPath, ...], Meta(min_length=1)]
    sides: Annotated[tuple[Side, ...], Meta(min_length=1)]
    amount: _Price | None
    unit: Unit
    source: Annotated[str, Meta(min_length=1)]
    read_on: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None


class PriceDocument(Struct, forbid_unknown_fields=True):
    """A price file as it is written."""

    currency: Annotated[str, Meta(min_length=1)]
    prices: tuple[PriceEntry, ...]


def _refuse_no_day(number: int, read_on: str | None) -> None:
    try:
        if read_on is not None:
            date.fromisoformat(read_on)
    except ValueError:
        raise UsageError(
            f"price file: price {number}: read_on is {read_on!r}, not a day such as 2026-11-21; write the day on which it was read"
        ) from None


def price_file(content: str | bytes) -> PriceFile:
    """The value of a price file. Errors: UsageError, naming the key; NotJson."""
    try:
        declared = convert(json_text.parse(content), PriceDocument, "price file")
    except InvalidDocument as error:
        raise UsageError(str(error)) from None
    prices: dict[tuple[TrafficPath, Side], Price] = {}
    for number, entry in enumerate(declared.prices, start=1):
        _refuse_no_day(number, entry.read_on)
        price = Price(entry.paths, entry.sides, entry.amount, entry.unit, entry.source, entry.read_on)
        for key in ((path, side) for path in price.paths for side in price.sides):
            if key in prices:
                raise UsageError(f"{key[0]} has two prices of its {key[1]}; remove one from the price file")
            prices[key] = price
    return PriceFile(declared.currency, prices)
