"""The assignment problem as JSON, read strictly into a Problem, and the document of an assignment. Errors name the task, client
or partition. The keys are described in docs/formats.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, NoReturn, TypeVar

import numpy as np
from msgspec import Meta, Struct, structs

from rackspan import documents
from rackspan.documents import InvalidDocument, unknown_keys
from rackspan.errors import InvalidProblem
from rackspan.model.ids import INT32_MAX, RackId
from rackspan.model.topic import parse_config_list
from rackspan.streams.problem import (
    UNKNOWN,
    AssignmentConfigs,
    Client,
    Int32s,
    Int64s,
    PartitionLists,
    PartitionRacks,
    Problem,
    ProcessId,
    Strategy,
    TaskColumns,
    TaskId,
    client_racks,
    process_order,
    strategy_named,
    task_order,
    topic_of,
)

T = TypeVar("T")


class ClientDocument(Struct):
    """A process of the application. `rack` is that of all its consumers, `consumers` gives each one's own."""

    SHOWN: ClassVar[str] = "client {process_id}"

    process_id: str
    threads: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    rack: str | None = None
    consumers: dict[str, str | None] | None = None
    tags: dict[str, str] | None = None
    prev_active: list[str] | None = None
    prev_standby: list[str] | None = None
    lags: dict[str, int] | None = None


class TaskDocument(Struct, forbid_unknown_fields=True):
    """A task. Unknown keys are refused: what a mistyped key was to say would be missing."""

    SHOWN: ClassVar[str] = "task {id}"

    id: str
    source: list[str]
    stateful: bool = False
    changelog: list[str] | None = None


class ProblemDocument(Struct):
    """The whole document. `partitions` gives the racks of each partition's replicas, null for a broker without one."""

    tasks: list[TaskDocument]
    clients: list[ClientDocument]
    partitions: dict[str, list[str | None] | None]
    config: dict[str, object] | None = None
    initial_active: dict[str, list[str]] | None = None
    initial_standby: dict[str, list[str]] | None = None
    partition_weights: dict[str, int] | None = None
    name: object = None
    seed: object = None


def convert(document: object, declared: type[T], name: str) -> T:
    """Errors: InvalidProblem."""
    try:
        return documents.convert(document, declared, name)
    except InvalidDocument as error:
        raise InvalidProblem(str(error)) from None


def refuse(path: str, why: str) -> NoReturn:
    """Errors: InvalidProblem, always."""
    raise InvalidProblem(f"{path}: {why}")


