"""AddPartitionsToTxn (key 24), versions 0-5. Producers ask until v3, one transaction at a time; brokers ask of several from
v4 on, and may only want to know whether a partition is in (KIP-890, part 1).
"""

from collections.abc import Mapping
from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.transactions.requests import AddPartitions
from rackspan.cluster.handlers.common.group_requests import exists
from rackspan.cluster.handlers.common.transaction_requests import error_code, partitions_of, transaction_response
from rackspan.model.ids import TopicPartition

SEVERAL_TRANSACTIONS: Final = 4
_BEFORE: Final = "v3_and_below_"


async def handle(call: Call) -> Body:
    if call.version < SEVERAL_TRANSACTIONS:
        asked = {name.removeprefix(_BEFORE): value for name, value in call.body.items()}
        errors = await _added(call, asked)
        return {"results_by_topic_v3_and_below": _results(call, errors)}
    return {"results_by_transaction": [await _transaction(call, each) for each in call.body["transactions"]]}


async def _transaction(call: Call, asked: Mapping[str, Any]) -> dict[str, Any]:
    errors = _verified(call, asked) if asked["verify_only"] else await _added(call, asked)
    return {"transactional_id": asked["transactional_id"], "topic_results": _results(call, errors)}


def _request(asked: Mapping[str, Any]) -> AddPartitions:
    partitions = frozenset(partitions_of(asked["topics"]))
    return AddPartitions(asked["transactional_id"], asked["producer_id"], asked["producer_epoch"], partitions)


def _verified(call: Call, asked: Mapping[str, Any]) -> dict[TopicPartition, KafkaError]:
    return call.broker.transactions.verify(_request(asked))


async def _added(call: Call, asked: Mapping[str, Any]) -> dict[TopicPartition, KafkaError]:
    """All or none: where one is not known, the others are not attempted."""
    request = _request(asked)
    unknown = {partition for partition in request.partitions if not exists(call, partition)}
    if unknown:
        others = dict.fromkeys(request.partitions, KafkaError.OPERATION_NOT_ATTEMPTED)
        return others | dict.fromkeys(unknown, KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    answer = await transaction_response(call, request)
    return dict.fromkeys(request.partitions, answer.error)


def _results(call: Call, errors: Mapping[TopicPartition, KafkaError]) -> list[dict[str, Any]]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for partition, error in sorted(errors.items()):
        place = {"partition_index": partition.partition, "partition_error_code": error_code(call, error)}
        topics.setdefault(partition.topic, []).append(place)
    return [{"name": topic, "results_by_partition": results} for topic, results in topics.items()]
