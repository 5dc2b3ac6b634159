"""The values of an assignment problem: clients, tasks and partitions of one Kafka Streams group, its configs, and the options
that rackspan adds to Kafka, all of them off by default.

Assigns nothing and reads no JSON: that is formats.py. Whether racks count for a group is in rack_awareness.py.
"""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Final, NewType

import numpy as np
import numpy.typing as npt

from rackspan.errors import InvalidProblem, UsageError
from rackspan.model.ids import INT32_MAX, INT64_MAX, RackId

TaskId = NewType("TaskId", str)
ProcessId = NewType("ProcessId", str)

_TASK: Final = re.compile(r"(?:(.+)__)?([0-9]{1,10})_([0-9]{1,10})")
_TOPIC_PARTITION: Final = re.compile(r"(.+):([0-9]{1,10})")


def task_order(task: str) -> tuple[str, int, int]:
    """Sort key of Kafka's TaskId: topology name, sub-topology, partition. Errors: InvalidProblem."""
    match = _TASK.fullmatch(task)
    if match is None:
        raise InvalidProblem(f"task {task!r}: an id is SUBTOPOLOGY_PARTITION, such as 0_3; fix it in the file")
    topology, subtopology, partition = match.groups()
    if max(int(subtopology), int(partition)) > INT32_MAX:
        raise InvalidProblem(f"task {task!r}: both numbers of an id are at most {INT32_MAX}; fix it in the file")
    return topology or "", int(subtopology), int(partition)


def process_order(process_id: str) -> tuple[int, int]:
    """Sort key of Java's UUID: both 64-bit halves as signed numbers. Errors: InvalidProblem."""
    try:
        value = uuid.UUID(process_id)
    except ValueError:
        value = None
    if value is None or str(value) != process_id.lower():
        raise InvalidProblem(
            f"client {process_id!r}: a process id is a UUID such as 00000000-0000-0000-0000-000000000001; fix it in the file"
        )
    return _signed(value.int >> 64), _signed(value.int & (2**64 - 1))


def _signed(half: int) -> int:
    return half - 2**64 if half >= 2**63 else half


def topic_of(topic_partition: str) -> str:
    """The topic of TOPIC:PARTITION. Errors: InvalidProblem."""
    match = _TOPIC_PARTITION.fullmatch(topic_partition)
    if match is None:
        raise InvalidProblem(f"partition {topic_partition!r}: it is written TOPIC:NUMBER; fix it in the file")
    return match[1]


class Beyond(StrEnum):
    """An option beyond the behaviour of released Kafka."""

    RACK_SPREAD_STANDBYS = "rack-spread-standbys"
    """Standbys in other racks than their active task and each other, without tags (KIP-925, 4.C.2 and 4.C.3)."""
    JOINT_STANDBYS = "joint-standbys"
    """All standbys optimised at once, at a cost never above that of Kafka's exchanges between pairs of clients."""
    FLOATING_QUOTAS = "floating-quotas"
    """The remainder of an uneven division of tasks goes where it costs least; the total cost is never higher."""
    PREVIOUS_OVERLAP = "previous-overlap"
    """An active task that leaves the client where it ran before the rebalance costs the overlap (KIP-925, end of 4.B), not one
    that leaves the client where the assignor has just put it. A task that ran nowhere keeps Kafka's rule."""
    PARTITION_WEIGHTS = "partition-weights"
    """A partition counts by its weight (bytes, records) instead of as 1."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that are on. None is on for Kafka's behaviour."""

    beyond: frozenset[Beyond] = frozenset()

    def __contains__(self, option: Beyond) -> bool:
        return option in self.beyond


KAFKA = Options()


def options_named(*names: str) -> Options:
    """Options by name. Errors: UsageError."""
    known = {option.value for option in Beyond}
    for name in names:
        if name not in known:
            raise UsageError(f"option {name!r} is unknown; choose among {', '.join(sorted(known))}")
    return Options(frozenset(Beyond(name) for name in names))


class Strategy(StrEnum):
    """`rack.aware.assignment.strategy`."""

    NONE = "none"
    MIN_TRAFFIC = "min_traffic"
    BALANCE_SUBTOPOLOGY = "balance_subtopology"


STRATEGY_NAMES: Final[Mapping[str, Strategy]] = MappingProxyType(
    {
        **{strategy.value: strategy for strategy in Strategy},
        # The names in KIP-925 itself, which has them in capitals too.
        "NONE": Strategy.NONE,
        "min_cost": Strategy.MIN_TRAFFIC,
        "MIN_COST": Strategy.MIN_TRAFFIC,
        "balanced_min_cost": Strategy.BALANCE_SUBTOPOLOGY,
        "BALANCED_MIN_COST": Strategy.BALANCE_SUBTOPOLOGY,
    }
)