def without_duplicates(items: list[str] | None, path: str) -> list[str]:
    """`items`, refused when one is listed twice; null is an empty list."""
    items = items or []
    if len(set(items)) < len(items):
        duplicate = next(item for index, item in enumerate(items) if item in items[:index])
        refuse(path, f"names {duplicate} twice; leave one of them out")
    return items


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task as read; `order` is its sort key."""

    order: tuple[str, int, int]
    id: TaskId
    stateful: bool
    source: list[str]
    changelog: list[str]


def read_tasks(given: Sequence[TaskDocument]) -> tuple[Mapping[str, int], list[TaskRow]]:
    """Task id → position, and the rows in that order. Errors: InvalidProblem."""
    rows = sorted(map(_row, given), key=_order)
    for before, row in pairwise(rows):
        if before.order == row.order:
            refuse(f"task {row.id}", "listed twice; leave one of them out")
    return {row.id: position for position, row in enumerate(rows)}, rows


def index_of(names: Mapping[str, int], task: str, path: str) -> int:
    """Position of a task. Errors: InvalidProblem."""
    if task not in names:
        refuse(path, f"task {task} is not among the tasks; add it or leave it out")
    return names[task]


def _order(row: TaskRow) -> tuple[str, int, int]:
    return row.order


def _row(given: TaskDocument) -> TaskRow:
    path = f"task {given.id}"
    source = _partitions(given.source, f"{path}: source")
    if not source:
        refuse(path, "has no source partitions; a task reads at least one")
    return TaskRow(
        order=task_order(given.id),
        id=TaskId(given.id),
        stateful=given.stateful,
        source=source,
        changelog=_partitions(given.changelog, f"{path}: changelog"),
    )


def _partitions(listed: list[str] | None, path: str) -> list[str]:
    names = without_duplicates(listed, path)
    for name in names:
        topic_of(name)
    return names


MAX_WEIGHT: Final = 2**40
"""A TiB in bytes: sums over a million tasks then stay within 64 bits."""


def read_partitions(
    listed: Mapping[str, list[str | None] | None],
    weights: Mapping[str, int] | None,
    rows: Sequence[TaskRow],
    racks: tuple[RackId, ...],
) -> tuple[PartitionRacks, TaskColumns]:
    """The columns of partitions, sorted by name, and of tasks, in the order of `rows`."""
    needed = {name for row in rows for name in (*row.source, *row.changelog)}
    names = tuple(sorted(needed | listed.keys()))
    position = {name: index for index, name in enumerate(names)}
    partitions = _columns(names, listed, racks, _weights(names, needed, weights))
    return partitions, _task_columns(rows, position)


def _columns(
    names: tuple[str, ...], listed: Mapping[str, list[str | None] | None], racks: tuple[RackId, ...], weight: Int64s
) -> PartitionRacks:
    code_of: Mapping[str | None, int] = {rack: code for code, rack in enumerate(racks)}
    replicas = np.zeros(len(names), dtype=np.int32)
    rackless = np.zeros(len(names), dtype=np.bool_)
    in_rack = np.zeros((len(names), len(racks)), dtype=np.bool_)
    for index, name in enumerate(names):
        topic_of(name)  # Refuses a name that is no partition's.
        replica_racks = listed.get(name) or []
        replicas[index] = len(replica_racks)
        rackless[index] = None in replica_racks
        in_rack[index, [code_of[rack] for rack in replica_racks if rack in code_of]] = True
    return PartitionRacks(
        names=names,
        listed=np.array([name in listed for name in names], dtype=np.bool_),
        replicas=replicas,
        rackless=rackless,
        in_rack=in_rack,
        weight=weight,
    )


def _weights(names: tuple[str, ...], needed: set[str], weights: Mapping[str, int] | None) -> Int64s:
    if weights is None:
        return np.ones(len(names), dtype=np.int64)
    for name in sorted(weights.keys() - set(names)):
        refuse("partition_weights", f"partition {name} is not among the partitions; add it or leave it out")
    return np.array([_weight(name, weights, name in needed) for name in names], dtype=np.int64)


def _weight(name: str, weights: Mapping[str, int], needed: bool) -> int:
    if name not in weights:
        if needed:
            refuse(f"partition {name}", "has no weight; give every partition of a task one in partition_weights")
        return 0
    weight = weights[name]
    if not 0 <= weight <= MAX_WEIGHT:
        refuse(f"partition {name}", f"weight is {weight}, outside 0 to {MAX_WEIGHT}; give weights in a larger unit")
    return weight


def _task_columns(rows: Sequence[TaskRow], position: Mapping[str, int]) -> TaskColumns:
    families = sorted({row.order[:2] for row in rows})
    code_of = {family: code for code, family in enumerate(families)}
    return TaskColumns(
        ids=tuple(row.id for row in rows),
        subtopology=np.array([code_of[row.order[:2]] for row in rows], dtype=np.int32),
        stateful=np.array([row.stateful for row in rows], dtype=np.bool_),
        source=_lists([row.source for row in rows], position),
        changelog=_lists([row.changelog for row in rows], position),
    )


def _lists(lists: Sequence[list[str]], position: Mapping[str, int]) -> PartitionLists:
    offset = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(names) for names in lists], out=offset[1:])
    partition = np.array([position[name] for names in lists for name in names], dtype=np.int32)
    return PartitionLists(offset, partition)


def read_clients(given: Sequence[ClientDocument], tasks: Mapping[str, int]) -> tuple[tuple[Client, ...], list[str]]:
    """Clients in Kafka's order, and warnings. Errors: InvalidProblem, UsageError for tags beyond Kafka's limits."""
    reader = _ClientReader(tasks)
    clients = [reader.client(client) for client in given]
    if not clients:
        refuse("clients", "there are none; a group has at least one")
    _refuse_twice(clients)
    return tuple(sorted(clients, key=lambda client: process_order(client.process_id))), reader.warnings


def _refuse_twice(clients: list[Client]) -> None:
    orders: set[tuple[int, int]] = set()
    for client in clients:
        order = process_order(client.process_id)
        if order in orders:
            refuse(f"client {client.process_id}", "listed twice; leave one of them out")
        orders.add(order)


@dataclass(frozen=True, slots=True)
class _ClientReader:
    tasks: Mapping[str, int]
    warnings: list[str] = field(default_factory=list)

    def client(self, given: ClientDocument) -> Client:
        path = f"client {given.process_id}"
        return Client(
            process_id=ProcessId(given.process_id),
            consumer_racks=_consumer_racks(given, path),
            threads=given.threads,
            tags=given.tags or {},
            prev_active=self._previous(given.prev_active, f"{path}: prev_active"),
            prev_standby=self._previous(given.prev_standby, f"{path}: prev_standby"),
            lags=self._lags(given.lags or {}, f"{path}: lags"),
        )

    def _previous(self, listed: list[str] | None, path: str) -> frozenset[int]:
        """Tasks of the last generation. One that no longer exists gives a warning: the topology has changed."""
        tasks = without_duplicates(listed, path)
        gone = [task for task in tasks if task not in self.tasks]
        self.warnings.extend(f"{path}: task {task} is not among the tasks; ignored" for task in gone)
        return frozenset(self.tasks[task] for task in tasks if task in self.tasks)

    def _lags(self, lags: Mapping[str, int], path: str) -> dict[int, int]:
        return {index_of(self.tasks, task, path): _lag(lag, f"{path}: task {task}") for task, lag in lags.items()}


def _lag(lag: int, path: str) -> int:
    if lag < UNKNOWN or lag == -1:
        refuse(path, f"is {lag}; a lag is 0 or more records, -2 where the task ran active, -3 where it is unknown")
    return lag


def _consumer_racks(given: ClientDocument, path: str) -> tuple[RackId | None, ...]:
    """The racks of a client's consumers."""
    if given.consumers is None:
        return (_rack(given.rack),)
    if given.rack is not None:
        refuse(path, "has both rack and consumers; leave one of them out")
    return tuple(_rack(rack) for _, rack in sorted(given.consumers.items()))


