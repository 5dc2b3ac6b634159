"""A reassignment plan as one value, from the planner to the cluster.

`reassign.plan` computes it, `plan.order_steps` orders it, `plan.plan_document` and `plan.read_plan` write and read it, `apply`
executes it. A million reassignments are four arrays; `PartitionReassignment` is a row, made on demand.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from rackspan.errors import InvalidReassignment, UsageError
from rackspan.model import (
    INT32_MAX,
    NO_BROKER,
    Bools,
    ClusterSnapshot,
    Int32s,
    Int64s,
    TopicPartition,
    count_in_row,
    padded_lists,
    unpadded,
)
from rackspan.model.partitions import listed_in
from rackspan.reassign.plan_cost import Conflict, PlanCost


class Direction(StrEnum):
    """Which end of a plan a run works towards: the replicas it names, or those it replaces."""

    TARGETS = "targets"
    ORIGINALS = "originals"


@dataclass(frozen=True, slots=True)
class PartitionReassignment:
    """The new replicas of one partition, preferred leader first. `undo`: the replicas they replace, () where not known."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    undo: tuple[int, ...] = ()

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def end(self, direction: Direction) -> tuple[int, ...]:
        return self.replicas if direction is Direction.TARGETS else self.undo

    def start(self, direction: Direction) -> tuple[int, ...]:
        return self.undo if direction is Direction.TARGETS else self.replicas

    def additions(self, direction: Direction) -> tuple[int, ...]:
        """Brokers that receive a copy."""
        return tuple(broker for broker in self.end(direction) if broker not in self.start(direction))


@dataclass(frozen=True, slots=True, eq=False)
class ReassignmentColumns:
    """N reassignments as arrays; iterating makes rows.

    `topic` (N,) is an index into `topics`, `partition` (N,). `replicas` and `undo` (N, as wide as needed) are padded with
    NO_BROKER on the right; a row of `undo` that is all padding is not known.
    """

    topics: Sequence[str]
    topic: Int32s
    partition: Int32s
    replicas: Int32s
    undo: Int32s

    def __len__(self) -> int:
        return len(self.topic)

    def __iter__(self) -> Iterator[PartitionReassignment]:
        for topic, partition, replicas, undo in zip(
            self.topic.tolist(), self.partition.tolist(), self.replicas, self.undo, strict=True
        ):
            yield PartitionReassignment(self.topics[topic], partition, unpadded(replicas), unpadded(undo))

    def take(self, entries: Int64s) -> "ReassignmentColumns":
        """The entries at these positions, in that order."""
        return ReassignmentColumns(
            self.topics, self.topic[entries], self.partition[entries], self.replicas[entries], self.undo[entries]
        )

    @property
    def is_added(self) -> Bools:
        """Which of `replicas` are copied to a new broker. Shape as `replicas`."""
        added = self.replicas != NO_BROKER
        for column in self.undo.T:
            added &= self.replicas != column[:, None]
        return np.asarray(added)

    @property
    def additions(self) -> Int64s:
        """Copies that each entry needs, |target − current|: reordering and removing copy nothing. Shape (N,)."""
        return count_in_row(self.is_added)


def reassignment_columns(rows: Iterable[PartitionReassignment]) -> ReassignmentColumns:
    """Errors: InvalidReassignment for ids beyond Kafka's own, which are 32 bits wide."""
    listed = list(rows)
    for row in listed:
        beyond = [broker for broker in (*row.replicas, *row.undo) if broker > INT32_MAX]
        if beyond:
            raise InvalidReassignment(f"{row.name} names broker {max(beyond)}; an id is {INT32_MAX} at most")
        if abs(row.partition) > INT32_MAX:
            raise InvalidReassignment(f"{row.name}: a partition id is {INT32_MAX} at most")
    codes = {topic: code for code, topic in enumerate(dict.fromkeys(row.topic for row in listed))}
    return ReassignmentColumns(
        topics=tuple(codes),
        topic=np.array([codes[row.topic] for row in listed], dtype=np.int32),
        partition=np.array([row.partition for row in listed], dtype=np.int32),
        replicas=padded_lists([row.replicas for row in listed]),
        undo=padded_lists([row.undo for row in listed]),
    )


