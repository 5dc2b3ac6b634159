"""CreatePartitions (key 37), versions 0-3: raises a topic to a count, placed by the placer or as the request says."""

from typing import Any

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.messages import AdminResponse, CreatePartitions, MorePartitions
from rackspan.cluster.handlers.common.admin_responses import timed_out


async def handle(call: Call) -> Body:
    topics = tuple(_more(one) for one in call.body["topics"])
    validate_only = call.body["validate_only"]
    results = await call.broker.requests.controller_response(
        lambda correlation_id: CreatePartitions(correlation_id, topics, validate_only),
        call.body["timeout"],
        timed_out((topic.topic for topic in topics), AdminResponse),
    )
    if not validate_only:
        await call.broker.metadata_updates.wait_until_caught_up(call.body["timeout"])
    return {
        "results": [
            {"name": one.key, "error_code": call.broker.code(one.error), "error_message": one.message}
            for one in results
        ]
    }


def _more(one: dict[str, Any]) -> MorePartitions:
    assignments = one["assignments"]
    placed = None if assignments is None else tuple(tuple(each["broker_ids"]) for each in assignments)
    return MorePartitions(one["name"], one["count"], placed)
