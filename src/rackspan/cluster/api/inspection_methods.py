"""InspectionMethods: what an embedded cluster reports about itself: a snapshot, metrics, traffic, status."""

from typing import TYPE_CHECKING

from rackspan.cluster.api.blocking import ThreadedCluster, blocking
from rackspan.cluster.api.status import ClusterStatus, cluster_status
from rackspan.cluster.context import Flow
from rackspan.errors import UsageError
from rackspan.model.ids import BrokerId

if TYPE_CHECKING:
    from rackspan.cluster.host.broker_host import BrokerHost
    from rackspan.model.snapshot import ClusterSnapshot
    from rackspan.prometheus_metrics.families import BrokerMetrics
    from rackspan.prometheus_metrics.server import MetricsServer


class InspectionMethods(ThreadedCluster):
    """For callers in other threads: every method returns what it has read in the cluster's thread."""

    _metrics_server: "MetricsServer | None"

    @blocking
    async def snapshot(self) -> "ClusterSnapshot":
        """A snapshot as `rackspan audit` reads it."""
        from rackspan.cluster.api.snapshot import snapshot

        cluster = self._running
        disks = {broker: host.disk.logs for broker, host in cluster.hosts.items()}
        return snapshot(cluster.image, cluster.settings, disks, cluster.cluster_id, cluster.clock.now())

    @blocking
    async def metrics(self) -> dict[BrokerId, dict[str, int]]:
        """The metrics of min.insync.racks of each running broker, by the names they are served under."""
        return {broker: host.runner.core.metrics() for broker, host in self._running.hosts.items() if host.running}

    def serve_metrics(self, listen: str = "127.0.0.1:0", *, partitions: bool = False) -> str:
        """Serve the metrics to Prometheus over HTTP on loopback until `close`. Returns its HOST:PORT; port 0 is a free one.

        `partitions` adds a series for each partition. Errors: UsageError, also for an address off loopback.
        """
        if self._metrics_server is not None:
            raise UsageError(f"this cluster serves its metrics already, at {self._metrics_server.address}")
        # Imported here: few clusters serve metrics, and every start of a cluster would pay for the import.
        from rackspan.acks.metrics import METRICS
        from rackspan.prometheus_metrics.families import broker_families
        from rackspan.prometheus_metrics.server import MetricsServer

        self._metrics_server = MetricsServer(
            listen,
            lambda: broker_families(METRICS, self._broker_metrics(partitions=partitions), partitions=partitions),
        )
        return self._metrics_server.address

    @blocking
    async def _broker_metrics(self, *, partitions: bool) -> "list[BrokerMetrics]":
        from rackspan.prometheus_metrics.families import BrokerMetrics

        def of(host: "BrokerHost") -> BrokerMetrics:
            core = host.runner.core
            by_partition = core.partition_metrics().items() if partitions else ()
            return BrokerMetrics(
                host.id, host.rack, core.metrics(), [(*partition, values) for partition, values in by_partition]
            )

        return [of(host) for host in self._running.hosts.values() if host.running]

    @property
    def metrics_address(self) -> str | None:
        """HOST:PORT where its metrics are served, None where they are not."""
        return None if self._metrics_server is None else self._metrics_server.address

    def traffic(self) -> dict[Flow, int]:
        """Bytes of records since the start, by path, topic, client and racks."""
        return self._running.traffic.flows()

    @blocking
    async def fetched_by(self, group: str) -> dict[Flow, int]:
        """The part of `traffic` that consumers of the group fetched. Errors: UsageError for a client id that several groups have."""
        return self._running.traffic.fetched_by(group)

    @blocking
    async def status(self) -> ClusterStatus:
        """The state of brokers, links and partitions, for the report of a failure."""
        return cluster_status(self._running)
