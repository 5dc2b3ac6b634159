"""Metadata of the topics whose bytes the gateway counts: names of ids, and leaders."""

import asyncio
import logging
from typing import Final
from uuid import UUID

from rackspan.errors import RackspanError
from rackspan.gateway.core.record_bytes import RecordBytes, Topic, TopicLeaders
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.model.ids import NO_BROKER
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)

SETTLE_SECONDS: Final = 5.0
"""Between two requests, if bytes have passed. Bytes that passed less long before a leader moved can count for the other path."""

_LEADER_NOT_AVAILABLE: Final = 5
"""Error of a topic of which some partitions have no leader; the others are described."""


async def follow_record_topics(record_bytes: RecordBytes, cluster: UpstreamCluster) -> None:
    """Settle until cancelled."""
    while True:
        await asyncio.sleep(SETTLE_SECONDS)
        await settle(record_bytes, cluster)


async def settle(record_bytes: RecordBytes, cluster: UpstreamCluster) -> None:
    """Count what has passed, by current metadata. If no broker responds, it is counted at the next call."""
    topics = record_bytes.unsettled()
    if not topics:
        return
    # Of a request with ids a broker ignores the names.
    names = [MetadataRequestTopic(name=topic) for topic in topics if isinstance(topic, str)]
    ids = [MetadataRequestTopic(topic_id=UUID(bytes=topic), name=None) for topic in topics if isinstance(topic, bytes)]
    described: dict[Topic, TopicLeaders] = {}
    try:
        connection = await cluster.any_connection()
        for requested in filter(None, (names, ids)):
            request = MetadataRequestData(topics=requested, allow_auto_topic_creation=False)
            described |= _described(await connection.call(ApiKey.METADATA, request))
    except (OSError, RackspanError) as error:
        log.warning("topics of counted bytes could not be looked up: %s", error)
        return
    record_bytes.settle(topics, described, {broker.id: broker.rack for broker in cluster.all_brokers()})


def _described(metadata: MetadataResponseData) -> dict[Topic, TopicLeaders]:
    """Each topic by name and by id."""
    described: dict[Topic, TopicLeaders] = {}
    for topic in metadata.topics:
        if topic.error_code not in (0, _LEADER_NOT_AVAILABLE) or not topic.name:
            continue
        leaders = {
            partition.partition_index: partition.leader_id
            for partition in topic.partitions
            if partition.leader_id != NO_BROKER
        }
        described[topic.name] = TopicLeaders(topic.name, leaders)
        if topic.topic_id is not None:
            described[topic.topic_id.bytes] = described[topic.name]
    return described
