"""The `clients` of a problem document, sorted in Kafka's order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rackspan.model.ids import INT32_MAX, RackId
from rackspan.streams.formats.json_values import (
    a_list,
    a_number,
    a_string,
    an_object,
    refuse,
    required,
    strings,
    unknown_keys,
    without_duplicates,
)
from rackspan.streams.formats.tasks import index_of
from rackspan.streams.problem import UNKNOWN, Client, ProcessId, process_order

_KEYS: Final = frozenset({"process_id", "rack", "consumers", "threads", "tags", "prev_active", "prev_standby", "lags"})


def read_clients(value: object, tasks: Mapping[str, int]) -> tuple[tuple[Client, ...], list[str]]:
    """Clients in Kafka's order, and warnings. Errors: InvalidProblem, UsageError for tags beyond Kafka's limits."""
    reader = _ClientReader(tasks)
    clients = [reader.client(item, f"clients[{index}]") for index, item in enumerate(a_list(value, "clients"))]
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

    def client(self, value: object, path: str) -> Client:
        document = an_object(value, path)
        process_id = a_string(required(document, "process_id", path), f"{path}: process_id")
        path = f"client {process_id}"
        self.warnings.extend(unknown_keys(document, _KEYS, path))
        return Client(
            process_id=ProcessId(process_id),
            consumer_racks=_consumer_racks(document, path),
            threads=_threads(required(document, "threads", path), path),
            tags=_tags(document.get("tags"), path),
            prev_active=self._previous(document.get("prev_active"), f"{path}: prev_active"),
            prev_standby=self._previous(document.get("prev_standby"), f"{path}: prev_standby"),
            lags=self._lags(document.get("lags"), f"{path}: lags"),
        )

    def _previous(self, value: object, path: str) -> frozenset[int]:
        """Tasks of the last generation. One that no longer exists gives a warning: the topology has changed."""
        tasks = without_duplicates(strings(value, path), path)
        gone = [task for task in tasks if task not in self.tasks]
        self.warnings.extend(f"{path}: task {task} is not among the tasks; ignored" for task in gone)
        return frozenset(self.tasks[task] for task in tasks if task in self.tasks)

    def _lags(self, value: object, path: str) -> dict[int, int]:
        document = an_object({} if value is None else value, path)
        return {index_of(self.tasks, task, path): _lag(lag, f"{path}: task {task}") for task, lag in document.items()}


def _lag(value: object, path: str) -> int:
    lag = a_number(value, path)
    if lag < UNKNOWN or lag == -1:
        refuse(path, f"is {lag}; a lag is 0 or more records, -2 where the task ran active, -3 where it is unknown")
    return lag


def _consumer_racks(document: Mapping[str, Any], path: str) -> tuple[RackId | None, ...]:
    """The racks of a client's consumers: `rack` is that of all of them, `consumers` lists each one's own."""
    if document.get("consumers") is None:
        return (_rack(document.get("rack"), f"{path}: rack"),)
    if document.get("rack") is not None:
        refuse(path, "has both rack and consumers; leave one of them out")
    consumers = an_object(document["consumers"], f"{path}: consumers")
    return tuple(_rack(rack, f"{path}: consumer {consumer}") for consumer, rack in sorted(consumers.items()))


def _rack(value: object, path: str) -> RackId | None:
    # An empty client.rack is the same as none (KIP-392).
    return RackId(a_string(value, path)) if value not in (None, "") else None


def _threads(value: object, path: str) -> int:
    threads = a_number(value, f"{path}: threads")
    if not 1 <= threads <= INT32_MAX:
        refuse(path, f"threads is {threads}; a client has at least one")
    return threads


def _tags(value: object, path: str) -> dict[str, str]:
    document = an_object({} if value is None else value, f"{path}: tags")
    return {key: a_string(tag, f"{path}: tag {key}") for key, tag in document.items()}
