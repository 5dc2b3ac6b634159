"""Fetch (key 1), versions 4-18. Rack arrives in v11 (KIP-392), the diverging epoch in v12 (KIP-595), topic ids in v13, the current leader in v16 (KIP-951).

A fetch that finds fewer than min_bytes waits in `delayed_fetches` and reads again whenever a watermark or a leader changes,
until max_wait is over. Sessions are declined with id 0, which every client accepts: an idle partition then costs a few
bytes per fetch. Batches are sent as they lie in the log.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from rackspan.cluster.context import Call, Response
from rackspan.cluster.core.broker import ClientFetch, FetchRead, Isolation, PartitionFetch, ReadResponse
from rackspan.cluster.core.log.producer_state import AbortedTransaction
from rackspan.cluster.handlers.common import LEADER_CHANGED, READ_COMMITTED, led_partition, topic_name
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequestData,
    FetchResponseAbortedTransaction,
    FetchResponseData,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)

FOLLOWERS_SINCE: Final = 11
"""Older clients expect to read from leaders alone."""

NO_SESSION: Final = 0
NEW_SESSION_EPOCHS: Final = (0, -1)


def handle(call: Call[FetchRequestData]) -> Response | asyncio.Future[Response]:
    request = call.request
    if request.session_epoch not in NEW_SESSION_EPOCHS:
        return FetchResponseData(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, session_id=NO_SESSION)
    fetch = ClientFetch(
        partitions=list(_partition_fetches(call)),
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        max_wait_ms=request.max_wait,
        isolation=Isolation(request.isolation_level & READ_COMMITTED),
        rack=RackId(request.rack_id) or None,
        follower_ok=call.version >= FOLLOWERS_SINCE,
    )
    read = fetch.read(call.broker.core)
    return _DelayedFetch(call, fetch).response if fetch.waits(read) else _response(call, fetch, read)


class _DelayedFetch:
    """A fetch that waits for more bytes."""

    def __init__(self, call: Call[FetchRequestData], fetch: ClientFetch) -> None:
        self._call = call
        self._fetch = fetch
        loop = asyncio.get_running_loop()
        self.response: asyncio.Future[Response] = loop.create_future()
        self.response.add_done_callback(self._leave)
        self._timer = loop.call_later(fetch.max_wait_ms / 1000, self._time_out)
        call.broker.delayed_fetches.add(self._partitions(), self._retry)

    def _partitions(self) -> Iterator[TopicPartition]:
        return (fetch.partition for fetch in self._fetch.partitions)

    def _retry(self) -> None:
        if self.response.done():
            return
        read = self._fetch.read(self._call.broker.core)
        if self._fetch.is_complete(read):
            self.response.set_result(_response(self._call, self._fetch, read))

    def _time_out(self) -> None:
        if self.response.done():
            return
        try:
            read = self._fetch.read(self._call.broker.core)
        except asyncio.CancelledError:
            # The broker was killed, and its connections are about to close. In a callback nothing else would cancel the response.
            self.response.cancel()
        else:
            self.response.set_result(_response(self._call, self._fetch, read))

    def _leave(self, _: asyncio.Future[Response]) -> None:
        self._timer.cancel()
        self._call.broker.delayed_fetches.remove(self._partitions(), self._retry)


def _partition_fetches(call: Call[FetchRequestData]) -> Iterator[PartitionFetch]:
    for topic in call.request.topics:
        name = topic_name(call, topic.topic, topic.topic_id)
        for fetch in topic.partitions:
            yield PartitionFetch(
                TopicPartition(name or str(topic.topic_id), fetch.partition),
                fetch.fetch_offset,
                fetch.partition_max_bytes,
                fetch.current_leader_epoch,
                fetch.last_fetched_epoch,
                topic_known=name is not None,
            )


def _partition_data(
    call: Call[FetchRequestData], fetch: PartitionFetch, response: ReadResponse
) -> FetchResponsePartitionData:
    # Records are never null, though the protocol permits it: librdkafka cannot parse that, and fetches again without a pause.
    partition = FetchResponsePartitionData(
        partition_index=fetch.partition.partition,
        error_code=call.broker.code(response.error),
        high_watermark=response.high_watermark,
        last_stable_offset=response.last_stable_offset,
        log_start_offset=response.log_start,
        preferred_read_replica=response.preferred_read_replica,
        aborted_transactions=_aborted_transactions(call, response.aborted),
        records=[batch.data for batch in response.batches],
    )
    if response.diverging is not None:
        partition.diverging_epoch = FetchResponseEpochEndOffset(
            epoch=response.diverging.epoch, end_offset=response.diverging.end_offset
        )
    if response.error in LEADER_CHANGED and (state := led_partition(call, fetch.partition)) is not None:
        partition.current_leader = FetchResponseLeaderIdAndEpoch(
            leader_id=state.leader, leader_epoch=state.leader_epoch
        )
    return partition


def _aborted_transactions(
    call: Call[FetchRequestData], aborted: Iterable[AbortedTransaction]
) -> list[FetchResponseAbortedTransaction] | None:
    if call.request.isolation_level != READ_COMMITTED:
        return None
    return [
        FetchResponseAbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in aborted
    ]


def _response(call: Call[FetchRequestData], fetch: ClientFetch, read: FetchRead) -> FetchResponseData:
    data = [_partition_data(call, *each) for each in zip(fetch.partitions, read.partitions, strict=True)]
    partitions = iter(data)
    current_leaders = {BrokerId(each.current_leader.leader_id) for each in data if each.current_leader is not None}
    responses = [
        FetchableTopicResponse(
            topic=topic.topic, topic_id=topic.topic_id, partitions=[next(partitions) for _ in topic.partitions]
        )
        for topic in call.request.topics
    ]
    _count_traffic(call, responses)
    return FetchResponseData(
        session_id=NO_SESSION,
        responses=responses,
        node_endpoints=[
            FetchResponseNodeEndpoint(node_id=broker.id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in call.broker.endpoints(current_leaders)
        ],
    )


def _count_traffic(call: Call[FetchRequestData], topics: Iterable[FetchableTopicResponse]) -> None:
    broker = call.broker
    for topic in topics:
        name = topic_name(call, topic.topic, topic.topic_id) or ""
        for partition in topic.partitions:
            size_bytes = sum(map(len, partition.records or ()))
            if not size_bytes:
                continue
            state = led_partition(call, TopicPartition(name, partition.partition_index))
            broker.traffic.add_fetched(
                broker.id,
                call.header.client_id,
                call.request.rack_id,
                name,
                size_bytes,
                from_follower=state is not None and state.leader != broker.id,
            )
