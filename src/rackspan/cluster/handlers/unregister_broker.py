"""UnregisterBroker (key 64), version 0: removes the registration of a broker that will not return."""

from rackspan.cluster.context.call import Call
from rackspan.cluster.core.messages import AdminResponse, UnregisterBroker
from rackspan.cluster.handlers.common.admin_responses import ADMIN_TIMEOUT_MS, timed_out
from rackspan.model.ids import BrokerId
from rackspan.wire.messages.unregister_broker import UnregisterBrokerRequestData, UnregisterBrokerResponseData


async def handle(call: Call[UnregisterBrokerRequestData]) -> UnregisterBrokerResponseData:
    broker = BrokerId(call.request.broker_id)
    (response,) = await call.broker.requests.controller_response(
        lambda correlation_id: UnregisterBroker(correlation_id, broker),
        ADMIN_TIMEOUT_MS,
        timed_out([broker], AdminResponse),
    )
    return UnregisterBrokerResponseData(error_code=call.broker.code(response.error), error_message=response.message)
