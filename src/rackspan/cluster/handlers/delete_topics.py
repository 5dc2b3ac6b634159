"""DeleteTopics (key 20), versions 1-6. By name or, from v6, by id."""

from typing import Any
from uuid import UUID

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.messages import AdminResponse, DeleteTopics
from rackspan.cluster.handlers.common.admin_responses import timed_out

NAMES_ONLY_BEFORE = 6


async def handle(call: Call) -> Body:
    asked = _asked(call)
    ids = {name: topic.topic_id for name, topic in call.broker.image.topics.items()}
    names = call.broker.image.topic_names
    results: tuple[AdminResponse, ...] = await call.broker.requests.controller_response(
        lambda correlation_id: DeleteTopics(correlation_id, asked),
        call.body["timeout"],
        timed_out(asked, AdminResponse),
    )
    await call.broker.metadata_updates.wait_until_caught_up(call.body["timeout"])
    return {
        "responses": [
            {
                "name": one.key if isinstance(one.key, str) else names.get(one.key),  # type: ignore[call-overload]
                "topic_id": one.key if isinstance(one.key, UUID) else ids.get(str(one.key)),
                "error_code": call.broker.code(one.error),
                "error_message": one.message,
            }
            for one in results
        ]
    }


def _asked(call: Call) -> tuple[str | UUID, ...]:
    if call.version < NAMES_ONLY_BEFORE:
        return tuple(call.body["topic_names"])
    return tuple(_name_or_id(one) for one in call.body["topics"])


def _name_or_id(topic: dict[str, Any]) -> str | UUID:
    if topic["name"] is not None:
        return str(topic["name"])
    return topic["topic_id"] or UUID(int=0)
