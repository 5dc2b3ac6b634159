"""Fetch (key 1), versions 4-18. Rack arrives in v11 (KIP-392), topic ids in v13, the current leader in v16 (KIP-951).

A fetch that finds fewer than min_bytes waits in `delayed_fetches` and reads again whenever a watermark or a leader changes,
until max_wait is over. Sessions are declined with id 0, which every client accepts: an idle partition then costs a few
bytes per fetch. Batches are sent as they lie in the log.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rackspan.cluster.context.call import Call, Response
from rackspan.cluster.core.broker import Isolation
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.log.producer_state import AbortedTransaction
from rackspan.cluster.handlers.common.topics import LEADER_CHANGED, READ_COMMITTED, led_partition, topic_name
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequestData,
    FetchResponseAbortedTransaction,
    FetchResponseData,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)

FOLLOWERS_SINCE: Final = 11
"""Older clients expect to read from leaders alone."""

NO_SESSION: Final = 0
NEW_SESSION_EPOCHS: Final = (0, -1)
NO_PREFERENCE: Final = -1
MAX_BYTES: Final = 55 * 1024 * 1024
"""A broker's fetch.max.bytes."""

UNKNOWN_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)
"""Not a reason to respond at once while another partition of the request is known. Kafka waits too."""


@dataclass(frozen=True, slots=True)
class _PartitionFetch:
    """One partition of the request."""

    partition: TopicPartition
    known: bool
    offset: int
    leader_epoch: int
    max_bytes: int


@dataclass(slots=True)
class _FetchRead:
    """What one reading of all partitions found."""

    partitions: list[FetchResponsePartitionData]
    size_bytes: int
    respond_now: bool
    """With records or without: an error, a preferred read replica or a diverging epoch."""
    current_leaders: set[BrokerId]


def handle(call: Call[FetchRequestData]) -> Response | asyncio.Future[Response]:
    request = call.request
    if request.session_epoch not in NEW_SESSION_EPOCHS:
        return FetchResponseData(error_code=KafkaError.FETCH_SESSION_ID_NOT_FOUND, session_id=NO_SESSION)
    fetches = list(_partition_fetches(call))
    read = _read_all(call, fetches)
    all_unknown = all(partition.error_code in UNKNOWN_TOPIC for partition in read.partitions)
    if read.respond_now or all_unknown or read.size_bytes >= request.min_bytes or request.max_wait <= 0 or not fetches:
        return _response(call, read)
    return _DelayedFetch(call, fetches).response


class _DelayedFetch:
    """A fetch that waits for more bytes."""

    def __init__(self, call: Call[FetchRequestData], fetches: list[_PartitionFetch]) -> None:
        self._call = call
        self._fetches = fetches
        loop = asyncio.get_running_loop()
        self.response: asyncio.Future[Response] = loop.create_future()
        self.response.add_done_callback(self._leave)
        self._timer = loop.call_later(call.request.max_wait / 1000, self._time_out)
        call.broker.delayed_fetches.add(self._partitions(), self._retry)

    def _partitions(self) -> Iterator[TopicPartition]:
        return (fetch.partition for fetch in self._fetches)

    def _retry(self) -> None:
        if self.response.done():
            return
        read = _read_all(self._call, self._fetches)
        if read.respond_now or read.size_bytes >= self._call.request.min_bytes:
            self.response.set_result(_response(self._call, read))

    def _time_out(self) -> None:
        if not self.response.done():
            self.response.set_result(_response(self._call, _read_all(self._call, self._fetches)))

    def _leave(self, _: asyncio.Future[Response]) -> None:
        self._timer.cancel()
        self._call.broker.delayed_fetches.remove(self._partitions(), self._retry)


def _partition_fetches(call: Call[FetchRequestData]) -> Iterator[_PartitionFetch]:
    for topic in call.request.topics:
        name = topic_name(call, topic.topic, topic.topic_id)
        for fetch in topic.partitions:
            yield _PartitionFetch(
                TopicPartition(name or str(topic.topic_id), fetch.partition),
                name is not None,
                fetch.fetch_offset,
                fetch.current_leader_epoch,
                fetch.partition_max_bytes,
            )


def _read_all(call: Call[FetchRequestData], fetches: Iterable[_PartitionFetch]) -> _FetchRead:
    read = _FetchRead([], 0, False, set())
    left = min(call.request.max_bytes, MAX_BYTES)
    for fetch in fetches:
        partition, size = _read(call, fetch, left, first=read.size_bytes == 0, read=read)
        read.partitions.append(partition)
        read.size_bytes += size
        left -= size
    return read


def _read(
    call: Call[FetchRequestData], fetch: _PartitionFetch, left: int, *, first: bool, read: _FetchRead
) -> tuple[FetchResponsePartitionData, int]:
    """One partition's data and its size in bytes."""
    index = fetch.partition.partition
    if not fetch.known:
        return FetchResponsePartitionData(partition_index=index, error_code=KafkaError.UNKNOWN_TOPIC_ID), 0
    response = call.broker.core.read(
        fetch.partition,
        fetch.offset,
        min(left, fetch.max_bytes),
        Isolation(call.request.isolation_level & READ_COMMITTED),
        rack=RackId(call.request.rack_id) or None,
        follower_ok=call.version >= FOLLOWERS_SINCE,
        current_leader_epoch=fetch.leader_epoch,
    )
    refused = response.error is not KafkaError.NONE and response.error not in UNKNOWN_TOPIC
    read.respond_now |= refused or response.preferred_read_replica != NO_PREFERENCE
    records = [batch.data for batch in response.batches]
    # The first batch is sent even if it is larger than the limit: else its reader would never advance (KIP-74).
    if not first and sum(map(len, records)) > left:
        records = []
    partition = FetchResponsePartitionData(
        partition_index=index,
        error_code=call.broker.code(response.error),
        high_watermark=response.high_watermark,
        last_stable_offset=response.last_stable_offset,
        log_start_offset=response.log_start,
        preferred_read_replica=response.preferred_read_replica,
        aborted_transactions=_aborted_transactions(call, response.aborted),
        records=records,
    )
    if response.error in LEADER_CHANGED and (state := led_partition(call, fetch.partition)) is not None:
        partition.current_leader = FetchResponseLeaderIdAndEpoch(
            leader_id=state.leader, leader_epoch=state.leader_epoch
        )
        read.current_leaders.add(state.leader)
    return partition, sum(map(len, records))


def _aborted_transactions(
    call: Call[FetchRequestData], aborted: Iterable[AbortedTransaction]
) -> list[FetchResponseAbortedTransaction] | None:
    if call.request.isolation_level != READ_COMMITTED:
        return None
    return [
        FetchResponseAbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in aborted
    ]


def _response(call: Call[FetchRequestData], read: _FetchRead) -> FetchResponseData:
    partitions = iter(read.partitions)
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
            for broker in call.broker.endpoints(read.current_leaders)
        ],
    )


def _count_traffic(call: Call[FetchRequestData], topics: Iterable[FetchableTopicResponse]) -> None:
    broker = call.broker
    for topic in topics:
        size_bytes = sum(len(batch) for partition in topic.partitions for batch in partition.records or ())
        if size_bytes:
            name = topic.topic or (broker.image.topic_names.get(topic.topic_id, "") if topic.topic_id else "")
            broker.traffic.add_fetched(broker.id, call.header.client_id, call.request.rack_id, name, size_bytes)
