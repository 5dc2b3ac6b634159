"""What a cluster shows of a plan while it is executed, and how far each partition is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rackspan.audit.drift.unread import Unread, unread
from rackspan.errors import ClusterRequestFailed
from rackspan.model import NO_BROKER, ClusterSnapshot, TopicPartition
from rackspan.plan.execution.throttle import ConfigKey
from rackspan.reassign import Direction, PartitionReassignment


@dataclass(frozen=True, slots=True)
class InFlight:
    """A reassignment under way, as ListPartitionReassignments reports it."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def cancelled(self) -> tuple[int, ...]:
        """The replicas after a cancel, in Kafka's order: it does not keep the one from before the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


@dataclass(frozen=True, slots=True)
class ObservationRequest:
    """The topics and configs that the next decision needs, beside the brokers and the reassignments under way."""

    topics: frozenset[str] = frozenset()
    configs: frozenset[ConfigKey] = frozenset()


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """`brokers` are alive and not fenced. Topics and configs are present where they were requested and exist.

    `configs`: what a topic or a broker itself has set, None for nothing; a default from elsewhere does not count.
    `copied_bytes`: of replicas that are being added and are not in sync, the bytes that their brokers have so far; only for
    display, and only where these brokers respond.
    `isr` and `leaders` are present for partitions whose topics were requested; `leaderless` are those of them without a
    leader.
    """

    cluster_id: str | None
    brokers: frozenset[int]
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)
    replicas: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    isr: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    leaderless: frozenset[TopicPartition] = frozenset()
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    in_flight: Mapping[TopicPartition, InFlight] = field(default_factory=dict)
    copied_bytes: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    configs: Mapping[ConfigKey, str | None] = field(default_factory=dict)


class ReassignmentStatus(StrEnum):
    """How far the reassignment of a partition is."""

    DONE = "done"
    STARTABLE = "startable"
    """On the replicas it starts from, or on its target replicas in another order."""
    MOVING = "moving"
    REVERTING = "reverting"
    """Moving, but back to where it starts from: the run changed its direction."""
    SETTLING = "settling"
    """On both old and new replicas, though nothing moves: a broker that has not applied the end of the move yet."""
    UNEXPECTED = "unexpected"
    """On, or moving to, replicas that the plan does not name."""
    MISSING = "missing"


def reassignment_status(
    one: PartitionReassignment, direction: Direction, cluster: ObservedCluster
) -> ReassignmentStatus:
    """The controller's list of reassignments goes before the replicas that brokers show, which lag it."""
    start, end = set(one.start(direction)), set(one.end(direction))
    moving = cluster.in_flight.get(one.topic_partition)
    if moving is not None:
        target = set(moving.target)
        if target == end:
            return ReassignmentStatus.MOVING
        return ReassignmentStatus.REVERTING if target == start else ReassignmentStatus.UNEXPECTED
    replicas = cluster.replicas.get(one.topic_partition)
    if replicas is None:
        return ReassignmentStatus.MISSING
    if replicas == one.end(direction):
        return ReassignmentStatus.DONE
    if set(replicas) in (start, end):
        return ReassignmentStatus.STARTABLE
    return ReassignmentStatus.SETTLING if set(replicas) == start | end else ReassignmentStatus.UNEXPECTED


def observed(snapshot: ClusterSnapshot) -> ObservedCluster:
    """A snapshot as an observation. It holds no throttles."""
    names = [str(topic.name) for topic in snapshot.topics]
    rows = [(TopicPartition(names[row.topic], row.partition), row) for row in snapshot.partitions]
    return ObservedCluster(
        cluster_id=snapshot.cluster_id,
        brokers=frozenset(int(broker.id) for broker in snapshot.brokers if not broker.fenced),
        topic_ids={str(topic.name): topic.topic_id for topic in snapshot.topics},
        replicas={topic_partition: row.replicas for topic_partition, row in rows},
        isr={topic_partition: row.isr for topic_partition, row in rows},
        leaderless=frozenset(topic_partition for topic_partition, row in rows if row.leader == NO_BROKER),
        in_flight={
            topic_partition: InFlight(row.replicas, row.adding_replicas, row.removing_replicas)
            for topic_partition, row in rows
            if row.adding_replicas or row.removing_replicas
        },
    )


def refuse_unknown_moves(snapshot: ClusterSnapshot) -> None:
    """Without the reassignments under way a partition that is still copied looks done. Errors: ClusterRequestFailed."""
    for note in snapshot.partial:
        if Unread.MOVES in unread([note]):
            raise ClusterRequestFailed(f"{note}; what is not known to be at rest is not done")
