"""The placer's view of the cluster: replicas of all partitions, and the defaults of new topics."""

from typing import TYPE_CHECKING

from rackspan.errors import ClusterRequestFailed
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import Broker
from rackspan.placement.cluster_placer import ClusterPlacer, PlacementRefusal
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import DescribeConfigsRequestData, DescribeConfigsResource
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData

if TYPE_CHECKING:
    from rackspan.gateway.core.placement import PlacedCounts


class ClusterLoad:
    """The replicas and defaults of the cluster, each read at most once for a request."""

    def __init__(self, cluster: UpstreamCluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, list[tuple[int, ...]]] | None = None
        self._placed: tuple[PlacedCounts, tuple[Broker, ...]] | None = None
        """What is placed on each broker, and the registered brokers."""
        self._defaults: dict[str, int] | None = None

    async def defaults(self) -> dict[str, int]:
        """num.partitions, default.replication.factor and auto.create.topics.enable of one broker."""
        if self._defaults is None:
            broker, connection = await self._cluster.any_broker()
            keys = ["num.partitions", "default.replication.factor", "auto.create.topics.enable"]
            resource = DescribeConfigsResource(
                resource_type=ConfigResourceType.BROKER, resource_name=str(broker), configuration_keys=keys
            )
            response = await connection.call(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequestData(resources=[resource]))
            (result,) = response.results
            if result.error_code != ErrorCode.NONE:
                raise ClusterRequestFailed(
                    f"broker {broker}'s num.partitions and default.replication.factor cannot be read: "
                    f"{result.error_message or result.error_code}; grant the gateway's principal DESCRIBE_CONFIGS on the cluster"
                )
            values = {config.name: config.value for config in result.configs}
            self._defaults = {
                "num.partitions": int(values.get("num.partitions") or 1),
                "default.replication.factor": int(values.get("default.replication.factor") or 1),
                "auto.create.topics.enable": int(values.get("auto.create.topics.enable") == "true"),
            }
        return self._defaults

    async def rows(self, topic: str) -> list[tuple[int, ...]]:
        """The replicas of a topic's partitions, in order; empty if it does not exist."""
        return (await self._all()).get(topic, [])

    async def _all(self) -> dict[str, list[tuple[int, ...]]]:
        if self._rows is None:
            connection = await self._cluster.any_connection()
            request = MetadataRequestData(topics=None, allow_auto_topic_creation=False)
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
            self._rows = {
                topic.name or "": [
                    tuple(partition.replica_nodes)
                    for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
                ]
                for topic in metadata.topics
            }
        return self._rows

    async def place(
        self, placer: ClusterPlacer, start: int, partitions: int, factor: int, *, automatic: bool = False
    ) -> tuple[tuple[int, ...], ...] | PlacementRefusal:
        """The replicas of new partitions. Errors: OSError, RackspanError."""
        # Imported here: placers need NumPy, and few gateways place.
        from rackspan.gateway.core.placement import PlacedCounts, place

        if self._placed is None:
            await self._cluster.refresh()
            counts = PlacedCounts(row for rows in (await self._all()).values() for row in rows)
            self._placed = counts, await self._cluster.registered(counts.replicas)
        counts, brokers = self._placed
        return place(placer, brokers, counts, start, partitions, factor, automatic=automatic)
