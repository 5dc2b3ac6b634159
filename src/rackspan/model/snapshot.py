"""ClusterSnapshot: the state of a cluster at one time, the input of audits and planners."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from rackspan.errors import InvalidSnapshot
from rackspan.model.broker import Broker, Controller
from rackspan.model.ids import NO_BROKER, UNKNOWN_LEADER, BrokerId
from rackspan.model.partitions import (
    UNKNOWN_SIZE,
    Bools,
    Int32s,
    PartitionColumns,
    any_in_row,
    any_outside,
    lengths,
    sorted_in_row,
)
from rackspan.model.topic import Topic

SIZES: Final = "sizes"
"""The beginning of a note in `partial` about sizes of partitions, which no constraint needs."""
MOVES: Final = "reassignments under way"
"""The beginning of a note in `partial` about which partitions are being reassigned."""


GAP_PERIODS: Final = 3
"""A snapshot or reading says something for so many periods of its collector: beyond them, without another one, nothing is known."""

VERSION: Final = 1
"""Of the snapshot document, and of a snapshot's Parquet folder."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterSnapshot:
    """The state of a cluster at one time. Immutable, and checked once, here.

    Brokers are ordered by id, topics by name, partitions by topic and partition id. `partial` says in words what could
    not be read; a judge that needs it says so. `taken_at` is in UTC.
    """

    brokers: tuple[Broker, ...]
    topics: tuple[Topic, ...]
    partitions: PartitionColumns
    cluster_id: str | None = None
    taken_at: datetime | None = None
    controllers: tuple[Controller, ...] = ()
    partial: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.brokers:
            raise InvalidSnapshot(
                "no brokers: a cluster has at least one; take the snapshot again with rackspan snapshot"
            )
        _refuse_twice("broker", [broker.id for broker in self.brokers])
        _refuse_twice("controller", [controller.id for controller in self.controllers])
        _refuse_twice("topic", [topic.name for topic in self.topics])
        if self.taken_at is not None and self.taken_at.tzinfo is None:
            raise InvalidSnapshot(f"taken_at {self.taken_at.isoformat()}: the offset is missing; end it with Z for UTC")
        if self.taken_at is not None:
            object.__setattr__(self, "taken_at", _in_utc(self.taken_at))
        _sort_brokers_and_topics(self)
        _check_partitions(self.topics, self.partitions)

    def same_as(self, other: "ClusterSnapshot") -> bool:
        """Whether both are equal, whatever the padding of their columns."""
        return self._head() == other._head() and self.partitions.same_as(other.partitions)

    def _head(self) -> tuple[object, ...]:
        return (
            self.cluster_id,
            self.taken_at,
            self.controllers,
            self.partial,
            self.brokers,
            [(topic.name, topic.topic_id, topic.internal, dict(topic.config)) for topic in self.topics],
        )

    @property
    def unread(self) -> tuple[str, ...]:
        """What could not be read and is needed to judge: `partial` without the sizes of partitions."""
        return tuple(note for note in self.partial if not note.startswith(SIZES))

    @property
    def may_be_moving(self) -> bool:
        """Whether a partition is being reassigned, or which are could not be read."""
        rows = self.partitions
        known = not any(note.startswith(MOVES) for note in self.partial)
        return not known or bool(
            (rows.adding_replicas != NO_BROKER).any() or (rows.removing_replicas != NO_BROKER).any()
        )

    def broker(self, broker_id: int) -> Broker | None:
        return next((broker for broker in self.brokers if broker.id == BrokerId(broker_id)), None)


def known_until(taken_at: datetime, period_seconds: float) -> datetime:
    """Until when a snapshot or reading says something, if no other one follows. `period_seconds` is how often its collector takes one."""
    return taken_at + timedelta(seconds=GAP_PERIODS * period_seconds)


def _in_utc(time: datetime) -> datetime:
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InvalidSnapshot(
            f"taken_at {time.isoformat()}: beyond the years 1 to 9999 in UTC; fix it in the file"
        ) from None


