"""The metrics of min.insync.racks for Prometheus, over HTTP on loopback (names and meaning: acks/metrics.py).

One endpoint for all brokers of a cluster, told apart by labels `broker` and `rack`. A series a partition is served only
where it is asked for: a cluster has few brokers and may have very many partitions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from rackspan.acks.metrics import METRICS, Kind, Metric, Scope
from rackspan.cluster.core.ids import TopicPartition
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId, RackId

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_LABELS: Final[Mapping[Scope, tuple[str, ...]]] = {
    Scope.BROKER: ("broker", "rack"),
    Scope.PARTITION: ("broker", "rack", "topic", "partition"),
}
_FAMILIES: Final[Mapping[Kind, type[GaugeMetricFamily] | type[CounterMetricFamily]]] = {
    Kind.GAUGE: GaugeMetricFamily,
    Kind.COUNTER: CounterMetricFamily,
}


@dataclass(frozen=True, slots=True)
class BrokerMetrics:
    """What one running broker says of itself, and of the partitions it leads where that is asked for."""

    broker: BrokerId
    rack: RackId | None
    values: Mapping[str, int]
    partitions: Mapping[TopicPartition, Mapping[str, int]] = field(default_factory=dict)


Read: TypeAlias = Callable[[], Iterable[BrokerMetrics]]


class MetricsServer:
    """Listening from its making to `close`. `listen` is HOST:PORT on loopback, port 0 for any free one."""

    def __init__(self, listen: str, read: Read, *, partitions: bool) -> None:
        host, port = loopback_address(listen)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Reading(read, partitions=partitions))
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except OSError as error:
            raise UsageError(
                f"metrics listener {listen}: {error.strerror}; choose another port, 0 for a free one"
            ) from error
        self.address = f"{host}:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def loopback_address(listen: str) -> tuple[str, int]:
    """Errors: UsageError for what is no address, or one that others could reach."""
    host, _, port = listen.rpartition(":")
    if host not in _LOOPBACK:
        raise UsageError(f"metrics listener {listen!r}: metrics are served on loopback alone; give 127.0.0.1:PORT")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"metrics listener {listen!r}: {port!r} is no port; give 127.0.0.1:PORT, 0 for a free one")
    return host, int(port)


class _Reading(Collector):
    """Reads at each scrape; nothing is counted in between."""

    def __init__(self, read: Read, *, partitions: bool) -> None:
        self._read = read
        self._scopes = (Scope.BROKER, Scope.PARTITION) if partitions else (Scope.BROKER,)

    def collect(self) -> Iterator[Family]:
        brokers = list(self._read())
        for metric in METRICS:
            if metric.scope in self._scopes:
                yield _family(metric, brokers)


def _family(metric: Metric, brokers: Iterable[BrokerMetrics]) -> Family:
    family = _FAMILIES[metric.kind](metric.name, metric.help, labels=_LABELS[metric.scope])
    for one in brokers:
        labels = (str(one.broker), one.rack or "")
        if metric.scope is Scope.BROKER:
            family.add_metric(labels, one.values[metric.name])
        else:
            for (topic, partition), values in one.partitions.items():
                family.add_metric((*labels, topic, str(partition)), values[metric.name])
    return family
