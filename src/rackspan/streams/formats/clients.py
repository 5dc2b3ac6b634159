"""The `clients` of a problem document, sorted in Kafka's order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rackspan.model.ids import RackId
from rackspan.streams.formats.documents import ClientDocument, refuse, without_duplicates
from rackspan.streams.formats.tasks import index_of
from rackspan.streams.problem import UNKNOWN, Client, ProcessId, process_order


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
