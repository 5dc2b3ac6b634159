"""Responses become a snapshot, and what they lack is noted in it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from rackspan.client.requests import QuorumMember
from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import NO_BROKER, Broker, BrokerId, ClusterSnapshot, Controller, RackId
from rackspan.model.ids import UNKNOWN_LEADER, TopicPartition
from rackspan.plan.execution.observed import InFlight
from rackspan.sources.live.snapshot_assembly import ClusterResponses, LogDirs, assemble, controllers
from rackspan.wire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def topic(name: str, identity: UUID, internal: bool, *partitions: MetadataResponsePartition) -> MetadataResponseTopic:
    return MetadataResponseTopic(name=name, topic_id=identity, is_internal=internal, partitions=partitions)


def partition(number: int, leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> MetadataResponsePartition:
    return MetadataResponsePartition(partition_index=number, leader_id=leader, replica_nodes=replicas, isr_nodes=isr)


def broker(broker_id: int, rack: str | None, host: str = "h", *, fenced: bool = False) -> Broker:
    return Broker(BrokerId(broker_id), None if rack is None else RackId(rack), fenced, host, 9092)


BROKERS = (broker(1, "r1", "a"), broker(2, "r2", "b"), broker(3, None, "c", fenced=True))

RESPONSES = ClusterResponses(
    cluster_id="c",
    brokers=BROKERS,
    topics=(
        topic("z", UUID(int=2), False, partition(0, -1, (3, 4), ())),
        topic("a", UUID(int=1), True, partition(1, 2, (2, 1), (2,)), partition(0, 1, (1, 2, 3), (1, 2))),
    ),
    configs={"a": {"min.insync.replicas": "2"}},
    reassignments={
        TopicPartition("a", 0): InFlight((), (3,), (2,)),
        TopicPartition("gone", 0): InFlight((), (1,), ()),
    },
    log_dirs=LogDirs({1: {TopicPartition("a", 0): 5, TopicPartition("a", 1): 7}, 2: {TopicPartition("a", 0): 9}}),
    lists_fenced=True,
)


def assembled(responses: ClusterResponses = RESPONSES) -> ClusterSnapshot:
    return assemble(responses, NOON)


def test_topics_and_partitions_arrive_whole_in_canonical_order() -> None:
    snapshot = assembled()
    assert [(one.name, one.topic_id, one.internal, dict(one.config)) for one in snapshot.topics] == [
        ("a", "AAAAAAAAAAAAAAAAAAAAAQ", True, {"min.insync.replicas": "2"}),
        ("z", "AAAAAAAAAAAAAAAAAAAAAg", False, {}),
    ]
    first, second, last = snapshot.partitions
    assert (first.replicas, first.isr, first.leader, first.size_bytes) == ((1, 2, 3), (1, 2), 1, 9)
    assert (first.adding_replicas, first.removing_replicas) == ((3,), (2,))
    assert (second.replicas, second.adding_replicas, second.size_bytes) == ((2, 1), (), 7)
    assert (last.leader, last.isr, last.size_bytes) == (-1, (), None)


def test_a_reassignment_that_the_replicas_do_not_know_yet_is_not_made_up() -> None:
    snapshot = assembled(replace(RESPONSES, reassignments={TopicPartition("a", 1): InFlight((), (9,), (1, 8))}))
    assert snapshot.partitions.row(1).adding_replicas == ()
    assert snapshot.partitions.row(1).removing_replicas == (1,)


def test_missing_sizes_name_the_brokers_and_the_reason() -> None:
    silent = LogDirs({1: {TopicPartition("a", 0): 5}}, {2: "connection refused"}, frozenset())
    notes = assembled(replace(RESPONSES, log_dirs=silent)).partial
    assert notes == (
        "brokers 2: listed as alive, but connection refused; what is reported about them may be out of date",
        "sizes of 2 partitions: unknown, brokers 2: connection refused; brokers 3, 4: not alive; "
        "brokers 1: the log directory is offline or does not hold it yet",
    )


def test_sizes_that_are_refused_name_the_right() -> None:
    [note] = assembled(replace(RESPONSES, log_dirs=LogDirs({}, {}, frozenset({1, 2, 3, 4})))).partial
    assert note == "sizes of 3 partitions: unknown, brokers 1, 2, 3 and 1 more: this user needs Describe on Cluster"


def test_topics_on_disk_that_are_not_in_metadata_are_noted_as_hidden() -> None:
    hiding = LogDirs(
        {
            1: {
                TopicPartition("a", 0): 1,
                TopicPartition("a", 1): 1,
                TopicPartition("z", 0): 1,
                TopicPartition("secret", 0): 1,
            }
        }
    )
    [note] = assembled(replace(RESPONSES, log_dirs=hiding)).partial
    assert note.startswith("topics secret: on disk but not shown to this user, who needs Describe on Topic secret")


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        (QuorumMember(2, True), Controller(BrokerId(2), RackId("r2"))),
        (QuorumMember(2, True, active=True), Controller(BrokerId(2), RackId("r2"), active=True)),
        (QuorumMember(2, True, alive=False), Controller(BrokerId(2), RackId("r2"), alive=False)),
        (QuorumMember(101, True, ("b",)), Controller(BrokerId(101), RackId("r2"))),
        (QuorumMember(101, True, ("a", "b")), Controller(BrokerId(101), None)),
        (QuorumMember(101, True, ("elsewhere",)), Controller(BrokerId(101), None)),
        (QuorumMember(102, False, ("a",)), Controller(BrokerId(102), RackId("r1"), voter=False)),
    ],
    ids=[
        "combined",
        "combined and active",
        "combined and dead",
        "on a broker's host",
        "on hosts of two racks",
        "on a host of its own",
        "observing",
    ],
)
def test_a_controllers_rack_is_what_can_be_known_of_it(member: QuorumMember, expected: Controller) -> None:
    assert list(controllers(replace(RESPONSES, quorum=(member,)))) == [replace(expected, active=member.active)]


def test_a_broker_that_observes_the_metadata_log_is_no_controller() -> None:
    observing = replace(RESPONSES, quorum=(QuorumMember(1, False), QuorumMember(3, False)))
    assert list(controllers(observing)) == []


def test_an_observer_may_be_a_dead_broker_where_fenced_ones_are_not_listed() -> None:
    assert list(controllers(replace(RESPONSES, quorum=(QuorumMember(9, False),), lists_fenced=False))) == []


def unreported(error_code: int, **parts: Any) -> ClusterSnapshot:
    """Topic a of one partition with replicas 1, 2 and 3, whose leader Metadata does not name, with this error."""
    row = MetadataResponsePartition(
        partition_index=0, leader_id=-1, replica_nodes=[1, 2, 3], isr_nodes=[1, 2], error_code=error_code
    )
    return assembled(replace(RESPONSES, topics=(topic("a", UUID(int=1), False, row),), reassignments={}, **parts))


def test_a_leader_without_the_listener_is_not_known_and_the_snapshot_says_so() -> None:
    snapshot = unreported(ErrorCode.LISTENER_NOT_FOUND)
    assert snapshot.partitions.leader.tolist() == [UNKNOWN_LEADER]
    assert snapshot.unread == (
        "leaders of 1 partition (a-0): unknown, LISTENER_NOT_FOUND; give the address of a listener that every broker has",
    )
    assert unreported(ErrorCode.UNKNOWN_SERVER_ERROR).unread == (
        "leaders of 1 partition (a-0): unknown, UNKNOWN_SERVER_ERROR",
    )


@pytest.mark.parametrize("error_code", [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE])
def test_a_partition_without_a_leader_has_none(error_code: ErrorCode) -> None:
    snapshot = unreported(error_code)
    assert snapshot.partitions.leader.tolist() == [NO_BROKER]
    assert snapshot.unread == ()


def test_of_the_offline_replicas_only_those_on_brokers_that_are_up_are_in_failed_directories() -> None:
    # Kafka lists replicas on fenced brokers (3), and on those without the listener or not registered (4), among them.
    row = MetadataResponsePartition(
        partition_index=0, leader_id=1, replica_nodes=[1, 2, 3, 4], isr_nodes=[1], offline_replicas=[2, 3, 4]
    )
    topics = (topic("a", UUID(int=1), False, row),)
    snapshot = assembled(replace(RESPONSES, topics=topics, reassignments={}, reachable=frozenset({1, 2})))
    assert snapshot.partitions.row(0).offline_replicas == (2,)


def test_failed_directories_are_their_brokers_and_an_error_of_another_kind_is_noted() -> None:
    log_dirs = replace(
        RESPONSES.log_dirs, failed={2: ("/data/b",)}, unread={1: {"/data/a": ErrorCode.UNKNOWN_SERVER_ERROR}}
    )
    snapshot = assembled(replace(RESPONSES, log_dirs=log_dirs))
    assert [broker.failed_log_dirs for broker in snapshot.brokers] == [(), ("/data/b",), ()]
    assert "log directory /data/a of broker 1: unknown, UNKNOWN_SERVER_ERROR" in snapshot.unread


def test_notes_of_the_conversation_come_first() -> None:
    assert assembled(replace(RESPONSES, notes=("asked in vain",))).partial[0] == "asked in vain"


def test_a_cluster_without_brokers_is_not_a_snapshot() -> None:
    with pytest.raises(ClusterRequestFailed, match="lists no broker"):
        assembled(replace(RESPONSES, brokers=()))
