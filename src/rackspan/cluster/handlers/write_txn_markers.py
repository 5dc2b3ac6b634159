"""WriteTxnMarkers (key 27), versions 1 and 2: the partition's leader appends the end of a transaction. Sent by `kafka-transactions abort`.

From v2 on a marker has the version of its transaction (KIP-1228).
"""

from typing import Final

from rackspan.cluster.context import Call
from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.coordination import marker_batch
from rackspan.cluster.core.messages import Produce, ProduceResponse
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequestData,
    WriteTxnMarkersResponseData,
)

_TIMEOUT_MS: Final = 5_000

_EPOCH_BUMPED_SINCE: Final = 2
"""The version of transactions in which each one has an epoch of its own (KIP-890)."""


async def handle(call: Call[WriteTxnMarkersRequestData]) -> WriteTxnMarkersResponseData:
    return WriteTxnMarkersResponseData(markers=[await _write(call, marker) for marker in call.request.markers])


async def _write(call: Call[object], marker: WritableTxnMarker) -> WritableTxnMarkerResult:
    batch = marker_batch(
        *(marker.producer_id, marker.producer_epoch),
        Marker.COMMIT if marker.transaction_result else Marker.ABORT,
        marker.coordinator_epoch,
        call.broker.now,
        epoch_bumped=marker.transaction_version >= _EPOCH_BUMPED_SINCE,
    )
    return WritableTxnMarkerResult(
        producer_id=marker.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    await _append(call, TopicPartition(topic.name, index), batch) for index in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )


async def _append(
    call: Call[object], partition: TopicPartition, batch: RecordBatch
) -> WritableTxnMarkerPartitionResult:
    response: ProduceResponse = await call.broker.requests.core_response(
        lambda correlation_id: Produce(correlation_id, partition, (batch,), -1, _TIMEOUT_MS, internal=True),
        _TIMEOUT_MS,
        ProduceResponse(ErrorCode.REQUEST_TIMED_OUT),
    )
    return WritableTxnMarkerPartitionResult(
        partition_index=partition.partition, error_code=call.broker.code(response.error)
    )
