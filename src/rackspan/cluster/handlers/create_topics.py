"""CreateTopics (key 19), versions 2-7. Placed by the cluster's replica placer (KIP-660). Ids and configs of what was made: v7, v5."""

from collections.abc import Iterable
from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.configs import ConfigValue, topic_values
from rackspan.cluster.core.messages import CreateTopicResponse, CreateTopics, NewTopic
from rackspan.cluster.handlers.common.admin_responses import timed_out


async def handle(call: Call) -> Body:
    topics = tuple(_new_topic(one) for one in call.body["topics"])
    validate_only = call.body["validate_only"]
    results: Iterable[CreateTopicResponse] = await call.broker.requests.controller_response(
        lambda correlation_id: CreateTopics(correlation_id, topics, validate_only=validate_only),
        call.body["timeout"],
        timed_out((topic.name for topic in topics), CreateTopicResponse),
    )
    if not validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(call.body["timeout"])
    return {"topics": [_created(call, result) for result in results]}


def _new_topic(one: dict[str, Any]) -> NewTopic:
    return NewTopic(
        one["name"],
        one["num_partitions"],
        one["replication_factor"],
        {each["partition_index"]: each["broker_ids"] for each in one["assignments"]},
        {config["name"]: config["value"] for config in one["configs"]},
    )


def _created(call: Call, result: CreateTopicResponse) -> dict[str, Any]:
    return {
        "name": result.key,
        "topic_id": result.topic_id,
        "error_code": call.broker.code(result.error),
        "error_message": result.message,
        "num_partitions": result.partitions,
        "replication_factor": result.replication_factor,
        # Never null: Kafka's topics tool trips over that.
        "configs": [_config(value) for value in _configs(call, str(result.key))],
    }


def _configs(call: Call, topic: str) -> Iterable[ConfigValue]:
    """Of a topic that this broker knows by now; of one that was only tried there is nothing to show."""
    broker = call.broker
    known = topic in broker.image.topics
    return topic_values(broker.image, broker.settings, topic, broker.id) if known else ()


def _config(value: ConfigValue) -> dict[str, Any]:
    return {
        "name": value.key,
        "value": value.value,
        "read_only": False,
        "config_source": value.source,
        "is_sensitive": False,
    }
