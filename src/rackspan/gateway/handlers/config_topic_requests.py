"""Requests that would empty the gateway's config topic: its part is refused, the rest goes to the broker.

Without its records every gateway that starts later would require no racks. Who administers the topic does it at the brokers.
"""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.log_offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequestData,
    DeleteRecordsResponseData,
    DeleteRecordsTopicResult,
)
from rackspan.wire.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequestData,
    DeleteTopicsResponseData,
)

REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED

Forward = Callable[[WireStruct], Awaitable[Any]]


def refusal(topic: str) -> str:
    return f"{topic} has the values of min.insync.racks and is altered or deleted at the brokers only, not through a gateway"


async def delete_topics(
    body: DeleteTopicsRequestData, forward: Forward, topic: str, topic_id: UUID | None
) -> WireStruct:
    """DeleteTopics, by names or by ids, without the config topic."""
    names = [name for name in body.topic_names if name != topic]
    states = [
        state for state in body.topics if state.name != topic and (state.topic_id is None or state.topic_id != topic_id)
    ]
    kept = len(body.topic_names) + len(body.topics) - len(names) - len(states)
    response = DeleteTopicsResponseData()
    if names or states or not kept:
        body.topic_names, body.topics = names, states
        response = await forward(body)
    refused = DeletableTopicResult(name=topic, topic_id=topic_id, error_code=REFUSED, error_message=refusal(topic))
    response.responses = [*response.responses, *[refused] * kept]
    return response


async def delete_records(body: DeleteRecordsRequestData, forward: Forward, topic: str) -> WireStruct:
    """DeleteRecords without the config topic."""
    kept = [requested for requested in body.topics if requested.name == topic]
    response = DeleteRecordsResponseData()
    if len(kept) < len(body.topics) or not kept:
        body.topics = [requested for requested in body.topics if requested.name != topic]
        response = await forward(body)
    refused = [
        DeleteRecordsTopicResult(
            name=topic,
            partitions=[
                DeleteRecordsPartitionResult(
                    partition_index=partition.partition_index, low_watermark=-1, error_code=REFUSED
                )
                for partition in requested.partitions
            ],
        )
        for requested in kept
    ]
    response.topics = [*response.topics, *refused]
    return response