def _rack(rack: str | None) -> RackId | None:
    # An empty client.rack is the same as none (KIP-392).
    return RackId(rack) if rack else None


class ConfigsDocument(Struct):
    """The configs by short key. Ranges are those of `AssignmentConfigs`."""

    strategy: str | None = None
    enabled: bool | None = None
    traffic_cost: int | None = None
    non_overlap_cost: int | None = None
    num_standbys: int | None = None
    max_warmup_replicas: int | None = None
    acceptable_recovery_lag: int | None = None
    probing_rebalance_interval_ms: int | None = None
    rack_aware_assignment_tags: tuple[str, ...] | str | None = None
    """A string is a list as Kafka's properties have it: separated by commas."""


KAFKA_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rack.aware.assignment.strategy": "strategy",
        "rack.aware.assignment.enabled": "enabled",
        "rack.aware.assignment.traffic_cost": "traffic_cost",
        "rack.aware.assignment.non_overlap_cost": "non_overlap_cost",
        "rack.aware.assignment.tags": "rack_aware_assignment_tags",
        "num.standby.replicas": "num_standbys",
        "max.warmup.replicas": "max_warmup_replicas",
        "acceptable.recovery.lag": "acceptable_recovery_lag",
        "probing.rebalance.interval.ms": "probing_rebalance_interval_ms",
    }
)

_RACK_AWARE_KEYS: Final = tuple(
    key for key in (*KAFKA_KEYS, *KAFKA_KEYS.values()) if key.startswith(("rack.aware.", "rack_aware_"))
)


def read_configs(document: Mapping[str, object]) -> tuple[AssignmentConfigs, list[str]]:
    """Configs by short keys or Kafka's own, null for Kafka's default, and warnings. Errors: InvalidProblem for a wrong type, UsageError for a value out of range."""
    given = _by_short_key(document)
    read = structs.asdict(convert(given, ConfigsDocument, "config"))
    # Each key has a type of its own, which mypy does not follow through `**`.
    configs: dict[str, Any] = {key: value for key, value in read.items() if value is not None}
    if "strategy" in configs:
        configs["strategy"] = strategy_named(configs["strategy"])
    tags = configs.get("rack_aware_assignment_tags")
    if isinstance(tags, str):
        configs["rack_aware_assignment_tags"] = parse_config_list(tags)
    unknown = [f"config: unknown key {key!r} ignored" for key in sorted(given.keys() - read)]
    return AssignmentConfigs(**configs), unknown


def _by_short_key(document: Mapping[str, object]) -> dict[str, object]:
    given: dict[str, object] = {}
    for key, value in document.items():
        _refuse_misspelt(key)
        short = KAFKA_KEYS.get(key, key)
        if short in given:
            refuse("config", f"{short} is given twice, also as {key}; leave one of them out")
        if value is not None:
            given[short] = value
    return given


def _refuse_misspelt(key: str) -> None:
    """Refuse an unknown rack.aware.* key: with a warning alone, rack awareness would be off or at other costs than meant.

    Other unknown keys are configs of Kafka Streams that do not count for an assignment, and are warned of.
    """
    if key.replace("_", ".").startswith("rack.aware") and key not in _RACK_AWARE_KEYS:
        [nearest] = get_close_matches(key, _RACK_AWARE_KEYS, n=1, cutoff=0)
        refuse("config", f"{key} is unknown; the nearest key is {nearest}")


