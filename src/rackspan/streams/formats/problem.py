"""The assignment problem as JSON, read strictly into a Problem. Errors name the task, client or partition."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rackspan.documents import unknown_keys
from rackspan.streams.formats.clients import read_clients
from rackspan.streams.formats.configs import read_configs
from rackspan.streams.formats.documents import ProblemDocument, convert, refuse, without_duplicates
from rackspan.streams.formats.partitions import read_partitions
from rackspan.streams.formats.tasks import index_of, read_tasks
from rackspan.streams.problem import (
    AssignmentConfigs,
    Client,
    Int32s,
    Problem,
    ProcessId,
    Strategy,
    TaskColumns,
    client_racks,
)


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
    if configs.strategy is Strategy.NONE or not (configs.num_standbys or standby):
        return
    unpriced = tasks.stateful & (tasks.changelog.sizes() == 0)
    if unpriced.any():
        task = tasks.ids[int(np.argmax(unpriced))]
        subtopology = task.partition("_")[0]
        refuse(
            f"task {task}",
            "is stateful but has no changelog to price its standbys by; add it, or give streams audit "
            f"--changelog {subtopology}=TOPIC",
        )