def _refuse_twice(what: str, names: Sequence[object]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise InvalidSnapshot(f"{what} {name}: listed twice; leave one of them out")


def _sort_brokers_and_topics(snapshot: ClusterSnapshot) -> None:
    """Canonical order, so that equal clusters have equal snapshots whatever their source."""
    by_name = sorted(range(len(snapshot.topics)), key=lambda code: snapshot.topics[code].name)
    new_code = np.empty(len(by_name), dtype=np.int32)
    new_code[by_name] = np.arange(len(by_name), dtype=np.int32)
    old = snapshot.partitions
    if len(old) and not (old.topic.min() >= 0 and old.topic.max() < len(by_name)):
        raise InvalidSnapshot("a partition names a topic that is not in the snapshot; take the snapshot again")
    topic = new_code[old.topic]
    order = np.lexsort((old.partition, topic))
    if not np.array_equal(order, np.arange(len(order))) or not np.array_equal(topic, old.topic):
        object.__setattr__(snapshot, "partitions", replace(old.take(order), topic=topic[order]))
    object.__setattr__(snapshot, "topics", tuple(snapshot.topics[code] for code in by_name))
    object.__setattr__(snapshot, "brokers", tuple(sorted(snapshot.brokers, key=lambda broker: broker.id)))
    object.__setattr__(
        snapshot, "controllers", tuple(sorted(snapshot.controllers, key=lambda controller: controller.id))
    )


def _check_partitions(topics: tuple[Topic, ...], rows: PartitionColumns) -> None:
    def refuse(index: int, why: str) -> None:
        raise InvalidSnapshot(f"{topics[rows.topic[index]].name}-{rows.partition[index]}: {why}")

    for wrong, why in (
        (rows.partition < 0, "a partition id is negative; fix it in the file"),
        (
            rows.leader < UNKNOWN_LEADER,
            "leader: expected a broker id, -1 for none, or -2 if it is not known; fix it in the file",
        ),
        (_negative(rows.replicas), "a broker id in replicas is negative; fix it in the file"),
        (_negative(rows.isr), "a broker id in isr is negative; fix it in the file"),
        (_negative(rows.adding_replicas), "a broker id in adding_replicas is negative; fix it in the file"),
        (_negative(rows.removing_replicas), "a broker id in removing_replicas is negative; fix it in the file"),
        (_negative(rows.offline_replicas), "a broker id in offline_replicas is negative; fix it in the file"),
        (rows.size_bytes < UNKNOWN_SIZE, "size_bytes is negative; fix it in the file"),
        (_same_as_previous(rows), "listed twice; leave one of them out"),
        (~any_in_row(rows.replicas != NO_BROKER), "replicas is empty; a partition has at least one replica"),
        (
            _twice_in_row(rows.replicas),
            "a broker holds a partition once, but replicas names one twice; fix it in the file",
        ),
        (_twice_in_row(rows.isr), "isr names a broker twice; fix it in the file"),
        (
            (rows.leader >= 0) & ~any_in_row(rows.replicas == rows.leader[:, None]),
            "the leader is not one of its replicas, which Kafka never reports; take the snapshot again",
        ),
        (
            any_outside(rows.isr, rows.replicas),
            "isr names a broker that is not one of its replicas, which Kafka never reports; take the snapshot again",
        ),
        (
            any_outside(rows.offline_replicas, rows.replicas),
            "offline_replicas names a broker that is not one of its replicas, which Kafka never reports; take the snapshot again",
        ),
        (_twice_in_row(rows.adding_replicas), "adding_replicas names a broker twice; fix it in the file"),
        (_twice_in_row(rows.removing_replicas), "removing_replicas names a broker twice; fix it in the file"),
        (
            any_outside(rows.adding_replicas, rows.replicas) | any_outside(rows.removing_replicas, rows.replicas),
            "adding_replicas or removing_replicas names a broker that is not one of its replicas, which Kafka never reports; take the snapshot again",
        ),
        (
            _any_in_both(rows.adding_replicas, rows.removing_replicas),
            "a broker is in adding_replicas and in removing_replicas, which Kafka never reports; take the snapshot again",
        ),
        (
            lengths(rows.replicas) == lengths(rows.removing_replicas),
            "removing_replicas names all of its replicas, which Kafka never reports; take the snapshot again",
        ),
    ):
        if wrong.any():
            refuse(int(np.argmax(wrong)), why)


def _negative(matrix: Int32s) -> Bools:
    return any_in_row(matrix < NO_BROKER)


def _same_as_previous(rows: PartitionColumns) -> Bools:
    same = np.zeros(len(rows), dtype=np.bool_)
    same[1:] = (rows.topic[1:] == rows.topic[:-1]) & (rows.partition[1:] == rows.partition[:-1])
    return same


def _any_in_both(some: Int32s, others: Int32s) -> Bools:
    both = np.zeros(len(some), dtype=np.bool_)
    for column in some.T:
        both |= (column != NO_BROKER) & any_in_row(others == column[:, None])
    return both


def _twice_in_row(matrix: Int32s) -> Bools:
    ordered = sorted_in_row(matrix)
    return any_in_row((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_BROKER))


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """A snapshot and the warnings about its document."""

    snapshot: ClusterSnapshot
    warnings: tuple[str, ...]
