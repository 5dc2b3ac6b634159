"""DeleteTopics (key 20), versions 1-6. By name or, from v6 on, by id."""

from typing import Final
from uuid import UUID

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AdminResponse, DeleteTopics
from rackspan.cluster.handlers.common import timeout_responses
from rackspan.wire.messages.topics import (
    DeletableTopicResult,
    DeleteTopicsRequestData,
    DeleteTopicsResponseData,
    DeleteTopicState,
)

TOPIC_IDS_SINCE: Final = 6


async def handle(call: Call[DeleteTopicsRequestData]) -> DeleteTopicsResponseData:
    request = call.request
    topics: tuple[str | UUID, ...] = (
        tuple(request.topic_names) if call.version < TOPIC_IDS_SINCE else tuple(map(_name_or_id, request.topics))
    )
    ids = {name: topic.topic_id for name, topic in call.broker.image.topics.items()}
    names = call.broker.image.topic_names
    responses: tuple[AdminResponse, ...] = await call.broker.requests.controller_response(
        lambda correlation_id: DeleteTopics(correlation_id, topics),
        request.timeout,
        timeout_responses(topics, AdminResponse),
    )
    await call.broker.metadata_updates.wait_until_caught_up(request.timeout)
    return DeleteTopicsResponseData(
        responses=[
            DeletableTopicResult(
                name=names.get(response.key) if isinstance(response.key, UUID) else str(response.key),
                topic_id=response.key if isinstance(response.key, UUID) else ids.get(str(response.key)),
                error_code=call.broker.code(response.error),
                error_message=response.message,
            )
            for response in responses
        ]
    )


def _name_or_id(topic: DeleteTopicState) -> str | UUID:
    return topic.name if topic.name is not None else topic.topic_id or UUID(int=0)
