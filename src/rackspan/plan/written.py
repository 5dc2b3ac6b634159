"""A plan read back from its file, ready to be carried out: which replicas each partition gets, and which it had."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

TopicPartition: TypeAlias = tuple[str, int]


class Toward(StrEnum):
    """Where a plan is carried: to the replicas it names, or back to those it found."""

    TARGETS = "targets"
    ORIGINALS = "originals"


@dataclass(frozen=True, slots=True)
class PartitionMove:
    """One reassignment, preferred leader first. `undo`: the replicas that were there; () where the file does not say."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    undo: tuple[int, ...] = ()

    @property
    def place(self) -> TopicPartition:
        return self.topic, self.partition

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def end(self, toward: Toward) -> tuple[int, ...]:
        return self.replicas if toward is Toward.TARGETS else self.undo

    def start(self, toward: Toward) -> tuple[int, ...]:
        return self.undo if toward is Toward.TARGETS else self.replicas

    def arrivals(self, toward: Toward) -> tuple[int, ...]:
        """Brokers that receive a copy."""
        return tuple(broker for broker in self.end(toward) if broker not in self.start(toward))


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """Reassignments that run together. `number` counts from 1, as the file does."""

    number: int
    reason: str
    moves: tuple[PartitionMove, ...]

    def copies(self, toward: Toward) -> int:
        return sum(len(move.arrivals(toward)) for move in self.moves)


@dataclass(frozen=True)
class WrittenPlan:
    """Steps in the order of the file. `cluster_id` None and `topic_ids` empty where the file does not say.

    Each partition is in one step; whoever reads a file sees to that.
    """

    cluster_id: str | None
    topic_ids: Mapping[str, str] = field(hash=False)
    steps: tuple[WrittenStep, ...]

    def moves(self) -> Iterator[PartitionMove]:
        return (move for step in self.steps for move in step.moves)

    @cached_property
    def by_place(self) -> Mapping[TopicPartition, PartitionMove]:
        return {move.place: move for move in self.moves()}

    def copies(self, toward: Toward) -> Mapping[int, int]:
        """Replicas that each step copies, by its number."""
        return self._copies_back if toward is Toward.ORIGINALS else self._copies

    @cached_property
    def _copies(self) -> Mapping[int, int]:
        return {step.number: step.copies(Toward.TARGETS) for step in self.steps}

    @cached_property
    def _copies_back(self) -> Mapping[int, int]:
        return {step.number: step.copies(Toward.ORIGINALS) for step in self.steps}

    @property
    def says_undo(self) -> bool:
        return all(move.undo for move in self.moves())

    def in_order(self, toward: Toward) -> tuple[WrittenStep, ...]:
        """The way back passes the steps backwards: what was urgent last is undone first."""
        return self.steps if toward is Toward.TARGETS else self.steps[::-1]

    def same_targets(self, other: "WrittenPlan") -> bool:
        """Whether both lead the same partitions to the same replicas by the same steps."""
        return self._targets() == other._targets()

    def _targets(self) -> list[list[tuple[TopicPartition, tuple[int, ...]]]]:
        return [[(move.place, move.replicas) for move in step.moves] for step in self.steps]
