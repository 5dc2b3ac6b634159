"""The `clients` of a problem, put in Kafka's order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rackspan.model.ids import INT32_MAX, RackId
from rackspan.streams.formats.json_values import (
    a_list,
    a_number,
    a_string,
    an_object,
    once,
    refuse,
    required,
    strings,
    unknown_keys,
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
    seen: set[tuple[int, int]] = set()
    for client in clients:
        order = process_order(client.process_id)
        if order in seen:
            refuse(f"client {client.process_id}", "listed twice; leave one of them out")
        seen.add(order)


@dataclass(frozen=True, slots=True)
class _ClientReader:
    tasks: Mapping[str, int]
    warnings: list[str] = field(default_factory=list)

    def client(self, value: object, place: str) -> Client:
        document = an_object(value, place)
        process_id = a_string(required(document, "process_id", place), f"{place}: process_id")
        place = f"client {process_id}"
        self.warnings.extend(unknown_keys(document, _KEYS, place))
        return Client(
            process_id=ProcessId(process_id),
            consumer_racks=_consumer_racks(document, place),
            threads=_threads(required(document, "threads", place), place),
            tags=_tags(document.get("tags"), place),
            prev_active=self._previous(document.get("prev_active"), f"{place}: prev_active"),
            prev_standby=self._previous(document.get("prev_standby"), f"{place}: prev_standby"),
            lags=self._lags(document.get("lags"), f"{place}: lags"),
        )

    def _previous(self, value: object, place: str) -> frozenset[int]:
        """Tasks of the last generation. One that no longer exists is a changed topology, not a mistake."""
        tasks = once(strings(value, place), place)
        gone = [task for task in tasks if task not in self.tasks]
        self.warnings.extend(f"{place}: task {task} is not among the tasks; ignored" for task in gone)
        return frozenset(self.tasks[task] for task in tasks if task in self.tasks)

    def _lags(self, value: object, place: str) -> dict[int, int]:
        document = an_object({} if value is None else value, place)
        return {index_of(self.tasks, task, place): _lag(lag, f"{place}: task {task}") for task, lag in document.items()}


def _lag(value: object, place: str) -> int:
    lag = a_number(value, place)
    if lag < UNKNOWN or lag == -1:
        refuse(place, f"is {lag}; a lag is 0 or more records, -2 where the task ran active, -3 where nobody knows")
    return lag


def _consumer_racks(document: Mapping[str, Any], place: str) -> tuple[RackId | None, ...]:
    """`rack` speaks for all consumers of the process; `consumers` gives each its own."""
    if document.get("consumers") is None:
        return (_rack(document.get("rack"), f"{place}: rack"),)
    if document.get("rack") is not None:
        refuse(place, "has both rack and consumers; leave one of them out")
    consumers = an_object(document["consumers"], f"{place}: consumers")
    return tuple(_rack(rack, f"{place}: consumer {consumer}") for consumer, rack in sorted(consumers.items()))


def _rack(value: object, place: str) -> RackId | None:
    # An empty client.rack is the same as none (KIP-392).
    return RackId(a_string(value, place)) if value not in (None, "") else None


def _threads(value: object, place: str) -> int:
    threads = a_number(value, f"{place}: threads")
    if not 1 <= threads <= INT32_MAX:
        refuse(place, f"threads is {threads}; a client has at least one")
    return threads


def _tags(value: object, place: str) -> dict[str, str]:
    document = an_object({} if value is None else value, f"{place}: tags")
    return {key: a_string(tag, f"{place}: tag {key}") for key, tag in document.items()}
