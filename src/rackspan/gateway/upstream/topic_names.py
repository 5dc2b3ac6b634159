"""Names and ids of topics, as brokers report them."""

import asyncio
import logging
from collections.abc import Iterable
from uuid import UUID

from rackspan.errors import RackspanError
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.upstream.cluster import Cluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)


class TopicNames:
    """The name of each topic id that was reported, in `by_id`. The policies get every report too."""

    def __init__(self, cluster: Cluster, policies: Policies) -> None:
        self._cluster = cluster
        self._policies = policies
        self.by_id: dict[UUID, str] = {}

    def record(self, topic: str, topic_id: UUID | None) -> None:
        """A broker reported a topic."""
        self._policies.record_topic(topic, topic_id, asyncio.get_running_loop().time())
        if topic_id is not None:
            self.by_id[topic_id] = topic

    async def look_up(self, broker: int, ids: Iterable[UUID]) -> None:
        """Request the names of these ids from a broker. Those that it does not report stay without a name."""
        request = MetadataRequestData(
            topics=[MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids],
            allow_auto_topic_creation=False,
        )
        try:
            connection = await self._cluster.connection(broker)
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        except (OSError, TimeoutError, RackspanError) as error:
            log.warning("topic ids could not be looked up at broker %d: %s", broker, error)
            return
        for topic in metadata.topics:
            if topic.error_code == 0 and topic.name:
                self.record(topic.name, topic.topic_id)
