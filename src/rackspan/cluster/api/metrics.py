"""The metrics of an embedded cluster's brokers for Prometheus: one endpoint for all of them, read at each scrape."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rackspan import prometheus_metrics
from rackspan.acks.metrics import METRICS
from rackspan.prometheus_metrics import BrokerMetrics, broker_families

Read: TypeAlias = Callable[[], Sequence[BrokerMetrics]]


class MetricsServer(prometheus_metrics.MetricsServer):
    """Of what `read` says of the brokers that run."""

    def __init__(self, listen: str, read: Read, *, partitions: bool) -> None:
        super().__init__(listen, lambda: broker_families(METRICS, read(), partitions=partitions))
