"""Traffic and its bill as a JSON document, from which the page is drawn too."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, TypedDict

from msgspec import Meta

from rackspan.audit.json_format import HeadDocument, head_document
from rackspan.documents import Amount, AtLeastOne, Count
from rackspan.model import ClusterSnapshot
from rackspan.traffic.bill import MONTH_DAYS, MONTH_SECONDS, Bill, BillRow, bill
from rackspan.traffic.flows import Basis, TrafficFlow, TrafficPath
from rackspan.traffic.prices import PriceFile


class FlowDocument(TypedDict):
    path: TrafficPath
    topic: str
    group: Annotated[str | None, Meta(description="Of consumers; null on other paths.")]
    source_rack: Annotated[str | None, Meta(description="null: not known.")]
    destination_rack: Annotated[str | None, Meta(description="null: not known.")]
    crosses_racks: Annotated[bool | None, Meta(description="null: a rack is not known.")]
    bytes: Annotated[Count | None, Meta(description="Within summary.seconds; null: not known.")]
    basis: Basis
    assumption: str


class PathDocument(TypedDict):
    path: TrafficPath
    bytes: Annotated[Count, Meta(description="Within summary.seconds, of the flows whose bytes are known.")]
    cross_rack_bytes: Annotated[Count, Meta(description="Those of them that cross racks.")]
    estimated_cross_rack_bytes: Annotated[Count, Meta(description="Those of these that are estimates.")]
    unknown_flows: Annotated[Count, Meta(description="Flows of which the bytes or a rack are not known.")]


class BillRowDocument(TypedDict):
    path: TrafficPath
    topic: str
    group: str | None
    basis: Basis
    cross_rack_bytes: Annotated[Count | None, Meta(description="Within summary.seconds; null: not known.")]
    money_a_month: Annotated[Amount | None, Meta(description="null: not known, for `reason`.")]
    reason: str | None


class PriceSourceDocument(TypedDict):
    source: str
    read_on: Annotated[str | None, Meta(description="null: the price was not compared with its source.")]


class BillDocument(TypedDict):
    currency: str
    month_days: AtLeastOne
    money_a_month: Annotated[Amount, Meta(description="Of `rows`: all that crosses racks only if `unpriced` is empty.")]
    rows: Annotated[list[BillRowDocument], Meta(description="The most expensive first.")]
    unpriced: list[BillRowDocument]
    prices: list[PriceSourceDocument]


class TrafficSummary(HeadDocument):
    seconds: Annotated[float, Meta(description="Between the two readings.")]
    groups: Annotated[Count, Meta(description="Groups with members.")]
    unread: Annotated[list[str], Meta(description="What could not be read, and why.")]


class TrafficDocument(TypedDict):
    """Bytes between racks within some seconds, and what they cost if they pass all month."""

    summary: TrafficSummary
    paths: list[PathDocument]
    flows: Annotated[list[FlowDocument], Meta(description="Flows within one rack too.")]
    bill: Annotated[BillDocument | None, Meta(description="null without prices.")]


def traffic_document(
    snapshot: ClusterSnapshot,
    flows: Sequence[TrafficFlow],
    seconds: float,
    *,
    groups: int = 0,
    unread: Sequence[str] = (),
    prices: PriceFile | None = None,
    name: str | None = None,
) -> TrafficDocument:
    """`unread` has one line for each part that could not be read."""
    return {
        "summary": {
            **head_document(snapshot, name),
            "seconds": round(seconds, 3),
            "groups": groups,
            "unread": list(unread),
        },
        "paths": [_path(path, of_path) for path in TrafficPath if (of_path := _of_path(flows, path))],
        "flows": [_flow(flow) for flow in flows],
        "bill": None if prices is None else _bill(bill(flows, prices), prices, seconds),
    }


def a_month(money: Fraction, seconds: float) -> float:
    """The money of a month at the rate of so many seconds."""
    return float(money * MONTH_SECONDS / Fraction(seconds))


def _of_path(flows: Sequence[TrafficFlow], path: TrafficPath) -> list[TrafficFlow]:
    return [flow for flow in flows if flow.link.path is path]


def _path(path: TrafficPath, flows: Sequence[TrafficFlow]) -> PathDocument:
    crossing = [flow for flow in flows if flow.link.crosses]
    return {
        "path": path,
        "bytes": _sum(flows),
        "cross_rack_bytes": _sum(crossing),
        "estimated_cross_rack_bytes": _sum([flow for flow in crossing if flow.link.basis is Basis.ESTIMATED]),
        "unknown_flows": sum(flow.size_bytes is None or flow.link.crosses is None for flow in flows),
    }


def _sum(flows: Sequence[TrafficFlow]) -> int:
    return sum(flow.size_bytes or 0 for flow in flows)


def _flow(flow: TrafficFlow) -> FlowDocument:
    link = flow.link
    return {
        "path": link.path,
        "topic": link.topic,
        "group": link.group,
        "source_rack": link.source_rack,
        "destination_rack": link.destination_rack,
        "crosses_racks": link.crosses,
        "bytes": flow.size_bytes,
        "basis": link.basis,
        "assumption": link.assumption,
    }


def _bill(found: Bill, prices: PriceFile, seconds: float) -> BillDocument:
    ordered = sorted(found.rows, key=lambda row: (-(row.money or 0), row.path, row.topic, row.group or ""))
    sources = {(price.source, price.read_on) for price in prices.prices.values()}
    return {
        "currency": found.currency,
        "month_days": MONTH_DAYS,
        "money_a_month": round(a_month(found.money, seconds), 2),
        "rows": [_bill_row(row, seconds) for row in ordered],
        "unpriced": [_bill_row(row, seconds) for row in found.unpriced],
        "prices": [{"source": source, "read_on": read_on} for source, read_on in sorted(sources, key=str)],
    }


def _bill_row(row: BillRow, seconds: float) -> BillRowDocument:
    return {
        "path": row.path,
        "topic": row.topic,
        "group": row.group,
        "basis": row.basis,
        "cross_rack_bytes": row.size_bytes,
        "money_a_month": None if row.money is None else round(a_month(row.money, seconds), 2),
        "reason": row.reason,
    }
