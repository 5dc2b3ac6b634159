"""Names of topic ids, requested from one broker."""

import logging
from collections.abc import Iterable, Mapping
from uuid import UUID

from rackspan.errors import RackspanError
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)


async def topic_names(cluster: UpstreamCluster, broker: int, ids: Iterable[UUID]) -> Mapping[str, UUID | None]:
    """The ids by name, of those that the broker reports; none if it does not respond."""
    request = MetadataRequestData(
        topics=[MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids],
        allow_auto_topic_creation=False,
    )
    try:
        connection = await cluster.connection(broker)
        metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
    except (OSError, TimeoutError, RackspanError) as error:
        log.warning("topic ids could not be looked up at broker %d: %s", broker, error)
        return {}
    return {topic.name: topic.topic_id for topic in metadata.topics if topic.error_code == 0 and topic.name}
