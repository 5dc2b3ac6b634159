"""What the handlers of transactions share."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rackspan.cluster.context.call import Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.transactions.requests import TransactionRequest
from rackspan.model.ids import TopicPartition

FENCED_BY_NAME: Final = 2
"""From this version on of the older requests a fenced producer is told PRODUCER_FENCED; before, its epoch is invalid."""


async def transaction_response(call: Call, request: TransactionRequest) -> Any:
    """The transaction coordinator's response."""
    return await call.broker.transaction_requests.response(request)


def error_code(call: Call, error: KafkaError) -> int:
    """An error as this version's clients know it."""
    if error is KafkaError.PRODUCER_FENCED and call.version < FENCED_BY_NAME:
        return KafkaError.INVALID_PRODUCER_EPOCH
    return call.broker.code(error)


def partitions_of(topics: Iterable[Mapping[str, Any]]) -> list[TopicPartition]:
    return [TopicPartition(topic["name"], number) for topic in topics for number in topic["partitions"]]
