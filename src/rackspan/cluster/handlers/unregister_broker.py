"""UnregisterBroker (key 64), version 0: removes the registration of a broker that will not return."""

from rackspan.cluster.context import Call
from rackspan.cluster.core.admin_messages import AdminResponse, UnregisterBroker
from rackspan.cluster.handlers.common import ADMIN_TIMEOUT_MS, timeout_responses
from rackspan.model.ids import BrokerId
from rackspan.wire.messages.brokers import UnregisterBrokerRequestData, UnregisterBrokerResponseData


async def handle(call: Call[UnregisterBrokerRequestData]) -> UnregisterBrokerResponseData:
    broker = BrokerId(call.request.broker_id)
    (response,) = await call.broker.requests.controller_response(
        lambda correlation_id: UnregisterBroker(correlation_id, broker),
        ADMIN_TIMEOUT_MS,
        timeout_responses([broker], AdminResponse),
    )
    return UnregisterBrokerResponseData(error_code=call.broker.code(response.error), error_message=response.message)