MAX_RACK_AWARE_TAGS: Final = 5
"""StreamsConfig refuses more (KIP-708)."""
MAX_TAG_KEY_LENGTH: Final = 20
MAX_TAG_VALUE_LENGTH: Final = 30

ALL_CAUGHT_UP: Final = INT64_MAX
"""`acceptable.recovery.lag` at Java's Long.MAX_VALUE: every client is caught up, so there are no warm-ups."""

MIN_PROBING_INTERVAL_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of one partition read across racks, and of one task that leaves its client (KIP-925, 4.B.III)."""

    traffic: int
    non_overlap: int


HIGH_AVAILABILITY_COSTS: Final = Costs(traffic=10, non_overlap=1)
STICKY_COSTS: Final = Costs(traffic=1, non_overlap=10)
STATELESS_COSTS: Final = Costs(traffic=1, non_overlap=0)
"""Whatever the configs: a stateless task has nothing to restore."""


@dataclass(frozen=True, slots=True)
class AssignmentConfigs:
    """One group's configs. Checked once, here; a cost of None stands for the assignor's default.

    Kafka does not validate the costs. With a negative one more traffic or more moves would be cheaper, so it is refused here.
    """

    strategy: Strategy = Strategy.NONE
    enabled: bool = True
    traffic_cost: int | None = None
    non_overlap_cost: int | None = None
    num_standbys: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    probing_rebalance_interval_ms: int = 600_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _refuse_outside("rack.aware.assignment.traffic_cost", self.traffic_cost, 0, INT32_MAX)
        _refuse_outside("rack.aware.assignment.non_overlap_cost", self.non_overlap_cost, 0, INT32_MAX)
        _refuse_outside("num.standby.replicas", self.num_standbys, 0, INT32_MAX)
        _refuse_outside("max.warmup.replicas", self.max_warmup_replicas, 1, INT32_MAX)
        _refuse_outside("acceptable.recovery.lag", self.acceptable_recovery_lag, 0, INT64_MAX)
        _refuse_outside(
            "probing.rebalance.interval.ms", self.probing_rebalance_interval_ms, MIN_PROBING_INTERVAL_MS, INT64_MAX
        )
        _check_tag_keys(self.rack_aware_assignment_tags)

    def costs(self, default: Costs) -> Costs:
        """The configured costs of stateful tasks, with `default` for a cost of None."""
        return Costs(
            traffic=default.traffic if self.traffic_cost is None else self.traffic_cost,
            non_overlap=default.non_overlap if self.non_overlap_cost is None else self.non_overlap_cost,
        )


def strategy_named(name: str) -> Strategy:
    """A strategy by its name in Kafka or in KIP-925. Errors: UsageError."""
    if name not in STRATEGY_NAMES:
        raise UsageError(
            f"rack.aware.assignment.strategy is {name!r}; choose none, min_traffic (min_cost in KIP-925) or "
            "balance_subtopology (balanced_min_cost)"
        )
    return STRATEGY_NAMES[name]


def check_client_tags(path: str, tags: Mapping[str, str]) -> None:
    """KIP-708's limits on one client's `client.tag.*`. Errors: UsageError."""
    if len(tags) > MAX_RACK_AWARE_TAGS:
        raise UsageError(f"{path}: {len(tags)} client tags, but Kafka allows {MAX_RACK_AWARE_TAGS}; drop some")
    for key, value in tags.items():
        if len(key) > MAX_TAG_KEY_LENGTH or len(value) > MAX_TAG_VALUE_LENGTH:
            raise UsageError(
                f"{path}: client.tag.{key} is too long; a key has at most {MAX_TAG_KEY_LENGTH} characters, a value {MAX_TAG_VALUE_LENGTH}"
            )


def _refuse_outside(key: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{key} is {value}, outside {least} to {most}; fix it in the file")


def _check_tag_keys(keys: tuple[str, ...]) -> None:
    if len(keys) > MAX_RACK_AWARE_TAGS:
        raise UsageError(
            f"rack.aware.assignment.tags names {len(keys)} tags, but Kafka allows {MAX_RACK_AWARE_TAGS}; drop some"
        )
    if len(set(keys)) < len(keys):
        raise UsageError(f"rack.aware.assignment.tags names a tag twice: {', '.join(keys)}; leave one of them out")


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
