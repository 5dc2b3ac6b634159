"""Two readings of a cluster's logs some seconds apart, and its groups: what bytes between racks are derived from."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rackspan.client.cluster import ConnectionSettings
from rackspan.sources.gateway_counters import counting
from rackspan.sources.live.clients import ReadClients, read_clients
from rackspan.sources.live.logs import read_logs
from rackspan.traffic import ClusterLogs, CountedBytes


@dataclass(frozen=True, slots=True, eq=False)
class TrafficReading:
    """The logs before and after, the groups after, and what gateways counted in between."""

    before: ClusterLogs
    after: ClusterLogs
    clients: ReadClients
    counted: CountedBytes = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return (self.after.read_at - self.before.read_at).total_seconds()

    @property
    def unread(self) -> tuple[str, ...]:
        """A line for each part that could not be read, in either reading."""
        return tuple(dict.fromkeys((*self.before.partial, *self.after.partial, *self.clients.unread)))


def read_traffic(
    settings: ConnectionSettings,
    seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    *,
    counters: Sequence[str] = (),
) -> TrafficReading:
    """Reads, waits so many seconds and reads again. `counters`: URLs of gateways' metrics.

    Errors: those of read_logs, read_clients and gateway_counters.
    """
    counted = counting(counters)
    before = read_logs(settings)
    sleep(seconds)
    after = read_logs(settings)
    passed = counted()
    return TrafficReading(before, after, read_clients(settings), passed)
