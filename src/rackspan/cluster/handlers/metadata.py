"""Metadata (key 3), versions 0-13. Rack arrives in v1, the cluster's id in v2, topic ids in v10.

A missing topic is created if client and cluster allow it. The response then waits until this broker's metadata has it.
Responses are encoded once per version, set of topics and metadata: a client's poll of a thousand topics costs nothing.
"""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from rackspan.cluster.context import Call, EncodedResponse, Response
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState, TopicImage
from rackspan.cluster.handlers.common import (
    CLUSTER_OPERATIONS,
    TOPIC_OPERATIONS,
    automatic_topic,
    create_missing_topics,
    offline_replicas,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import TOPIC_NAME_RULE
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import write_body, write_element
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ALLOW_AUTO_TOPIC_CREATION_SINCE: Final = 4
"""Older clients cannot forbid the creation of a missing topic."""

RequestedTopics: TypeAlias = Sequence[MetadataRequestTopic] | None
"""None: all topics."""


def handle(call: Call[MetadataRequestData]) -> Response | Coroutine[Any, Any, Response]:
    topics = _by_id_or_name(call.request.topics)
    if topics is None or (call.version == 0 and not topics):
        return _cached(call, None)
    if missing := _to_create(call, topics):
        return _create(call, topics, missing)
    return _cached(call, topics)


def _by_id_or_name(topics: RequestedTopics) -> RequestedTopics:
    """If one topic is requested by its id, names are ignored (Kafka's handleTopicMetadataRequest)."""
    return [topic for topic in topics or () if topic.topic_id is not None] or topics


def _to_create(call: Call[MetadataRequestData], topics: Sequence[MetadataRequestTopic]) -> list[str]:
    allowed = call.version < ALLOW_AUTO_TOPIC_CREATION_SINCE or call.request.allow_auto_topic_creation
    if not (allowed and call.broker.settings.auto_create_topics):
        return []
    known = call.broker.image.topics
    return [topic.name for topic in topics if topic.name is not None and topic.name not in known]


async def _create(
    call: Call[MetadataRequestData], topics: Sequence[MetadataRequestTopic], missing: Sequence[str]
) -> Response:
    configs = call.broker.settings.extra_configs
    new = [automatic_topic(name, configs) for name in dict.fromkeys(missing)]
    refused = await create_missing_topics(call.broker, new)
    return _with_operations(call, topics, refused) if refused else _cached(call, topics)


def _cached(call: Call[MetadataRequestData], topics: RequestedTopics) -> Response:
    request = call.request
    if request.include_topic_authorized_operations or request.include_cluster_authorized_operations:
        return _with_operations(call, topics, {})
    names = None if topics is None else tuple(topic.name or topic.topic_id for topic in topics)
    encoded = call.broker.metadata_cache.response((call.version, names), lambda: _encode(call, topics))
    return EncodedResponse((encoded,))


def _with_operations(
    call: Call[MetadataRequestData], topics: RequestedTopics, refused: Mapping[str, ErrorCode]
) -> MetadataResponseData:
    """The operations that the client requested with it (KIP-430). Admin clients do, and rarely: nothing is cached."""
    if topics is None:
        topics = [MetadataRequestTopic(name=name) for name in sorted(call.broker.image.topics)]
    response = _response(call, topics, refused)
    if call.request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    if call.request.include_topic_authorized_operations:
        for topic in response.topics:
            topic.topic_authorized_operations = TOPIC_OPERATIONS
    return response


def _encode(call: Call[object], topics: RequestedTopics) -> bytes:
    return b"".join(write_body(ApiKey.METADATA, call.version, _response(call, topics, {})))


def _response(call: Call[object], topics: RequestedTopics, refused: Mapping[str, ErrorCode]) -> MetadataResponseData:
    image = call.broker.image
    return MetadataResponseData(
        brokers=[
            MetadataResponseBroker(node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
            for _, broker in sorted(image.brokers.items())
            if not broker.fenced
        ],
        cluster_id=call.broker.cluster_id,
        # Every broker forwards to the controller, as under KRaft. This one is certain to be up.
        controller_id=call.broker.id,
        topics=_all(call) if topics is None else [_requested(image, topic, refused) for topic in topics],
    )


def _all(call: Call[object]) -> Sequence[MetadataResponseTopic]:
    image, version = call.broker.image, call.version
    encoded = call.broker.metadata_cache.topics(
        version, image, lambda topic: write_element(ApiKey.METADATA, version, "topics", _topic(image, topic))
    )
    # The writer takes an element's bytes in place of the element (write_element).
    return cast("Sequence[MetadataResponseTopic]", encoded)


def _requested(
    image: MetadataImage, requested: MetadataRequestTopic, refused: Mapping[str, ErrorCode]
) -> MetadataResponseTopic:
    name, topic_id = requested.name, requested.topic_id
    if name is None and topic_id is not None:
        name = image.topic_names.get(topic_id)
    topic = image.topics.get(name) if name is not None else None
    return _topic(image, topic) if topic is not None else _unknown(requested.name, topic_id, refused)


def _unknown(name: str | None, topic_id: UUID | None, refused: Mapping[str, ErrorCode]) -> MetadataResponseTopic:
    if name is None:
        return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    # Clients give up at once on a name that is none, and wait for a topic that may come.
    may_come = TOPIC_NAME_RULE.fullmatch(name)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if may_come else ErrorCode.INVALID_TOPIC_EXCEPTION
    error = refused.get(name, missing)
    return MetadataResponseTopic(error_code=error.for_every_client, name=name)


def _topic(image: MetadataImage, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(image, index, state) for index, state in enumerate(topic.partitions)],
    )


def _partition(image: MetadataImage, index: int, state: PartitionState) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        error_code=ErrorCode.NONE if state.leader != NO_LEADER else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=offline_replicas(image, state),
    )
