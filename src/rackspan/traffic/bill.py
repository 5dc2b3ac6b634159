"""The bill: flows between racks times a price file. Flows whose price is unknown are listed apart and never summed as zero."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

from rackspan.traffic.flows import Basis, TrafficFlow, TrafficPath
from rackspan.traffic.prices import PriceFile

MONTH_DAYS: Final = 30
MONTH_SECONDS: Final = MONTH_DAYS * 86_400

BillKey: TypeAlias = tuple[TrafficPath, str, str | None, Basis]


@dataclass(frozen=True, slots=True)
class BillRow:
    """Bytes of one path, topic, group and basis that cross racks. `money` is None if it is not known, `reason` says why."""

    path: TrafficPath
    topic: str
    group: str | None
    basis: Basis
    size_bytes: int | None
    money: Fraction | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Bill:
    """The cost of flows. `money` is the sum of `rows`; `unpriced` rows are in no sum, so it is all only without them."""

    currency: str
    money: Fraction
    rows: tuple[BillRow, ...]
    unpriced: tuple[BillRow, ...]


def bill(flows: Sequence[TrafficFlow], prices: PriceFile) -> Bill:
    """The price of the flows. Bytes within a rack are free."""
    priced: dict[BillKey, int] = {}
    unpriced: dict[tuple[BillKey, str], int | None] = {}
    for flow in flows:
        link, size = flow.link, flow.size_bytes
        if link.crosses is False:
            continue
        key = link.path, link.topic, link.group, link.basis
        reason = _why_unpriced(flow, prices)
        if reason is None and size is not None:
            priced[key] = priced.get(key, 0) + size
        elif reason is not None:
            before = unpriced.get((key, reason), 0)
            unpriced[key, reason] = None if size is None or before is None else before + size
    rows = []
    total = Fraction(0)
    for key, size in priced.items():
        money = size * (prices.per_byte(key[0]) or Fraction(0))
        total += money
        rows.append(BillRow(*key, size, money))
    apart = tuple(BillRow(*key, size, None, reason) for (key, reason), size in unpriced.items())
    return Bill(prices.currency, total, tuple(rows), apart)


def _why_unpriced(flow: TrafficFlow, prices: PriceFile) -> str | None:
    if flow.link.crosses is None:
        return "a rack is not known"
    if flow.size_bytes is None:
        return "the bytes are not known"
    unknown = prices.unknown_sides(flow.link.path)
    if len(unknown) == 1:
        return f"the price of {flow.link.path} is not known: its {unknown[0]} has none; write 0 in the price file if that is free"
    return f"the price of {flow.link.path} is not known" if unknown else None
