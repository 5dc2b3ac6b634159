"""The document of traffic and its bill, written whole."""

import json

from rackspan.model import RackId
from rackspan.traffic import Basis, TrafficFlow, TrafficPath
from rackspan.traffic.flows import Link
from rackspan.traffic.json_format import traffic_document
from rackspan.traffic.price_file import price_file
from tests.snapshots import of_one_topic

A, B = RackId("a"), RackId("b")
PRODUCED = TrafficFlow(Link(TrafficPath.PRODUCE, "orders", None, A, B, Basis.ESTIMATED, "spread"), 3 * 10**9)
COPIED = TrafficFlow(Link(TrafficPath.REPLICATE, "orders", None, B, A, Basis.DERIVED, "copied"), 10**9)
READ_IN_RACK = TrafficFlow(Link(TrafficPath.CONSUME, "orders", "g", A, A, Basis.DERIVED, "once"), 500)
READ = TrafficFlow(Link(TrafficPath.CONSUME, "orders", "g", B, A, Basis.DERIVED, "once"), 10**9)
READ_SOMEWHERE = TrafficFlow(Link(TrafficPath.CONSUME, "orders", "h", None, A, Basis.DERIVED, "once"), 7)
NOT_KNOWN = TrafficFlow(Link(TrafficPath.RESTORE, "log", "h", B, A, Basis.DERIVED, "rebuilt"), None)
FLOWS = [READ_IN_RACK, READ, PRODUCED, COPIED, READ_SOMEWHERE, NOT_KNOWN]
DAY = 86_400.0
PRICES = price_file(
    json.dumps(
        {
            "currency": "USD",
            "prices": [
                {
                    "paths": ["produce"],
                    "sides": ["source", "destination"],
                    "amount": 0.01,
                    "unit": "GB",
                    "source": "list",
                    "read_on": "2026-11-01",
                },
                {
                    "paths": ["consume"],
                    "sides": ["source"],
                    "amount": 0.02,
                    "unit": "GB",
                    "source": "by hand",
                    "read_on": None,
                },
                {
                    "paths": ["consume"],
                    "sides": ["destination"],
                    "amount": 0,
                    "unit": "GB",
                    "source": "by hand",
                    "read_on": None,
                },
            ],
        }
    )
)


def path(name: str, size: int, crossing: int, estimated: int = 0, unknown: int = 0) -> dict[str, object]:
    return {
        "path": name,
        "bytes": size,
        "cross_rack_bytes": crossing,
        "estimated_cross_rack_bytes": estimated,
        "unknown_flows": unknown,
    }


def flow(*values: object) -> dict[str, object]:
    keys = (
        "path",
        "topic",
        "group",
        "source_rack",
        "destination_rack",
        "crosses_racks",
        "bytes",
        "basis",
        "assumption",
    )
    return dict(zip(keys, values, strict=True))


def row(*values: object) -> dict[str, object]:
    keys = ("path", "topic", "group", "basis", "cross_rack_bytes", "money_a_month", "reason")
    return dict(zip(keys, values, strict=True))


def test_the_document_has_paths_flows_and_a_bill_with_the_dearest_first() -> None:
    document = traffic_document(
        of_one_topic({1: "a", 2: "b"}, [[1, 2]]), FLOWS, DAY, groups=2, unread=["no log of 2"], prices=PRICES
    )
    assert document["summary"] == {
        "cluster_id": None,
        "cluster_name": None,
        "taken_at": None,
        "brokers": 2,
        "topics": 1,
        "partitions": 1,
        "partial": [],
        "complete": True,
        "seconds": 86400.0,
        "groups": 2,
        "unread": ["no log of 2"],
    }
    assert document["paths"] == [
        path("produce", 3 * 10**9, 3 * 10**9, estimated=3 * 10**9),
        path("replicate", 10**9, 10**9),
        path("consume", 10**9 + 507, 10**9, unknown=1),
        path("restore", 0, 0, unknown=1),
    ]
    assert document["flows"] == [
        flow("consume", "orders", "g", "a", "a", False, 500, "derived", "once"),
        flow("consume", "orders", "g", "b", "a", True, 10**9, "derived", "once"),
        flow("produce", "orders", None, "a", "b", True, 3 * 10**9, "estimated", "spread"),
        flow("replicate", "orders", None, "b", "a", True, 10**9, "derived", "copied"),
        flow("consume", "orders", "h", None, "a", None, 7, "derived", "once"),
        flow("restore", "log", "h", "b", "a", True, None, "derived", "rebuilt"),
    ]
    assert document["bill"] == {
        "currency": "USD",
        "month_days": 30,
        "money_a_month": 2.4,
        "rows": [
            row("produce", "orders", None, "estimated", 3 * 10**9, 1.8, None),
            row("consume", "orders", "g", "derived", 10**9, 0.6, None),
        ],
        "unpriced": [
            row("replicate", "orders", None, "derived", 10**9, None, "the price of replicate is not known"),
            row("consume", "orders", "h", "derived", 7, None, "a rack is not known"),
            row("restore", "log", "h", "derived", None, None, "the bytes are not known"),
        ],
        "prices": [{"source": "by hand", "read_on": None}, {"source": "list", "read_on": "2026-11-01"}],
    }


def test_without_prices_there_is_no_bill() -> None:
    assert traffic_document(of_one_topic({1: "a"}, [[1]]), [PRODUCED], DAY)["bill"] is None
