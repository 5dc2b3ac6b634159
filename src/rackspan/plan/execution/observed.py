"""What a cluster shows of a plan while it is carried out, and how far each partition is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from rackspan.model import ClusterSnapshot
from rackspan.plan.execution.throttle import ConfigKey
from rackspan.plan.written import PartitionMove, TopicPartition, Toward


@dataclass(frozen=True, slots=True)
class InFlight:
    """A reassignment under way, as the controller lists it."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)


@dataclass(frozen=True, slots=True)
class ObservedCluster:
    """`brokers` are alive and not fenced. Topics and configs are there where they were asked for and exist.

    `configs`: what a topic or a broker itself has set, None for nothing; a default from elsewhere does not count.
    `isr` is told for partitions whose topics were asked for.
    """

    cluster_id: str | None
    brokers: frozenset[int]
    topic_ids: Mapping[str, str | None] = field(default_factory=dict)
    replicas: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    isr: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)
    in_flight: Mapping[TopicPartition, InFlight] = field(default_factory=dict)
    configs: Mapping[ConfigKey, str | None] = field(default_factory=dict)


class Standing(StrEnum):
    """How far a partition is on its way."""

    DONE = "done"
    STARTABLE = "startable"
    """On the replicas it starts from, or on those it shall have in another order."""
    MOVING = "moving"
    OPPOSING = "opposing"
    """Moving, but back to where it starts from: somebody turned round."""
    SETTLING = "settling"
    """Between both, though nothing moves: a broker that has not heard the end of it yet."""
    ELSEWHERE = "elsewhere"
    """Somebody else's doing."""
    ABSENT = "absent"


def standing(move: PartitionMove, toward: Toward, seen: ObservedCluster) -> Standing:
    """The controller's list goes before what brokers show, which lags it."""
    start, end = set(move.start(toward)), set(move.end(toward))
    moving = seen.in_flight.get(move.place)
    if moving is not None:
        target = set(moving.target)
        return Standing.MOVING if target == end else Standing.OPPOSING if target == start else Standing.ELSEWHERE
    replicas = seen.replicas.get(move.place)
    if replicas is None:
        return Standing.ABSENT
    if replicas == move.end(toward):
        return Standing.DONE
    if set(replicas) in (start, end):
        return Standing.STARTABLE
    return Standing.SETTLING if set(replicas) == start | end else Standing.ELSEWHERE


def observed(snapshot: ClusterSnapshot) -> ObservedCluster:
    """What a snapshot shows of any plan. It holds no throttles."""
    rows, names = snapshot.partitions, [str(topic.name) for topic in snapshot.topics]
    places = [(names[row.topic], row) for row in rows]
    return ObservedCluster(
        cluster_id=snapshot.cluster_id,
        brokers=frozenset(int(broker.id) for broker in snapshot.brokers if not broker.fenced),
        topic_ids={str(topic.name): topic.topic_id for topic in snapshot.topics},
        replicas={(name, row.partition): row.replicas for name, row in places},
        isr={(name, row.partition): row.isr for name, row in places},
        in_flight={
            (name, row.partition): InFlight(row.replicas, row.adding_replicas, row.removing_replicas)
            for name, row in places
            if row.adding_replicas or row.removing_replicas
        },
    )
