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


def test_seconds_are_rounded_to_thousandths_and_money_of_a_month_to_hundredths() -> None:
    document = traffic_document(
        of_one_topic({1: "a"}, [[1]]),
        [TrafficFlow(PRODUCED.link, 10**9), TrafficFlow(READ.link, None)],
        61.23456,
        prices=PRICES,
        name="paris",
    )
    summary, of_month = document["summary"], document["bill"]
    assert (summary["seconds"], summary["groups"], summary["unread"]) == (61.235, 0, [])
    assert summary["cluster_name"] == "paris"
    assert of_month is not None
    # A GB at 0.02 in 61.23456 of 2,592,000 seconds.
    assert of_month["money_a_month"] == of_month["rows"][0]["money_a_month"] == 846.58


def test_rows_of_equal_money_are_in_the_order_of_path_topic_and_group_and_prices_in_that_of_their_source() -> None:
    def crossing(path: TrafficPath, topic: str, group: str | None, size: int = 10**9) -> TrafficFlow:
        return TrafficFlow(Link(path, topic, group, A, B, Basis.DERIVED, "x"), size)

    restore, consume, produce = TrafficPath.RESTORE, TrafficPath.CONSUME, TrafficPath.PRODUCE
    ordered = [
        crossing(produce, "z", "z", 2 * 10**9),
        crossing(consume, "a", None),
        crossing(consume, "a", "A"),
        crossing(consume, "a", "b"),
        crossing(consume, "b", "A"),
        crossing(produce, "a", None),
        crossing(restore, "a", None),
    ]
    entries = [
        {"paths": [name], "sides": [side], "amount": 0.01, "unit": "GB", "source": f"{side} {name}", "read_on": None}
        for name in ("restore", "produce", "consume")
        for side in ("source", "destination")
    ]
    prices = price_file(json.dumps({"currency": "USD", "prices": entries}))
    found = traffic_document(of_one_topic({1: "a"}, [[1]]), ordered[::-1], DAY, prices=prices)["bill"]
    assert found is not None
    assert [(row["path"], row["topic"], row["group"]) for row in found["rows"]] == [
        (flow.link.path, flow.link.topic, flow.link.group) for flow in ordered
    ]
    assert [price["source"] for price in found["prices"]] == [
        "destination consume",
        "destination produce",
        "destination restore",
        "source consume",
        "source produce",
        "source restore",
    ]


def test_flows_that_are_free_come_last() -> None:
    free = price_file(
        """{"currency": "USD", "prices": [{"paths": ["consume"], "sides": ["source", "destination"], "amount": 0, "unit": "GB",
        "source": "x", "read_on": null}, {"paths": ["produce"], "sides": ["source", "destination"], "amount": 0.01,
        "unit": "GB", "source": "x", "read_on": null}]}"""
    )
    found = traffic_document(of_one_topic({1: "a"}, [[1]]), [READ, PRODUCED], DAY, prices=free)["bill"]
    assert found is not None
    assert [(each["path"], each["money_a_month"]) for each in found["rows"]] == [("produce", 1.8), ("consume", 0.0)]
