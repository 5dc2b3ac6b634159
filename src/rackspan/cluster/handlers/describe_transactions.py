"""DescribeTransactions (key 65), version 0 (KIP-664)."""

from typing import Any

from rackspan.cluster.context.call import Body, Call


def handle(call: Call) -> Body:
    return {"transaction_states": [_described(call, each) for each in call.body["transactional_ids"]]}


def _described(call: Call, transactional_id: str) -> dict[str, Any]:
    found = call.broker.transactions.describe(transactional_id)
    return {
        "error_code": call.broker.code(found.error),
        "transactional_id": transactional_id,
        "transaction_state": found.state,
        "transaction_timeout": found.timeout_ms,
        "transaction_start_time": found.started_ms,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "topics": [{"topic": topic, "partitions": partitions} for topic, partitions in found.topics.items()],
    }
