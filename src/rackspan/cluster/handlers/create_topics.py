"""CreateTopics (key 19), versions 2-7. The cluster's replica placer assigns replicas (KIP-660).

The response has the created topic's configs from v5 on and its id in v7.
"""

from collections.abc import Iterable

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import CreateTopicResponse, CreateTopics, NewTopic
from rackspan.cluster.core.configs import ConfigValue, topic_values
from rackspan.cluster.handlers.common import timeout_responses
from rackspan.model.ids import BrokerId
from rackspan.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequestData,
    CreateTopicsResponseData,
)


async def handle(call: Call[CreateTopicsRequestData]) -> CreateTopicsResponseData:
    request = call.request
    topics = tuple(map(_new_topic, request.topics))
    responses: Iterable[CreateTopicResponse] = await call.broker.requests.controller_response(
        lambda correlation_id: CreateTopics(correlation_id, topics, validate_only=request.validate_only),
        request.timeout,
        timeout_responses((topic.name for topic in topics), CreateTopicResponse),
    )
    if not request.validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(request.timeout)
    return CreateTopicsResponseData(topics=[_created(call, response) for response in responses])


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        {assigned.partition_index: tuple(map(BrokerId, assigned.broker_ids)) for assigned in topic.assignments},
        {config.name: config.value for config in topic.configs},
    )


def _created(call: Call[object], response: CreateTopicResponse) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=str(response.key),
        topic_id=response.topic_id,
        error_code=call.broker.code(response.error),
        error_message=response.message,
        num_partitions=response.partitions,
        replication_factor=response.replication_factor,
        # Never null: Kafka's topics tool fails on null.
        configs=[_config(value) for value in _configs(call, str(response.key))],
    )


def _configs(call: Call[object], topic: str) -> Iterable[ConfigValue]:
    """None for a topic that was only validated: it is not in the metadata."""
    broker = call.broker
    created = topic in broker.image.topics
    return topic_values(broker.image, broker.settings, topic, broker.id) if created else ()


def _config(value: ConfigValue) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=value.key, value=value.value, read_only=False, config_source=value.source, is_sensitive=False
    )
