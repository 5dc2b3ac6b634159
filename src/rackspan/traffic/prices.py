"""The price file: the price of bytes between racks by path and side, as a declared document.

A path and side that is not listed, or listed with the amount null, has an unknown price. Only a listed 0 is free.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from rackspan import json_text
from rackspan.documents import Amount, InvalidDocument, convert
from rackspan.errors import UsageError
from rackspan.traffic.flows import TrafficPath


class Side(StrEnum):
    """The side of a flow that is charged."""

    SOURCE = "source"
    DESTINATION = "destination"


class Unit(StrEnum):
    """The number of bytes that an amount is for."""

    GB = "GB"
    GIB = "GiB"


UNIT_BYTES: Final[Mapping[Unit, int]] = {Unit.GB: 10**9, Unit.GIB: 2**30}


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """One amount. `source` is the URL of the page that states it, `read_on` the day it was read, null if nobody did."""

    paths: Annotated[tuple[TrafficPath, ...], Meta(min_length=1)]
    sides: Annotated[tuple[Side, ...], Meta(min_length=1)]
    amount: Amount | None
    unit: Unit
    source: Annotated[str, Meta(min_length=1)]
    read_on: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None


class PriceDocument(Struct, forbid_unknown_fields=True):
    """A price file as it is written."""

    currency: Annotated[str, Meta(min_length=1)]
    prices: tuple[Price, ...]


@dataclass(frozen=True, slots=True)
class PriceFile:
    """Prices by path and side."""

    currency: str
    prices: Mapping[tuple[TrafficPath, Side], Price]

    def per_byte(self, path: TrafficPath) -> Fraction | None:
        """The price of a byte that crosses racks, both sides together; None if one side's is unknown."""
        total = Fraction(0)
        for side in Side:
            price = self.prices.get((path, side))
            if price is None or price.amount is None:
                return None
            # The decimal digits of the file, not the nearest binary fraction, so that bills add up.
            total += Fraction(str(price.amount)) / UNIT_BYTES[price.unit]
        return total


def prices_json(prices: PriceFile) -> str:
    """The price file as JSON, in one order: equal for equal prices."""
    listed = sorted({msgspec.json.encode(price).decode(): price for price in prices.prices.values()}.items())
    return msgspec.json.encode(PriceDocument(prices.currency, tuple(price for _, price in listed))).decode()


def price_file(content: str | bytes) -> PriceFile:
    """The value of a price file. Errors: UsageError, naming the key; NotJson."""
    try:
        declared = convert(json_text.parse(content), PriceDocument, "price file")
    except InvalidDocument as error:
        raise UsageError(str(error)) from None
    prices: dict[tuple[TrafficPath, Side], Price] = {}
    for price in declared.prices:
        for key in ((path, side) for path in price.paths for side in price.sides):
            if key in prices:
                raise UsageError(f"{key[0]} has two prices of its {key[1]}; remove one from the price file")
            prices[key] = price
    return PriceFile(declared.currency, prices)
