"""What a run may do next. `decide` (execution.py) chooses; the room `apply` does it and decides nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rackspan.plan.execution.events import Event
from rackspan.plan.execution.throttle import ConfigKey
from rackspan.plan.written import TopicPartition


@dataclass(frozen=True, slots=True)
class Record:
    """Write this into the journal, on the disk, before anything else."""

    event: Event


@dataclass(frozen=True, slots=True)
class SetConfigs:
    """Set configs of topics and brokers; None takes the value away."""

    values: Mapping[ConfigKey, str | None]


@dataclass(frozen=True, slots=True)
class StartMoves:
    """AlterPartitionReassignments; `copies` is what it costs."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    copies: int


@dataclass(frozen=True, slots=True)
class CancelMoves:
    """AlterPartitionReassignments without replicas: Kafka goes back to where each came from."""

    places: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Look again later. `stalled` says what keeps it from ever ending, as far as can be seen."""

    stalled: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The cluster is not what the plan assumed."""

    why: str


@dataclass(frozen=True, slots=True)
class Paused:
    """This run's movement is used up; the next one goes on."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left to do. `owed`: configs of brokers that are gone, which keep our throttle."""

    owed: tuple[ConfigKey, ...] = ()


Effect: TypeAlias = Record | SetConfigs | StartMoves | CancelMoves | Wait | Stop | Paused | Finished
