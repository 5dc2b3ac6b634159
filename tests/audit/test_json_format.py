from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rackspan.audit import RackPolicy, audit, outage, racks_down
from rackspan.audit.json_format import FINDING_COLUMNS, audit_document, outage_document
from rackspan.audit.policy import Survive
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId, Topic, TopicName, columns
from tests.audit.test_judge import with_diskless

SNAPSHOT = ClusterSnapshot(
    cluster_id="the-cluster",
    taken_at=datetime(2026, 11, 22, 8, 30, tzinfo=UTC),
    partial=("sizes of broker 3",),
    brokers=tuple(Broker(BrokerId(one), RackId(rack)) for one, rack in ((1, "a"), (2, "b"), (3, "c"))),
    controllers=(Controller(BrokerId(1)), Controller(BrokerId(2)), Controller(BrokerId(101))),
    topics=(
        Topic(TopicName("__consumer_offsets"), internal=True, config={"min.insync.replicas": "1"}),
        Topic(TopicName("orders"), config={"min.insync.replicas": "2"}),
    ),
    partitions=columns(
        topic=[0, 1, 1],
        partition=[0, 0, 1],
        leader=[1, 2, 3],
        replicas=[[1, 2], [2, 1], [3]],
        isr=[[1, 2], [2], [3]],
    ),
)
POLICY = RackPolicy(topic_survive={"orders": Survive.BROKER})
LEFT_BEHIND = {
    "offline": 1,
    "needs_unclean_election": 1,
    "under_min_isr": 0,
    "under_min_racks": 0,
    "after_reassignment": 0,
}
"""The only replica in sync is lost, and another one is left."""
HEAD = {
    "cluster_name": None,
    "cluster_id": "the-cluster",
    "taken_at": "2026-11-22T08:30:00Z",
    "brokers": 3,
    "topics": 2,
    "partitions": 3,
    "diskless": 0,
    "partial": ["sizes of broker 3"],
    "complete": True,
}


def quorum(*lost: int) -> dict[str, Any]:
    return {
        "voters": 3,
        "surviving": 3 - len(lost),
        "lost": list(lost),
        "dead": [],
        "unknown_rack": [101],
        "holds": True,
        "certain": not lost,
    }


def harm(topic: str, **states: int) -> dict[str, Any]:
    none = {
        "offline": 0,
        "needs_unclean_election": 0,
        "under_min_isr": 0,
        "under_min_racks": 0,
        "after_reassignment": 0,
    }
    survive = "broker" if topic == "orders" else "rack"
    return {"topic": topic, "internal": topic != "orders", "survive": survive, **none, **states}


def test_the_document_of_an_audit_has_a_summary_and_every_finding_by_its_columns() -> None:
    document = audit_document(SNAPSHOT, audit(SNAPSHOT, POLICY))
    refused = {
        "offline": 0,
        "needs_unclean_election": 0,
        "under_min_isr": 1,
        "under_min_racks": 0,
        "after_reassignment": 0,
    }
    doubtful, certain = ({"survived": False, "as_required": one} for one in (False, True))
    assert document["summary"] == {
        **HEAD,
        "racks": ["a", "b", "c"],
        "lost_racks": [],
        "violations": 4,
        "violated_partitions": 2,
        "warnings": 1,
        "by_constraint": {
            "accepts-writes-after-broker-loss": 1,
            "controller-quorum-spread": 1,
            "mixed-replication-factors": 1,
            "survives-broker-loss": 1,
            "under-min-isr": 1,
        },
        "survives_any_rack": False,
        "left_open_by": ["controller-quorum-spread"],
        "assumed": [],
        "losses": [
            {"racks": ["a"], "lost": False, "happened": False, **doubtful, **refused, "controller_quorum": quorum(1)},
            {
                "racks": ["b"],
                "lost": False,
                "happened": False,
                **doubtful,
                **LEFT_BEHIND,
                "controller_quorum": quorum(2),
            },
            {
                "racks": ["c"],
                "lost": False,
                "happened": False,
                **certain,
                **refused,
                "offline": 1,
                "controller_quorum": quorum(),
            },
        ],
    }
    assert {tuple(finding) for finding in document["findings"]} == {FINDING_COLUMNS}
    assert document["findings"][0] == {
        "constraint": "under-min-isr",
        "severity": "violation",
        "topic": "orders",
        "partition": 0,
        "reason": "1 in sync (2), min.insync.replicas 2: acks=all is refused; out of sync: 1",
        "remedy": "wait until broker 1 is in sync",
    }


def test_the_document_of_an_outage_has_what_is_harmed_now_and_by_each_loss() -> None:
    now, losses = outage(SNAPSHOT, POLICY)
    document = outage_document(SNAPSHOT, now, losses)
    assert document.items() >= HEAD.items()
    assert outage_document(SNAPSHOT, now, losses, "Production, Europe")["cluster_name"] == "Production, Europe"
    assert document["now"] == {"topics": [harm("orders", under_min_isr=1)]}
    assert document["lost_racks"] == []
    without_quorum = replace(SNAPSHOT, controllers=())
    assert outage_document(without_quorum, *outage(without_quorum, POLICY))["losses"][0]["controller_quorum"] is None
    assert document["losses"][1] == {
        "racks": ["b"],
        "lost": False,
        "happened": False,
        "survived": False,
        "as_required": False,
        "topics": [harm("orders", **LEFT_BEHIND)],
        "leader_surge": {},
        "controller_quorum": quorum(2),
    }


def test_a_rack_that_is_down_stands_in_both_documents_and_its_loss_is_marked() -> None:
    brokers = tuple(replace(broker, fenced=broker.rack == "b") for broker in SNAPSHOT.brokers)
    known = tuple(replace(controller, rack=controller.rack or RackId("a")) for controller in SNAPSHOT.controllers)
    down = replace(SNAPSHOT, brokers=brokers, controllers=known)
    lost = {
        "rack": "b",
        "brokers": [2],
        "controllers": [2],
        "controllers_left": [],
        "partitions": 2,
        "reason": "rack b is down: broker 2, controller 2; 2 partitions lack a replica",
    }
    of_audit = audit_document(down, audit(down, POLICY))["summary"]
    of_outage = outage_document(down, *outage(down, POLICY), lost_racks=racks_down(down, POLICY))
    assert of_audit["lost_racks"] == of_outage["lost_racks"] == [lost]
    assert [loss["lost"] for loss in of_audit["losses"]] == [False, True, False]
    assert [loss["lost"] for loss in of_outage["losses"]] == [False, True, False]
    assert [loss["happened"] for loss in of_audit["losses"]] == [False, True, False]
    assert [loss["happened"] for loss in of_outage["losses"]] == [False, True, False]


def test_the_partitions_of_diskless_topics_are_counted() -> None:
    snapshot = with_diskless([1, 2, 3])
    judged, outages = audit(snapshot, RackPolicy()), outage(snapshot, RackPolicy())
    documents = (audit_document(snapshot, judged)["summary"], outage_document(snapshot, *outages))
    assert [(one["partitions"], one["diskless"]) for one in documents] == [(3, 2), (3, 2)]
