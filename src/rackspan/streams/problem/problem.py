"""The values of an assignment problem: a group's clients, its tasks in columns, and the racks of every partition."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from rackspan.errors import InvalidProblem
from rackspan.model.ids import RackId
from rackspan.streams.problem.config import AssignmentConfigs, check_client_tags
from rackspan.streams.problem.ids import ProcessId, TaskId

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LATEST: Final = -2
"""Lag of a task that ran active on that client (Task.LATEST_OFFSET)."""
UNKNOWN: Final = -3
"""Lag that is not known (SubscriptionInfo.UNKNOWN_OFFSET_SUM)."""


@dataclass(frozen=True, slots=True)
class Client:
    """One Kafka Streams process.

    `consumer_racks` holds `client.rack` of each of its consumers, None where unset. `threads` is its capacity. `lags` maps
    tasks to the lag of the client's state in records, or to LATEST or UNKNOWN; a task not in it was never on this client.
    """

    process_id: ProcessId
    consumer_racks: tuple[RackId | None, ...]
    threads: int
    tags: Mapping[str, str] = field(default_factory=dict)
    prev_active: frozenset[int] = frozenset()
    prev_standby: frozenset[int] = frozenset()
    lags: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InvalidProblem(f"client {self.process_id}: threads is {self.threads}; a client has at least one")
        check_client_tags(f"client {self.process_id}", self.tags)
        object.__setattr__(self, "tags", MappingProxyType(dict(sorted(self.tags.items()))))
        object.__setattr__(self, "lags", MappingProxyType(dict(self.lags)))

    @property
    def rack(self) -> RackId | None:
        """The rack of all its consumers; None when one has none, when they differ, or without consumers."""
        racks = set(self.consumer_racks)
        return racks.pop() if len(racks) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class PartitionLists:
    """The partitions of each task: task t reads `partition[offset[t]:offset[t + 1]]`."""

    offset: Int64s
    partition: Int32s

    def sizes(self) -> Int64s:
        return np.diff(self.offset)

    def of(self, task: int) -> Int32s:
        return self.partition[self.offset[task] : self.offset[task + 1]]


@dataclass(frozen=True, slots=True, eq=False)
class TaskColumns:
    """Tasks in Kafka's order. `subtopology` (T,) is a code, equal for tasks of one sub-topology."""

    ids: tuple[TaskId, ...]
    subtopology: Int32s
    stateful: Bools
    source: PartitionLists
    changelog: PartitionLists

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionRacks:
    """The racks in which partitions have replicas. R racks, those of the group's clients, by name; P partitions.

    `listed` (P,): whether the problem lists the partition. `replicas` (P,): the number of its replicas. `rackless` (P,):
    whether one is on a broker without a rack. `in_rack` (P, R): whether one is in that rack, leader or follower, in sync or
    not. `weight` (P,): the weight of the partition, 1 unless weights are used.
    """

    names: tuple[str, ...]
    listed: Bools
    replicas: Int32s
    rackless: Bools
    in_rack: Bools
    weight: Int64s


@dataclass(frozen=True, eq=False)
class Problem:
    """One group at one rebalance. Clients and tasks are in Kafka's order; all other values refer to them by position.

    `initial_active` (T,) is the client of each task before optimisation, None when the problem has no such assignment;
    `initial_standby` has each client's standby tasks.
    """

    configs: AssignmentConfigs
    clients: tuple[Client, ...]
    tasks: TaskColumns
    partitions: PartitionRacks
    racks: tuple[RackId, ...]
    initial_active: Int32s | None = None
    initial_standby: tuple[frozenset[int], ...] | None = None
    warnings: tuple[str, ...] = ()

    @cached_property
    def client_rack(self) -> Int32s:
        """Rack code of each client, −1 without one. Shape (C,)."""
        code_of: Mapping[RackId | None, int] = {rack: code for code, rack in enumerate(self.racks)}
        return np.array([code_of.get(client.rack, -1) for client in self.clients], dtype=np.int32)

    @cached_property
    def threads(self) -> Int64s:
        return np.array([client.threads for client in self.clients], dtype=np.int64)

    @cached_property
    def stateful(self) -> Int32s:
        """Positions of the stateful tasks, ascending."""
        return np.flatnonzero(self.tasks.stateful).astype(np.int32)

    @cached_property
    def stateless(self) -> Int32s:
        return np.flatnonzero(~self.tasks.stateful).astype(np.int32)


def client_racks(clients: Sequence[Client]) -> tuple[RackId, ...]:
    """The racks of the clients, sorted by name, so that equal groups have equal codes."""
    return tuple(sorted({client.rack for client in clients if client.rack is not None}))
