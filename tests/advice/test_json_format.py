"""The document of advice, written whole."""

from dataclasses import replace
from datetime import UTC, datetime

from rackspan.advice import Advice
from rackspan.advice.advice import Concern
from rackspan.advice.json_format import advice_document
from tests.snapshots import of_one_topic

SNAPSHOT = of_one_topic({1: "a", 2: "b"}, [[1, 2]])
RISK = Advice(Concern.RISK, "offline", "no leader", "start broker 1", "a start", "stop it", topic="orders", place=3)
SAVING = Advice(
    Concern.MONEY,
    "assignor",
    "reads cross",
    "use another",
    "a restart",
    "take it back",
    group="shop",
    bytes_a_month=10**12,
    money_a_month=12.345678,
    assumption="read once",
)


def test_the_document_has_each_piece_of_advice_in_its_rank() -> None:
    document = advice_document(
        SNAPSHOT,
        [RISK, SAVING],
        seconds=60.12345,
        hour=datetime(2026, 11, 24, 9, tzinfo=UTC),
        currency="EUR",
        unread=["no log of 2"],
        name="paris",
        seconds_at_risk=[90.5, None],
    )
    assert document == {
        "summary": {
            "cluster_id": None,
            "cluster_name": "paris",
            "taken_at": None,
            "brokers": 2,
            "topics": 1,
            "partitions": 1,
            "partial": [],
            "complete": True,
            "seconds": 60.123,
            "hour": "2026-11-24T09:00:00Z",
            "by_concern": {"risk": 1, "warning": 0, "money": 1},
            "unread": ["no log of 2"],
        },
        "advice": [
            {
                "rank": 1,
                "concern": "risk",
                "kind": "offline",
                "topic": "orders",
                "group": None,
                "reason": "no leader",
                "seconds_at_risk": 90.5,
                "bytes_a_month": None,
                "money_a_month": None,
                "currency": None,
                "command": "start broker 1",
                "cost": "a start",
                "undo": "stop it",
                "assumption": "",
            },
            {
                "rank": 2,
                "concern": "money",
                "kind": "assignor",
                "topic": None,
                "group": "shop",
                "reason": "reads cross",
                "seconds_at_risk": None,
                "bytes_a_month": 10**12,
                "money_a_month": 12.35,
                "currency": "EUR",
                "command": "use another",
                "cost": "a restart",
                "undo": "take it back",
                "assumption": "read once",
            },
        ],
    }


def test_what_was_not_measured_is_null() -> None:
    document = advice_document(SNAPSHOT, [RISK, replace(SAVING, money_a_month=None)])
    summary = document["summary"]
    assert (summary["seconds"], summary["hour"], summary["unread"], summary["cluster_name"]) == (None, None, [], None)
    assert [
        (each["seconds_at_risk"], each["money_a_month"], each["currency"], each["bytes_a_month"])
        for each in document["advice"]
    ] == [(None, None, None, None), (None, None, None, 10**12)]
    assert advice_document(SNAPSHOT, [])["advice"] == []
