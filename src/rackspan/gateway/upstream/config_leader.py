"""The leader of the config topic, its log offsets, and connections to it."""

import asyncio
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from rackspan.client.connection import BrokerConnection, first
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.model import BrokerId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.log_offsets import ListOffsetsPartition, ListOffsetsRequestData, ListOffsetsTopic
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

EARLIEST: Final = -2
LATEST: Final = -1
_LOOKUP_BROKERS: Final = 3
LOOKUP_SECONDS: Final = 0.5
"""Time limit of the other brokers, once one has reported a leader."""


class ConfigTopicMissing(ClusterUnreachable):
    """Every broker that responded reports that there is no such topic."""


@dataclass(frozen=True, slots=True, order=True)
class Lead:
    """The config topic's partition as one broker reports it; -1 without a leader. The newest leader epoch is the greatest."""

    leader_epoch: int
    leader: int
    replicas: tuple[BrokerId, ...] = field(default=(), compare=False)
    isr: tuple[BrokerId, ...] = field(default=(), compare=False)
    topic_id: UUID | None = field(default=None, compare=False)


def lead_of(name: str, metadata: MetadataResponseData) -> Lead:
    """The topic in one broker's metadata of it. Errors: ConfigTopicMissing, ClusterUnreachable, ClusterRequestFailed."""
    topic = first(metadata.topics, "topic")
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise ConfigTopicMissing(f"the config topic {name} does not exist; the first gateway creates it")
    if topic.error_code != ErrorCode.NONE or not topic.partitions:
        raise ClusterUnreachable(f"error {topic.error_code} for {name}")
    partition = topic.partitions[0]
    return Lead(
        partition.leader_epoch,
        partition.leader_id,
        tuple(map(BrokerId, partition.replica_nodes)),
        tuple(map(BrokerId, partition.isr_nodes)),
        topic.topic_id,
    )


def topic_request(name: str) -> MetadataRequestData:
    """Metadata of the topic, which is not created by it."""
    return MetadataRequestData(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)


def offset_request(name: str, timestamp: int, replica_id: int = -1) -> ListOffsetsRequestData:
    """An offset of the topic's one partition. With the replica id of a consumer the leader alone responds."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequestData(replica_id=replica_id, topics=[ListOffsetsTopic(name=name, partitions=[partition])])


class ConfigLeader:
    """Finds the leader of one topic's partition 0. `latest` is the result of the last search that found one."""

    def __init__(self, topic: str, cluster: UpstreamCluster, login: Login) -> None:
        self.topic = topic
        self.latest = Lead(-1, -1)
        self._cluster = cluster
        self._login = login

    async def find(self) -> Lead:
        """The leader of the highest epoch that some brokers report: the metadata of one may be behind, and name a broker that is gone.

        Errors: ClusterUnreachable, ConfigTopicMissing.
        """
        brokers: list[int | None] = [*self._cluster.some(_LOOKUP_BROKERS)]
        waiting = {asyncio.create_task(self._reported_by(broker)) for broker in brokers or [None]}
        done: set[asyncio.Task[Lead]] = set()
        try:
            while waiting:
                has_one = any(task.exception() is None for task in done)
                ended, waiting = await asyncio.wait(
                    waiting, timeout=LOOKUP_SECONDS if has_one else None, return_when=asyncio.FIRST_COMPLETED
                )
                done |= ended
                if not ended:
                    break
        finally:
            for task in waiting:
                task.cancel()
        reported = [task.result() for task in done if task.exception() is None]
        if not reported:
            failures = [task.exception() for task in done]
            failed = failures[0]
            if all(isinstance(failure, ConfigTopicMissing) for failure in failures):
                raise ConfigTopicMissing(str(failed))
            raise ClusterUnreachable(f"no broker reports the leader of {self.topic}: {failed}")
        lead = max(reported)
        if lead.leader < 0:
            raise ClusterUnreachable(f"the config topic {self.topic} has no leader")
        self.latest = lead
        return lead

    async def _reported_by(self, broker: int | None) -> Lead:
        """The leader in one broker's metadata."""
        cluster = self._cluster
        connection = await (cluster.any_connection() if broker is None else cluster.connection(broker))
        metadata = await connection.call(ApiKey.METADATA, topic_request(self.topic))
        lead = lead_of(self.topic, metadata)
        for known in metadata.brokers:
            if known.node_id == lead.leader:
                cluster.record(known.node_id, known.host, known.port)
        return lead

    async def open(self, leader: int) -> BrokerConnection:
        """A connection that is not shared: what waits at the leader would hold up what is behind it. Errors: OSError, RackspanError."""
        known = self._cluster.by_id.get(leader)
        if known is None:
            raise ClusterUnreachable(f"the leader of {self.topic}, broker {leader}, is not known")
        connection = await BrokerConnection.open(known.host, known.port, self._login)
        await self._cluster.prove(connection, leader)
        return connection

    async def listed_offset(self, connection: BrokerConnection, timestamp: int) -> int:
        """ListOffsets of the leader.

        A new leader's high watermark may be behind committed records. For the latest offset it then responds
        OFFSET_NOT_AVAILABLE (KIP-207), where a Fetch only ends early. Errors: ClusterUnreachable.
        """
        response = await connection.call(ApiKey.LIST_OFFSETS, offset_request(self.topic, timestamp))
        partition = first(first(response.topics, "topic").partitions, "partition")
        if partition.error_code != ErrorCode.NONE:
            name = error_code(partition.error_code).name
            raise ClusterUnreachable(f"{name} from the leader of {self.topic}")
        return int(partition.offset)
