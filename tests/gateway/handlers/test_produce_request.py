"""One Produce request of thousands of partitions or topics: it takes time in proportion to them."""

from collections.abc import Mapping
from typing import Any, cast
from uuid import UUID

import pytest

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.handlers.produce_request import ProduceRequest
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_response, write_request
from rackspan.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequestData,
    TopicProduceData,
    TopicProduceResponse,
)


def test_a_request_of_more_partitions_than_are_read_in_a_second_is_malformed() -> None:
    """6 bytes each: 12 MB of them took longer than a lease on the values lasts."""
    session: Any = None

    def request(count: int) -> Any:
        data = [PartitionProduceData(index=0, records=None)] * count
        body = ProduceRequestData(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=data)])
        sent = memoryview(b"".join(write_request(ApiKey.PRODUCE, 9, 7, None, body)))
        return ProduceRequest(session, Exchange(ApiKey.PRODUCE, 9, 7, Treatment.WHOLE), sent, {}, 0.0)

    assert len(request(49_999).body.topic_data[0].partition_data) == 49_999
    with pytest.raises(MalformedRequest, match="50000 elements"):
        request(50_000)


class CountedTopic:
    """A topic of a broker's response. `assigned` counts the elements of every array that its partitions were replaced by."""

    name = "orders"
    topic_id = None

    def __init__(self) -> None:
        self.assigned = 0
        self._partitions: Any = ()

    @property
    def partition_responses(self) -> Any:
        return self._partitions

    @partition_responses.setter
    def partition_responses(self, partitions: Any) -> None:
        self.assigned += len(partitions)
        self._partitions = partitions


class CountedNames(dict[UUID, str]):
    """The names of topic ids. `lookups` counts how often one was looked up."""

    lookups = 0

    def get(self, key: UUID, default: Any = None) -> Any:
        self.lookups += 1
        return super().get(key, default)


def test_refusals_of_thousands_of_partitions_or_topic_ids_take_time_in_proportion_to_them() -> None:
    """A request of 600 KB has 100,000 of them: with a step for each pair it stopped the gateway for minutes."""
    count = 1000
    session: Any = None

    def request(version: int, names: Mapping[UUID, str], *topics: TopicProduceData) -> ProduceRequest:
        sent = b"".join(write_request(ApiKey.PRODUCE, version, 7, None, ProduceRequestData(acks=-1, topic_data=topics)))
        exchange = Exchange(ApiKey.PRODUCE, version, 7, Treatment.WHOLE)
        return ProduceRequest(session, exchange, memoryview(sent), names, 0.0)

    def refused(index: int) -> PartitionProduceResponse:
        return PartitionProduceResponse(index=index, error_code=ErrorCode.NOT_ENOUGH_REPLICAS)

    def merged(produce: ProduceRequest, version: int) -> list[TopicProduceResponse]:
        return [*read_response(ApiKey.PRODUCE, version, b"".join(map(bytes, produce.response()))).responses]

    produce, topic = request(9, {}), CountedTopic()
    produce.produced.responses = [cast("TopicProduceResponse", topic)]
    produce.responses = {("orders", index): refused(index) for index in range(count)}
    (response,) = merged(produce, 9)
    assert [one.index for one in response.partition_responses] == list(range(count))
    assert topic.assigned <= 2 * count

    ids = [UUID(int=number) for number in range(1, count + 1)]
    data = [PartitionProduceData(index=0, records=None)]
    names = CountedNames()
    produce = request(13, names, *(TopicProduceData(topic_id=topic_id, partition_data=data) for topic_id in ids))
    produce.responses = {(str(topic_id), 0): refused(0) for topic_id in ids}
    assert [one.topic_id for one in merged(produce, 13)] == ids
    assert names.lookups <= 4 * count
