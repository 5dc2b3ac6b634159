"""UnregisterBroker (key 64), version 0: a broker that will not come back is forgotten."""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.messages import AdminResponse, UnregisterBroker
from rackspan.cluster.handlers.common.admin_responses import timed_out

TIMEOUT_MS = 30_000


async def handle(call: Call) -> Body:
    broker = call.body["broker_id"]
    (result,) = await call.broker.requests.controller_response(
        lambda correlation_id: UnregisterBroker(correlation_id, broker), TIMEOUT_MS, timed_out([broker], AdminResponse)
    )
    return {"error_code": call.broker.code(result.error), "error_message": result.message}
