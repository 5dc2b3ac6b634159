"""What a run may do next. `decide` (decision.py) chooses an effect; `apply` carries it out and decides nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.events import Event
from rackspan.plan.execution.throttle import ConfigKey


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
    """AlterPartitionReassignments; `copies` is how many replicas are copied for it."""

    targets: Mapping[TopicPartition, tuple[int, ...]]
    copies: int


@dataclass(frozen=True, slots=True)
class CancelMoves:
    """AlterPartitionReassignments without replicas: Kafka restores the replicas that each partition had before."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ElectPreferredLeaders:
    """ElectLeaders, for preferred leaders: what is led by another replica is led by its first one afterwards."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Observe again later. `stalled`: what keeps the run from completing, as far as it shows."""

    stalled: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """The cluster is not what the plan assumed."""

    why: str


@dataclass(frozen=True, slots=True)
class Paused:
    """The run has copied as much as its limits allow; the next run resumes."""


@dataclass(frozen=True, slots=True)
class Finished:
    """Nothing is left to do. `owed`: configs of brokers that are gone, which keep our throttle."""

    owed: tuple[ConfigKey, ...] = ()


Effect: TypeAlias = (
    Record | SetConfigs | StartMoves | CancelMoves | ElectPreferredLeaders | Wait | Stop | Paused | Finished
)
