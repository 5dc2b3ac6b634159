"""WriteTxnMarkers (key 27), version 1: a transaction's end, written by a partition's leader. `kafka-transactions abort` asks it."""

from collections.abc import Mapping
from typing import Any, Final

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.batch import Batch, Marker
from rackspan.cluster.core.coordination import marker_batch
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import Produce, ProduceResponse
from rackspan.model.ids import TopicPartition

_MS: Final = 5_000


async def handle(call: Call) -> Body:
    return {"markers": [await _written(call, marker) for marker in call.body["markers"]]}


async def _written(call: Call, marker: Mapping[str, Any]) -> dict[str, Any]:
    batch = marker_batch(
        *(marker["producer_id"], marker["producer_epoch"]),
        Marker.COMMIT if marker["transaction_result"] else Marker.ABORT,
        marker["coordinator_epoch"],
        call.broker.now,
    )
    return {
        "producer_id": marker["producer_id"],
        "topics": [
            {
                "name": topic["name"],
                "partitions": [
                    await _append(call, TopicPartition(topic["name"], n), batch) for n in topic["partition_indexes"]
                ],
            }
            for topic in marker["topics"]
        ],
    }


async def _append(call: Call, partition: TopicPartition, batch: Batch) -> dict[str, Any]:
    result: ProduceResponse = await call.broker.requests.core_response(
        lambda correlation_id: Produce(correlation_id, partition, (batch,), -1, _MS, internal=True),
        _MS,
        ProduceResponse(KafkaError.REQUEST_TIMED_OUT),
    )
    return {"partition_index": partition.partition, "error_code": call.broker.code(result.error)}
