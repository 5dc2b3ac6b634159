"""Produce (key 0), versions 3-13. Record headers arrive in v3, error messages in v8, topic ids in v13.

Each partition succeeds or fails by itself. A large batch is not copied: the log keeps the memory it was received in.
Records are decoded only for a compacted topic. Errors that only this cluster has are sent as Kafka's own, with the reason in
`error_message` (min.insync.racks, On the wire), unless extended.error.codes is set.
"""

import asyncio
from functools import partial
from typing import Final

from rackspan.cluster.context import Call, Response
from rackspan.cluster.core.batch import NO_TIMESTAMP
from rackspan.cluster.core.messages import Produce, ProduceResponse
from rackspan.cluster.core.process import transaction_support
from rackspan.cluster.handlers.common import LEADER_CHANGED, keyless_records, led_partition, topic_name
from rackspan.errors import MalformedRequest
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from rackspan.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequestData,
    ProduceResponseData,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    TopicProduceResponse,
)

ABORTABLE_SINCE: Final = 11
ADDS_SINCE: Final = 12
"""KIP-1050 and KIP-890, part 2."""

ADMIN_CLIENT_ID: Final = "__admin_client"
"""The client that may append to internal topics. Source: Kafka's AdminUtils, ReplicaManager.appendToLocalLog."""


def handle(call: Call[ProduceRequestData]) -> Response | asyncio.Future[Response]:
    """Errors, of the future too: MalformedRequest if a partition failed with acks=0."""
    pending = _PendingResponse(call)
    for topic in call.request.topic_data:
        name = topic_name(call, topic.name, topic.topic_id)
        partitions = [PartitionProduceResponse(index=data.index) for data in topic.partition_data]
        # An unknown id has no name, and a version with ids does not write names.
        pending.topics.append(
            TopicProduceResponse(name=name or "", topic_id=topic.topic_id, partition_responses=partitions)
        )
        for data, partition in zip(topic.partition_data, partitions, strict=True):
            _append(call, pending, name, data, partition)
    return pending.response()


class _PendingResponse:
    """The response to one request, complete when the core has responded for every partition."""

    def __init__(self, call: Call[ProduceRequestData]) -> None:
        self.call = call
        self.topics: list[TopicProduceResponse] = []
        # One for `response`, so that a partition that completes at once does not complete the whole.
        self._open = 1
        self._current_leaders: set[BrokerId] = set()
        self._failed: tuple[TopicPartition, ErrorCode] | None = None
        self._future: asyncio.Future[Response] | None = None

    def expect(self) -> None:
        self._open += 1

    def complete(
        self,
        response: PartitionProduceResponse,
        partition: TopicPartition,
        result: ProduceResponse,
        *,
        log_append_time: int = NO_TIMESTAMP,
    ) -> None:
        """Set the fields of a partition's response. `log_append_time` is for records that were appended."""
        appended = result.error is ErrorCode.NONE
        response.error_code = self.call.broker.code(result.error)
        response.base_offset = result.base_offset
        response.log_append_time = log_append_time if appended else result.log_append_time
        response.log_start_offset = result.log_start
        response.error_message = result.message
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=error.index, batch_index_error_message=error.message)
            for error in result.record_errors
        ]
        if not appended:
            self._failed = partition, result.error
        if result.error in LEADER_CHANGED and (state := led_partition(self.call, partition)) is not None:
            # The client then needs no Metadata request to find the leader (KIP-951).
            response.current_leader = ProduceResponseLeaderIdAndEpoch(
                leader_id=state.leader, leader_epoch=state.leader_epoch
            )
            self._current_leaders.add(state.leader)
        self._open -= 1
        if not self._open and self._future is not None and not self._future.done():
            try:
                self._future.set_result(self._complete_response())
            except MalformedRequest as error:
                self._future.set_exception(error)

    def response(self) -> Response | asyncio.Future[Response]:
        self._open -= 1
        if not self._open:
            return self._complete_response()
        self._future = asyncio.get_running_loop().create_future()
        return self._future

    def _complete_response(self) -> ProduceResponseData | None:
        if self.call.request.acks == 0:
            if self._failed is not None:
                # As Kafka does: the end of the connection is how the client learns of it, and it looks for the leader again.
                partition, code = self._failed
                raise MalformedRequest(f"{partition}: {code.name}; with acks=0 no response can have that")
            return None
        return ProduceResponseData(
            responses=self.topics,
            node_endpoints=[
                ProduceResponseNodeEndpoint(node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
                for broker in self.call.broker.endpoints(self._current_leaders)
            ],
        )


def _append(
    call: Call[ProduceRequestData],
    pending: _PendingResponse,
    topic: str | None,
    data: PartitionProduceData,
    response: PartitionProduceResponse,
) -> None:
    pending.expect()
    partition = TopicPartition(topic or "", data.index)
    now = call.broker.now
    batch = call.broker.core.validated_batch(
        None if topic is None else partition,
        data.records,
        call.request.acks,
        now,
        keyless_records,
        to_internal=call.header.client_id == ADMIN_CLIENT_ID,
    )
    if isinstance(batch, ProduceResponse):
        pending.complete(response, partition, batch)
        return
    call.broker.traffic.add_produced(call.broker.id, call.header.client_id, partition.topic, batch.size_bytes)
    stamped = topic is not None and call.broker.core.appends_time(topic)
    complete = partial(pending.complete, response, partition, log_append_time=now if stamped else NO_TIMESTAMP)

    support = transaction_support(call.version, abortable_since=ABORTABLE_SINCE, adds_since=ADDS_SINCE)
    request = call.request
    call.broker.requests.send_to_core(
        lambda correlation_id: Produce(
            *(correlation_id, partition, (batch,), request.acks, request.timeout),
            transactional_id=request.transactional_id,
            support=support,
        ),
        complete,
    )
