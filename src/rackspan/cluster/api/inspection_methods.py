"""What an embedded cluster tells of itself: a snapshot for the judges, metrics, traffic, how it stands."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from rackspan.cluster.api.fault_methods import Outcome
from rackspan.cluster.api.status import ClusterStatus, cluster_status
from rackspan.cluster.context.record_traffic import Flow
from rackspan.cluster.host.assembly import Assembly
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId

if TYPE_CHECKING:
    from rackspan.cluster.api.metrics import MetricsServer
    from rackspan.model.snapshot import ClusterSnapshot


class InspectionMethods(ABC):
    """For callers outside the cluster's thread: every method returns with what it read there."""

    _metrics: "MetricsServer | None"

    @abstractmethod
    def _do(self, work: Coroutine[Any, Any, Outcome]) -> Outcome:
        """Do it in the cluster's thread and wait."""

    @property
    @abstractmethod
    def _whole(self) -> Assembly:
        """The cluster that runs. Errors: UsageError if none does."""

    def snapshot(self) -> "ClusterSnapshot":
        """This moment, as `rackspan audit` judges it."""
        from rackspan.cluster.api.snapshot import snapshot

        async def taken() -> "ClusterSnapshot":
            whole = self._whole
            disks = {broker: host.disk.logs for broker, host in whole.hosts.items()}
            return snapshot(whole.image, whole.settings, disks, whole.cluster_id, whole.clock.now())

        return self._do(taken())

    def metrics(self) -> dict[BrokerId, dict[str, int]]:
        """The metrics of min.insync.racks by broker and by the names they are served under; of running brokers."""

        async def read() -> dict[BrokerId, dict[str, int]]:
            return {broker: host.runner.core.metrics() for broker, host in self._whole.hosts.items() if host.running}

        return self._do(read())

    def serve_metrics(self, listen: str = "127.0.0.1:0", *, partitions: bool = False) -> str:
        """Serve them to Prometheus over HTTP on loopback, until `close`; HOST:PORT of it, a free port for 0.

        `partitions` adds a series for each partition. Errors: UsageError, off loopback too.
        """
        # Imported here: few clusters are scraped, and every cluster would wait for it.
        from rackspan.cluster.api.metrics import MetricsServer
        from rackspan.prometheus_metrics import BrokerMetrics

        async def taken() -> list[BrokerMetrics]:
            running = [host for host in self._whole.hosts.values() if host.running]
            return [
                BrokerMetrics(
                    host.id,
                    host.rack,
                    host.runner.core.metrics(),
                    [(*one, values) for one, values in host.runner.core.partition_metrics().items()]
                    if partitions
                    else (),
                )
                for host in running
            ]

        if self._metrics is not None:
            raise UsageError(f"this cluster serves its metrics already, at {self._metrics.address}")
        self._metrics = MetricsServer(listen, lambda: self._do(taken()), partitions=partitions)
        return self._metrics.address

    @property
    def metrics_address(self) -> str | None:
        """HOST:PORT where its metrics are served, if they are."""
        return None if self._metrics is None else self._metrics.address

    def traffic(self) -> dict[Flow, int]:
        """Bytes of records that have flowed, by path, topic, client and racks."""
        return self._whole.traffic.flows()

    def status(self) -> ClusterStatus:
        """How brokers, links and partitions stand, for whoever reads of a failure."""

        async def taken() -> ClusterStatus:
            return cluster_status(self._whole)

        return self._do(taken())
