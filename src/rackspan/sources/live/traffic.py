"""Readings of a cluster's logs, groups and counters: what bytes between racks are derived from."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rackspan.client.cluster import ConnectionSettings
from rackspan.errors import SourceError, UsageError
from rackspan.sources.broker_counters import ReadCounters, by_broker, read_counters
from rackspan.sources.live.clients import ReadClients, read_clients
from rackspan.sources.live.cluster import steady_clock
from rackspan.sources.live.logs import read_logs
from rackspan.traffic import ClusterLogs, ClusterReading, CountedBytes, Interval


def read_traffic(
    settings: ConnectionSettings,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    *,
    counters: Sequence[str] = (),
    of_brokers: bool = True,
) -> Interval:
    """Reads, waits so many seconds and reads again. `counters`: URLs of the metrics of gateways and, `of_brokers`, of brokers.

    Errors: those of read_logs, read_clients, read_counters and by_broker; UsageError for a broker's counters unless `of_brokers`.
    """
    first = read_counters(counters)
    if first.brokers and not of_brokers:
        raise UsageError(
            f"--counters {next(iter(first.brokers))}: advice does not depend on what brokers count; give the metrics of gateways only, and to "
            "rackspan traffic those of brokers"
        )
    now = steady_clock()

    def reading() -> ClusterReading:
        # Counters last both times: what is read before them takes as long, so that they span what the logs do.
        return _reading(read_logs(settings, now=now), read_clients(settings), read_counters(counters), seconds)

    before = reading()
    sleep(seconds)
    return Interval(before, reading())


def read_everything(
    settings: ConnectionSettings, period_seconds: float, counters: Sequence[str] = ()
) -> ClusterReading:
    """One reading, for a collector that reads so often. A gateway or broker whose counters cannot be read is named in `partial`.

    Errors: those of read_logs and read_clients; UsageError for a URL that is none.
    """
    reading = _reading(read_logs(settings, starts=True), read_clients(settings), ReadCounters({}, {}), period_seconds)
    counted: dict[str, CountedBytes] = {}
    sent: dict[int, Mapping[str, int]] = {}
    unread: list[str] = []
    for url in counters:
        try:
            read = read_counters([url])
            counted |= read.gateways
            sent |= by_broker(read.brokers, reading.snapshot)
        except SourceError as error:
            unread.append(str(error))
    return replace(reading, counters=counted, bytes_out=sent, partial=tuple(dict.fromkeys((*reading.partial, *unread))))


def _reading(logs: ClusterLogs, clients: ReadClients, counters: ReadCounters, period_seconds: float) -> ClusterReading:
    partial, sent = tuple(dict.fromkeys((*logs.partial, *clients.unread))), by_broker(counters.brokers, logs.snapshot)
    return ClusterReading(logs, clients.groups, clients.selectors, counters.gateways, period_seconds, partial, sent)
