"""The documents, key for key, from values made by hand."""

from dataclasses import replace

from rackspan.acks.harden import RackLossCost
from rackspan.acks.json_format import JUDGED_BY, advice_document, applied_document, harden_document, watch_document
from rackspan.acks.watch import cluster_isr
from rackspan.audit import RackPolicy, audit
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from tests.acks.test_wording import BETTER, IMPOSSIBLE, NOTHING, RAISE

SNAPSHOT = ClusterSnapshot(
    brokers=tuple(Broker(BrokerId(one), RackId("ab"[one % 2])) for one in range(3)),
    topics=(Topic(TopicName("orders"), config={"min.insync.replicas": "1"}),),
    partitions=columns(
        topic=[0, 0, 0],
        partition=[0, 1, 2],
        leader=[0, 2, -1],
        replicas=[[0, 1], [2, 0], [1]],
        isr=[[0, 1], [2], [1]],
    ),
    cluster_id="c1",
)


def test_an_advice_has_every_value_under_its_key() -> None:
    advice = replace(RAISE, internal=True, moving=5, losses=(RackLossCost(RackId("a"), 2, 1),), better=(BETTER,))
    assert advice_document(advice) == {
        "topic": "orders",
        "internal": True,
        "outcome": "raise",
        "reason": "min.insync.replicas 2 lets fewer than 2 racks acknowledge (orders-4 has 2+1 replicas per rack); 3 forces 2"
        "; 5 partitions being reassigned, judged by the target",
        "remedies": [
            "min.insync.replicas=3",
            "with RF 4 (2+2 replicas per rack) set 3; writes survive the loss of 1 broker: "
            "rackspan reassign plan --topic orders --replication-factor 4",
        ],
        "min_insync_racks": 2,
        "enforced": False,
        "current": 2,
        "known": True,
        "least": 3,
        "decided_by": {"partition": 4, "spread": [2, 1], "needs": 3},
        "partitions": 6,
        "too_few_racks": 0,
        "moving": 5,
        "smallest_replication_factor": 3,
        "losses": [
            {
                "rack": "a",
                "stopped_by_value": 2,
                "stopped_by_both": 1,
                "words": "if rack a is lost, 3 of 6 partitions refuse acks=all: 2 because of the new value, 1 under min.insync.racks too",
            }
        ],
        "better": [
            {"replication_factor": 4, "spread": [2, 2], "least": 3, "survives_broker": True, "survives_rack": False}
        ],
    }


def test_an_impossible_topic_has_no_least_value() -> None:
    assert (advice_document(IMPOSSIBLE)["least"], advice_document(IMPOSSIBLE)["too_few_racks"]) == (None, 2)


def test_the_document_counts_outcomes_and_has_a_command_for_each_value_to_raise() -> None:
    document = harden_document(SNAPSHOT, [RAISE, NOTHING, IMPOSSIBLE])
    assert document["summary"]["outcomes"] == {"impossible": 1, "nothing-asked": 1, "raise": 1}
    assert document["summary"]["cluster_id"] == "c1"
    assert [topic["outcome"] for topic in document["topics"]] == ["raise", "nothing-asked", "impossible"]
    assert document["commands"] == [
        "kafka-configs.sh --bootstrap-server HOST:PORT --alter --entity-type topics --entity-name orders "
        "--add-config min.insync.replicas=3"
    ]
    # It may be higher already, and would be lowered.
    assert harden_document(SNAPSHOT, [replace(RAISE, known=False)])["commands"] == []


def test_what_was_applied_stands_beside_audits_own_findings_about_the_value() -> None:
    findings = list(audit(SNAPSHOT, RackPolicy(min_insync_racks=2)).findings)
    document = applied_document({"b": 2, "a": 3}, findings)
    assert document["applied"] == [
        {"topic": "a", "min.insync.replicas": 3},
        {"topic": "b", "min.insync.replicas": 2},
    ]
    found = {finding.constraint for finding in findings}
    assert {one["constraint"] for one in document["audit"]} == JUDGED_BY & found
    assert JUDGED_BY & found
    assert found - JUDGED_BY


def test_a_reading_has_its_counts_under_their_keys() -> None:
    isr = cluster_isr(SNAPSHOT, RackPolicy(min_insync_racks=2))
    assert watch_document(isr) == {
        "cluster_id": "c1",
        "under_min_rack_isr": 2,
        "at_min_rack_isr": 1,
        "leaderless": 1,
        "any_rack_loss_survived": False,
        "not_survived": ["a", "b"],
        "brokers": [
            {"id": 0, "rack": "a", "under_min_rack_isr": 0, "at_min_rack_isr": 1},
            {"id": 1, "rack": "b", "under_min_rack_isr": 0, "at_min_rack_isr": 0},
            {"id": 2, "rack": "a", "under_min_rack_isr": 1, "at_min_rack_isr": 0},
        ],
    }
