"""Metadata (key 3), versions 0-13. Rack arrives in v1, the cluster's id in v2, topic ids in v10.

A topic that is not there is created where client and cluster allow it, and answered with once this broker knows it.
Answers are encoded once for each (version, topics) and metadata: a thousand topics cost a client's poll nothing.
"""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from rackspan.cluster.context.call import Body, Call, Encoded, Response
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import NewTopic
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage, PartitionState, TopicImage
from rackspan.cluster.handlers.common.topic_creation import create_missing_topics
from rackspan.cluster.handlers.common.topics import offline_replicas
from rackspan.wire.codec import write_body, write_element

METADATA: Final = 3
ALWAYS_CREATED_BEFORE: Final = 4
"""Older versions cannot say that a missing topic is to stay missing."""


def handle(call: Call) -> Any:
    asked = _by_id_or_name(call.body["topics"])
    if asked is None or (call.version == 0 and not asked):
        return _cached(call, None)
    if missing := _to_create(call, asked):
        return _after_creation(call, asked, missing)
    return _cached(call, asked)


def _by_id_or_name(topics: Sequence[dict[str, Any]] | None) -> Sequence[dict[str, Any]] | None:
    """Where one topic is asked for by its id, names are not looked at (Kafka's handleTopicMetadataRequest)."""
    by_id = [one for one in topics or () if one.get("topic_id") is not None]
    return by_id or topics


def _to_create(call: Call, asked: Sequence[dict[str, Any]]) -> list[str]:
    allowed = call.version < ALWAYS_CREATED_BEFORE or call.body["allow_auto_topic_creation"]
    if not (allowed and call.broker.settings.auto_create_topics):
        return []
    known = call.broker.image.topics
    return [one["name"] for one in asked if one["name"] is not None and one["name"] not in known]


async def _after_creation(call: Call, asked: Sequence[dict[str, Any]], missing: Sequence[str]) -> Response:
    refused = await create_missing_topics(call.broker, [NewTopic(name) for name in dict.fromkeys(missing)])
    return _body(call, asked, refused) if refused else _cached(call, asked)


def _cached(call: Call, asked: Sequence[dict[str, Any]] | None) -> Encoded:
    names = None if asked is None else tuple(one["name"] or one.get("topic_id") for one in asked)
    return Encoded((call.broker.metadata_cache.response((call.version, names), lambda: _encoded(call, asked)),))


def _encoded(call: Call, asked: Sequence[dict[str, Any]] | None) -> bytes:
    return b"".join(write_body(METADATA, call.version, _body(call, asked, {})))


def _body(call: Call, asked: Sequence[dict[str, Any]] | None, refused: dict[str, KafkaError]) -> Body:
    image = call.broker.image
    alive = [broker for _, broker in sorted(image.brokers.items()) if not broker.fenced]
    return {
        "brokers": [
            {"node_id": one.id, "host": one.host, "port": one.port, "rack": one.rack} for one in alive
        ],
        "cluster_id": call.broker.cluster_id,
        # Any broker forwards to the controller, as under KRaft; this one is known to be there.
        "controller_id": call.broker.id,
        "topics": _all(call) if asked is None else [_asked(image, one, refused) for one in asked],
    }  # fmt: skip


def _all(call: Call) -> list[bytes]:
    image, version = call.broker.image, call.version
    return call.broker.metadata_cache.topics(
        version, image, lambda topic: write_element(METADATA, version, "topics", _topic(image, topic))
    )


def _asked(image: MetadataImage, one: dict[str, Any], refused: dict[str, KafkaError]) -> dict[str, Any]:
    name, topic_id = one["name"], one.get("topic_id")
    if name is None and topic_id is not None:
        name = image.topic_names.get(topic_id)
    topic = image.topics.get(name) if name is not None else None
    if topic is not None:
        return _topic(image, topic)
    return _unknown(one["name"], topic_id, refused)


def _unknown(name: str | None, topic_id: UUID | None, refused: dict[str, KafkaError]) -> dict[str, Any]:
    if name is None:
        return {"error_code": KafkaError.UNKNOWN_TOPIC_ID, "name": None, "topic_id": topic_id}
    error = refused.get(name, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    return {"error_code": error.for_every_client, "name": name}


def _topic(image: MetadataImage, topic: TopicImage) -> dict[str, Any]:
    return {
        "error_code": 0,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name in INTERNAL_TOPICS,
        "partitions": [_partition(image, index, one) for index, one in enumerate(topic.partitions)],
    }


def _partition(image: MetadataImage, index: int, state: PartitionState) -> dict[str, Any]:
    led = state.leader != NO_LEADER
    return {
        "error_code": KafkaError.NONE if led else KafkaError.LEADER_NOT_AVAILABLE,
        "partition_index": index,
        "leader_id": state.leader,
        "leader_epoch": state.leader_epoch,
        "replica_nodes": state.replicas,
        "isr_nodes": state.isr,
        "offline_replicas": offline_replicas(image, state),
    }