def from_document(document: object, weighted: bool = False) -> Problem:
    """Build a problem from parsed JSON. With `weighted` a partition counts by its `partition_weights` instead of as 1.

    Errors: InvalidProblem, UsageError, one line each.
    """
    given = convert(document, ProblemDocument, "problem")
    if weighted and given.partition_weights is None:
        refuse("problem", "partition_weights is missing; add it and run again")
    configs, config_warnings = read_configs(given.config or {})
    names, sources = read_tasks(given.tasks)
    clients, client_warnings = read_clients(given.clients, names)
    racks = client_racks(clients)
    weights = given.partition_weights if weighted else None
    partitions, tasks = read_partitions(given.partitions, weights, sources, racks)
    reader = _InitialReader({client.process_id: index for index, client in enumerate(clients)}, names, tasks)
    unknown = [
        f"{place}: unknown key {key!r} ignored" for place, key in unknown_keys(document, ProblemDocument, "problem")
    ]
    problem = Problem(
        configs,
        clients,
        tasks,
        partitions,
        racks,
        initial_active=reader.active(given.initial_active),
        initial_standby=reader.standby(given.initial_standby),
        warnings=(*unknown, *config_warnings, *client_warnings),
    )
    _check_holders(problem)
    _check_changelogs(configs, tasks, problem.initial_standby)
    return problem


@dataclass(frozen=True, slots=True)
class _InitialReader:
    """Reads the clients of each task before optimisation."""

    clients: Mapping[ProcessId, int]
    names: Mapping[str, int]
    tasks: TaskColumns

    def active(self, given: Mapping[str, list[str]] | None) -> Int32s | None:
        if given is None:
            return None
        owner = np.full(len(self.tasks), -1, dtype=np.int32)
        for client, tasks in enumerate(self._by_client(given, "initial_active")):
            for task in tasks:
                if owner[task] >= 0:
                    refuse(f"task {self.tasks.ids[task]}", "is active on two clients; leave one of them out")
                owner[task] = client
        if (owner < 0).any():
            refuse(
                f"task {self.tasks.ids[int(np.argmax(owner < 0))]}",
                "is active on no client; add it to initial_active",
            )
        return owner

    def standby(self, given: Mapping[str, list[str]] | None) -> tuple[frozenset[int], ...] | None:
        if given is None:
            return None
        held = tuple(frozenset(tasks) for tasks in self._by_client(given, "initial_standby"))
        for task in sorted(frozenset[int]().union(*held)):
            if not self.tasks.stateful[task]:
                refuse(
                    f"task {self.tasks.ids[task]}", "is stateless and has no standbys; take it out of initial_standby"
                )
        return held

    def _by_client(self, given: Mapping[str, list[str]], path: str) -> list[list[int]]:
        held: list[list[int]] = [[] for _ in self.clients]
        for process_id, listed in given.items():
            if process_id not in self.clients:
                refuse(path, f"client {process_id} is not among the clients; add it or leave it out")
            tasks = without_duplicates(listed, f"{path}: client {process_id}")
            held[self.clients[ProcessId(process_id)]] = [index_of(self.names, task, path) for task in tasks]
        return held


def _check_holders(problem: Problem) -> None:
    """Refuse a task that is active and standby on one client."""
    if problem.initial_active is None or problem.initial_standby is None:
        return
    for client, held in enumerate(problem.initial_standby):
        for task in sorted(held):
            if problem.initial_active[task] == client:
                _refuse_both_roles(problem.clients[client], problem.tasks.ids[task])


def _refuse_both_roles(client: Client, task: str) -> None:
    refuse(f"task {task}", f"is active and standby on client {client.process_id}; a standby is on another client")


def _check_changelogs(
    configs: AssignmentConfigs, tasks: TaskColumns, standby: tuple[frozenset[int], ...] | None
) -> None:
    """Refuse a task whose standbys have no changelog to price them by: Kafka throws an exception in mid-assignment."""
    if configs.strategy is Strategy.NONE or not (configs.num_standbys or any(standby or ())):
        return
    unpriced = tasks.stateful & (tasks.changelog.sizes() == 0)
    if unpriced.any():
        task = tasks.ids[int(np.argmax(unpriced))]
        subtopology = task.rpartition("_")[0]
        refuse(
            f"task {task}",
            "is stateful but has no changelog to price its standbys by; add it, or give streams audit "
            f"--changelog {subtopology}=TOPIC",
        )