@dataclass(frozen=True, eq=False)
class Step:
    """Reassignments that run together, once the step before is done.

    `number` counts from 1. `bytes`: what the step copies, as far as sizes are known; None where a file does not say.
    """

    number: int
    reason: str
    columns: ReassignmentColumns
    bytes: int | None = None

    @classmethod
    def of(
        cls, number: int, reason: str, partitions: Iterable[PartitionReassignment], size_bytes: int | None = None
    ) -> "Step":
        return cls(number, reason, reassignment_columns(partitions), size_bytes)

    @cached_property
    def partitions(self) -> tuple[PartitionReassignment, ...]:
        return tuple(self.columns)

    @cached_property
    def moves(self) -> int:
        """Replicas that the step copies."""
        return int(self.columns.additions.sum())

    def copies(self, direction: Direction) -> int:
        """The number of replicas copied in this direction."""
        return self.moves if direction is Direction.TARGETS else self._moves_back

    @cached_property
    def _moves_back(self) -> int:
        return sum(len(partition.additions(Direction.ORIGINALS)) for partition in self.partitions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[object, ...]:
        return self.number, self.reason, self.bytes, self.partitions


@dataclass(frozen=True)
class ReassignmentPlan:
    """Steps in the order of execution; each partition is in one step.

    `cluster_id` None and `topic_ids` empty where a file does not say. `cost` None for a file of another tool.
    """

    cluster_id: str | None
    topic_ids: Mapping[str, str] = field(hash=False)
    steps: tuple[Step, ...]
    cost: PlanCost | None = None

    def __len__(self) -> int:
        """Partitions whose replica list changes, reordered ones included."""
        return sum(len(step.columns) for step in self.steps)

    def partitions(self) -> Iterator[PartitionReassignment]:
        return (partition for step in self.steps for partition in step.partitions)

    def columns(self) -> ReassignmentColumns:
        """All of it, in the order of the steps."""
        parts = [step.columns for step in self.steps]
        if not parts or any(part.topics is not parts[0].topics for part in parts):
            return reassignment_columns(self.partitions())
        # Steps of one planner share their topics: a million rows need not be made for this.
        width = max(part.replicas.shape[1] for part in parts)
        undo = max(part.undo.shape[1] for part in parts)
        return ReassignmentColumns(
            topics=parts[0].topics,
            topic=np.concatenate([part.topic for part in parts]),
            partition=np.concatenate([part.partition for part in parts]),
            replicas=np.concatenate([_widened(part.replicas, width) for part in parts]),
            undo=np.concatenate([_widened(part.undo, undo) for part in parts]),
        )

    @cached_property
    def by_partition(self) -> Mapping[TopicPartition, PartitionReassignment]:
        return {partition.topic_partition: partition for partition in self.partitions()}

    @property
    def moves(self) -> int:
        """Replicas that the plan copies."""
        return sum(step.moves for step in self.steps)

    @property
    def infeasible(self) -> tuple[Conflict, ...]:
        """What of the request the plan does not meet, as far as it states its cost."""
        return () if self.cost is None else self.cost.infeasible

    @property
    def has_undo(self) -> bool:
        return all(partition.undo for partition in self.partitions())

    def in_order(self, direction: Direction) -> tuple[Step, ...]:
        """Undoing takes the last step first."""
        return self.steps if direction is Direction.TARGETS else self.steps[::-1]

    def same_targets(self, other: "ReassignmentPlan") -> bool:
        """Whether both lead the same partitions to the same replicas by the same steps."""
        return self._targets() == other._targets()

    def _targets(self) -> list[list[tuple[TopicPartition, tuple[int, ...]]]]:
        return [
            [(partition.topic_partition, partition.replicas) for partition in step.partitions] for step in self.steps
        ]

    def without(self, left_out: Collection[TopicPartition]) -> "ReassignmentPlan":
        """The plan without these partitions."""
        kept = (
            (step, [partition for partition in step.partitions if partition.topic_partition not in left_out])
            for step in self.steps
        )
        steps = (Step.of(step.number, step.reason, partitions) for step, partitions in kept if partitions)
        return replace(self, steps=tuple(steps)) if left_out else self

    def for_cluster(self, cluster_id: str) -> "ReassignmentPlan":
        """The same plan, its cluster named: what a file of another tool lacks. Errors: UsageError where it names another."""
        if self.cluster_id not in (None, cluster_id):
            raise UsageError(f"--cluster-id {cluster_id}: the plan is for cluster {self.cluster_id}; name one of them")
        return replace(self, cluster_id=cluster_id)


def snapshot_after(
    snapshot: ClusterSnapshot, plan: ReassignmentPlan, removed_brokers: frozenset[int] = frozenset()
) -> ClusterSnapshot:
    """The snapshot once the plan is done: new replicas in sync, the preferred replica leading. One that stays in a failed log directory does neither.

    `removed_brokers` are gone too, where they hold nothing any more. Audit it to see how the plan ends.
    """
    columns = [step.columns for step in plan.steps if len(step.columns)]
    before = snapshot.partitions
    width = max(before.replicas.shape[1], *(column.replicas.shape[1] for column in columns), 0)
    replicas, isr, leader = _widened(before.replicas, width), _widened(before.isr, width), before.leader.copy()
    for column in columns:
        rows = snapshot_rows(snapshot, column)
        replicas[rows] = _widened(column.replicas, width)
        failed = listed_in(column.replicas, before.offline_replicas[rows])
        in_sync = np.where(failed, np.int32(NO_BROKER), column.replicas)
        isr[rows] = _widened(in_sync, width)
        leader[rows] = in_sync[np.arange(len(rows)), (~failed).argmax(axis=1)]
    offline = np.where(listed_in(before.offline_replicas, replicas), before.offline_replicas, np.int32(NO_BROKER))
    removed = removed_brokers - set(np.unique(replicas).tolist())
    return replace(
        snapshot,
        brokers=tuple(broker for broker in snapshot.brokers if broker.id not in removed),
        partitions=replace(before, replicas=replicas, isr=isr, leader=leader, offline_replicas=offline),
    )


def snapshot_rows(snapshot: ClusterSnapshot, columns: ReassignmentColumns) -> Int64s:
    """The snapshot's row of each entry. Errors: InvalidReassignment for a partition that it does not hold."""
    rows, held = rows_held(snapshot, columns)
    missing = np.flatnonzero(~held)
    if len(missing):
        (first,) = columns.take(missing[:1])
        raise InvalidReassignment(f"{first.name}: the snapshot does not hold it; plan on a newer snapshot")
    return rows


def rows_held(snapshot: ClusterSnapshot, columns: ReassignmentColumns) -> tuple[Int64s, Bools]:
    """The snapshot's row of each entry, and whether it holds the partition; the row of another one means nothing."""
    code_of: dict[str, int] = {topic.name: code for code, topic in enumerate(snapshot.topics)}
    codes = np.array([code_of.get(topic, -1) for topic in columns.topics], dtype=np.int64)
    keys = _keys(snapshot.partitions.topic.astype(np.int64), snapshot.partitions.partition)
    wanted = _keys(codes[columns.topic], columns.partition)
    # Snapshots are ordered by topic and partition, so the keys ascend.
    rows = np.searchsorted(keys, wanted)
    return rows, np.asarray(np.append(keys, -1)[rows] == wanted)


def _keys(topic: Int64s, partition: Int32s) -> Int64s:
    return np.asarray(topic * (INT32_MAX + 1) + partition)


def _widened(matrix: Int32s, width: int) -> Int32s:
    return np.pad(matrix, ((0, 0), (0, max(0, width - matrix.shape[1]))), constant_values=NO_BROKER)
