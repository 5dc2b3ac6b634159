"""The price of bytes between racks by path and side; price_file.py reads it from a file.

A path and side that is not listed, or listed with the amount null, has an unknown price. Only a listed 0 is free.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Price:
    """One amount. `source` is the URL of the page that states it, `read_on` the day it was read, None if nobody did."""

    paths: tuple[TrafficPath, ...]
    sides: tuple[Side, ...]
    amount: float | None
    unit: Unit
    source: str
    read_on: str | None


@dataclass(frozen=True, slots=True)
class PriceFile:
    """Prices by path and side."""

    currency: str
    prices: Mapping[tuple[TrafficPath, Side], Price]

    def unknown_sides(self, path: TrafficPath) -> list[Side]:
        """The sides of a path whose price is not listed, or listed as unknown."""
        return [side for side in Side if (price := self.prices.get((path, side))) is None or price.amount is None]

    def per_byte(self, path: TrafficPath) -> Fraction | None:
        """The price of a byte that crosses racks, both sides together; None if one side's is unknown."""
        if self.unknown_sides(path):
            return None
        prices = (self.prices[path, side] for side in Side)
        # The decimal digits of the file, not the nearest binary fraction, so that bills add up.
        return sum((Fraction(str(price.amount)) / UNIT_BYTES[price.unit] for price in prices), Fraction(0))


def prices_json(prices: PriceFile) -> str:
    """The price file as JSON, in one order: equal for equal prices."""
    listed = sorted({json.dumps(asdict(price)) for price in prices.prices.values()})
    return json.dumps({"currency": prices.currency, "prices": [json.loads(price) for price in listed]})
