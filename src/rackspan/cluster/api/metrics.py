"""The metrics of an embedded cluster's brokers for Prometheus: one HTTP endpoint for all of them, read at each scrape."""

from collections.abc import Callable, Sequence

from rackspan.acks.metrics import METRICS
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.prometheus_metrics.families import BrokerMetrics, broker_families
from rackspan.prometheus_metrics.server import MetricsServer


def serve_metrics(listen: str, read: Callable[[], Sequence[BrokerMetrics]], *, partitions: bool) -> MetricsServer:
    """Serve what `read` returns at each scrape, until the server is closed."""
    return MetricsServer(listen, lambda: broker_families(METRICS, read(), partitions=partitions))


def broker_metrics(host: BrokerHost, *, partitions: bool) -> BrokerMetrics:
    """The metrics of one running broker, with those of its partitions where `partitions` is set."""
    core = host.runner.core
    by_partition = core.partition_metrics() if partitions else {}
    return BrokerMetrics(
        host.id, host.rack, core.metrics(), [(*partition, values) for partition, values in by_partition.items()]
    )
