"""Readings of a cluster's logs, groups and counters: what bytes between racks are derived from."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rackspan.client.cluster import ConnectionSettings
from rackspan.errors import SourceError
from rackspan.sources.broker_counters import by_broker, read_counters
from rackspan.sources.live.clients import ReadClients, read_clients
from rackspan.sources.live.logs import read_logs
from rackspan.traffic import (
    BrokerBytes,
    ClusterLogs,
    ClusterReading,
    CountedBytes,
    bytes_out_between,
    counted_between,
)


@dataclass(frozen=True, slots=True, eq=False)
class TrafficReading:
    """The logs and groups before and after, and what gateways and brokers counted in between.

    `clients_before` is None if they were not read.
    """

    before: ClusterLogs
    after: ClusterLogs
    clients: ReadClients
    counted: CountedBytes = field(default_factory=dict)
    clients_before: ReadClients | None = None
    bytes_out: BrokerBytes = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return (self.after.read_at - self.before.read_at).total_seconds()

    @property
    def unread(self) -> tuple[str, ...]:
        """A line for each part that could not be read, in either reading."""
        earlier = () if self.clients_before is None else self.clients_before.unread
        return tuple(dict.fromkeys((*self.before.partial, *self.after.partial, *earlier, *self.clients.unread)))


def read_traffic(
    settings: ConnectionSettings,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    *,
    counters: Sequence[str] = (),
) -> TrafficReading:
    """Reads, waits so many seconds and reads again. `counters`: URLs of the metrics of gateways and brokers.

    Errors: those of read_logs, read_clients, read_counters and by_broker.
    """
    first = read_counters(counters)
    before, clients_before = read_logs(settings), read_clients(settings)
    sleep(seconds)
    after = read_logs(settings)
    last = read_counters(counters)
    counted = counted_between(first.gateways, last.gateways)
    sent = bytes_out_between(by_broker(first.brokers, before.snapshot), by_broker(last.brokers, after.snapshot))
    return TrafficReading(before, after, read_clients(settings), counted, clients_before, sent)


def read_everything(
    settings: ConnectionSettings, period_seconds: float, counters: Sequence[str] = ()
) -> ClusterReading:
    """One reading, for a collector that reads so often. A gateway or broker whose counters cannot be read is named in `partial`.

    Errors: those of read_logs and read_clients; UsageError for a URL that is none.
    """
    logs = read_logs(settings, starts=True)
    clients = read_clients(settings)
    counted: dict[str, CountedBytes] = {}
    sent: dict[int, Mapping[str, int]] = {}
    unread: list[str] = []
    for url in counters:
        try:
            read = read_counters([url])
            counted |= read.gateways
            sent |= by_broker(read.brokers, logs.snapshot)
        except SourceError as error:
            unread.append(str(error))
    partial = tuple(dict.fromkeys((*logs.partial, *clients.unread, *unread)))
    return ClusterReading(logs, clients.groups, clients.selectors, counted, period_seconds, partial, sent)
