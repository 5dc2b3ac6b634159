"""The metrics of an embedded cluster's brokers for Prometheus: one endpoint for all of them, read at each scrape."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rackspan import exposition
from rackspan.acks.metrics import METRICS
from rackspan.exposition import BrokerMetrics, broker_families

Read: TypeAlias = Callable[[], Sequence[BrokerMetrics]]


class MetricsServer(exposition.MetricsServer):
    """Of what `read` says of the brokers that run."""

    def __init__(self, listen: str, read: Read, *, partitions: bool) -> None:
        super().__init__(listen, lambda: broker_families(METRICS, read(), partitions=partitions))
