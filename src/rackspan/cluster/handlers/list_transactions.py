"""ListTransactions (key 66), versions 0-1: those this broker coordinates. By duration from v1 (KIP-994)."""

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.transactions.queries import STATE_NAMES


def handle(call: Call) -> Body:
    states = call.body["state_filters"]
    found = call.broker.transactions.list_transactions(
        call.broker.now, states, call.body["producer_id_filters"], call.body.get("duration_filter", -1)
    )
    return {
        "unknown_state_filters": [state for state in states if state not in STATE_NAMES.values()],
        "transaction_states": [
            {
                "transactional_id": each.transactional_id,
                "producer_id": each.producer_id,
                "transaction_state": each.state,
            }
            for each in found
        ],
    }
