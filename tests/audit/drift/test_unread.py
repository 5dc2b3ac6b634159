"""What a snapshot could not read is unknown: it is no change, neither when it is lost nor when it can be read again."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rackspan.audit import RackPolicy
from rackspan.audit.drift import drift
from rackspan.audit.drift.unread import Unread, unread
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId, Topic, TopicName, columns
from rackspan.sources.live import cluster_reader, snapshot_assembly

WHOLE = ClusterSnapshot(
    cluster_id="x",
    taken_at=datetime(2026, 11, 22, tzinfo=UTC),
    brokers=tuple(Broker(BrokerId(one), rack=RackId(f"r{one}")) for one in (1, 2)),
    controllers=(Controller(BrokerId(1), RackId("r1")),),
    topics=tuple(Topic(TopicName(name), config={"min.insync.replicas": "2"}) for name in ("a", "b")),
    partitions=columns(topic=[0, 1], partition=[0, 0], leader=[1, -1], replicas=[[1, 2], [2, 1]], isr=[[1, 2], []]),
)
WITHOUT_B = replace(
    WHOLE,
    topics=WHOLE.topics[:1],
    partitions=columns(topic=[0], partition=[0], leader=[1], replicas=[[1, 2]], isr=[[1, 2]]),
)
HIDDEN = "topics b: on disk but not shown to this user, who needs Describe on Topic b"
NO_CONFIGS = "min.insync.replicas of a: unknown, this user needs DescribeConfigs on Topic a"
NO_QUORUM = "the controller quorum: unknown, this user needs Describe on Cluster"
NO_MOVES = "reassignments under way: unknown, this user needs Describe on Cluster"
NO_FENCED = "which brokers are fenced: unknown, this user needs Describe on Cluster"


def changes(before: ClusterSnapshot, after: ClusterSnapshot) -> set[str]:
    return {one.change for one in drift(before, after, RackPolicy())}


def partial(snapshot: ClusterSnapshot, *notes: str) -> ClusterSnapshot:
    return replace(snapshot, partial=notes)


def test_a_topic_that_is_gone_is_deleted_and_one_that_cannot_be_read_is_not() -> None:
    assert changes(WHOLE, WITHOUT_B) == {"topic-deleted", "safety-gained"}
    assert changes(WHOLE, partial(WITHOUT_B, HIDDEN)) == set()
    assert changes(WHOLE, partial(WITHOUT_B, "topic b could not be described: timed out")) == set()


def test_a_topic_that_can_be_read_again_was_not_created() -> None:
    assert changes(WITHOUT_B, WHOLE) == {"topic-created", "safety-lost"}
    assert changes(partial(WITHOUT_B, HIDDEN), WHOLE) == set()


def test_what_is_read_beside_a_gap_still_counts() -> None:
    moved = replace(
        WITHOUT_B, partitions=columns(topic=[0], partition=[0], leader=[2], replicas=[[1, 2]], isr=[[1, 2]])
    )
    assert changes(WHOLE, partial(moved, HIDDEN)) == {"leader-moved"}
    assert changes(partial(WHOLE, HIDDEN), WITHOUT_B) == {"topic-deleted", "safety-gained"}
    assert changes(WHOLE, partial(WITHOUT_B, "sizes of 3 partitions: unknown, broker 1: not alive")) == {
        "topic-deleted",
        "safety-gained",
    }


def test_a_quorum_that_cannot_be_read_has_lost_no_voter() -> None:
    without = replace(WHOLE, controllers=())
    assert changes(WHOLE, without) == {"voter-gone"}
    assert changes(WHOLE, partial(without, NO_QUORUM)) == set()
    assert changes(partial(without, NO_QUORUM), WHOLE) == set()


def test_a_fenced_broker_is_not_gone_where_the_fenced_ones_are_no_longer_listed() -> None:
    fenced = replace(WHOLE, brokers=(*WHOLE.brokers, Broker(BrokerId(3), RackId("r3"), fenced=True)))
    assert changes(fenced, WHOLE) == {"broker-gone"}
    assert changes(fenced, partial(WHOLE, NO_FENCED)) == set()
    assert changes(partial(WHOLE, NO_FENCED), fenced) == set()
    # Of a user who never saw fenced brokers, a broker that stops is still reported.
    one = replace(WHOLE, brokers=WHOLE.brokers[:1], partitions=WHOLE.partitions)
    assert "broker-gone" in changes(partial(WHOLE, NO_FENCED), partial(one, NO_FENCED))


def test_a_minimum_that_cannot_be_read_has_not_fallen_and_not_risen_again() -> None:
    at_risk = replace(WITHOUT_B, partitions=columns(topic=[0], partition=[0], leader=[1], replicas=[[1, 2]], isr=[[1]]))
    default = replace(at_risk, topics=(Topic(TopicName("a")),))
    assert "min-insync-replicas-changed" in changes(at_risk, default)
    assert changes(at_risk, partial(default, NO_CONFIGS)) == set()
    assert changes(partial(default, NO_CONFIGS), at_risk) == set()
    raised = replace(at_risk, topics=(Topic(TopicName("a"), config={"min.insync.replicas": "3"}),))
    assert "min-insync-replicas-changed" in changes(at_risk, partial(raised, NO_CONFIGS))


@pytest.mark.parametrize(
    ("note", "kind"),
    [
        *(
            (HIDDEN, Unread.TOPICS),
            (NO_CONFIGS, Unread.CONFIGS),
            (NO_QUORUM, Unread.VOTERS),
            (NO_FENCED, Unread.FENCED),
        ),
        (NO_MOVES, Unread.MOVES),
    ],
)
def test_a_note_is_recognized_as_the_reader_of_clusters_writes_it(note: str, kind: Unread) -> None:
    assert unread([note]) == kind
    code = Path(cluster_reader.__file__).read_text() + Path(snapshot_assembly.__file__).read_text()
    assert re.search(f'"{re.escape(note.partition(" b")[0].partition(" of a")[0].partition(":")[0])}', code), note


def test_a_note_about_brokers_that_do_not_respond_hides_no_change() -> None:
    assert unread(["brokers 3: listed as alive, but timed out", "sizes of 3 partitions: unknown"]) == Unread.NOTHING
