"""Observations of one broker: its metadata as a sample, with the racks it is given with, and log ends."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from rackspan.acks.isr_samples import BEYOND_END, LogEnd, LogRead, SampledPartition
from rackspan.acks.min_insync_racks import rack_bits
from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.client.observations import read_log_ends, read_metadata, registered_brokers, sample_of
from rackspan.errors import ClusterRequestFailed
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequestData,
    FetchResponseData,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
)
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.client.fake_broker import FakeBroker

ORDERS, TOPIC_ID = ("orders", 0), UUID(int=7)
END = 40


METADATA = MetadataResponseData(
    brokers=[MetadataResponseBroker(node_id=number, host="h", port=1, rack=f"r{number}") for number in (1, 2, 3)]
)


def test_racks_are_those_of_the_given_brokers() -> None:
    given = rack_bits([Broker(BrokerId(1), RackId("located")), Broker(BrokerId(2), None)])
    racks = sample_of(1, 0.0, frozenset(), METADATA, given).racks
    assert [racks.count([BrokerId(1), BrokerId(other)]) for other in (2, 3)] == [2, 1]


def test_registered_racks_are_those_of_the_metadata() -> None:
    assert [(broker.id, broker.rack) for broker in registered_brokers(METADATA)] == [(1, "r1"), (2, "r2"), (3, "r3")]


def data(error: int = 0, epoch: int = -1, end: int = -1, start: int = 0) -> FetchResponsePartitionData:
    diverging = FetchResponseEpochEndOffset(epoch=epoch, end_offset=end)
    return FetchResponsePartitionData(error_code=error, log_start_offset=start, diverging_epoch=diverging, records=[])


def responding(fake: FakeBroker, partition: FetchResponsePartitionData) -> list[FetchRequestData]:
    """The requests that the broker gets. It names each topic as the request does."""
    requests: list[FetchRequestData] = []

    async def fetch(request: Any) -> FetchResponseData:
        requests.append(request)
        topics = [
            FetchableTopicResponse(topic=one.topic, topic_id=one.topic_id, partitions=[partition])
            for one in request.topics
        ]
        return FetchResponseData(responses=topics)

    fake.handles[ApiKey.FETCH] = fetch
    return requests


async def read(
    partition: FetchResponsePartitionData, topic_id: UUID | None = TOPIC_ID, offered: int | None = None
) -> tuple[FetchRequestData, tuple[dict[LogRead, LogEnd | None], dict[LogRead, int]]]:
    fake = FakeBroker()
    await fake.start()
    requests = responding(fake, partition)
    connection = await BrokerConnection.open("127.0.0.1", fake.port, Login())
    if offered is not None:
        connection._versions[ApiKey.FETCH] = (4, offered)
    try:
        found = await read_log_ends(connection, [LogRead(ORDERS, topic_id, 5)], 2.0)
        return requests[0], found
    finally:
        connection.close()
        await fake.close()


@pytest.mark.parametrize(
    ("response", "ends", "errors"),
    [
        (data(epoch=5, end=END, start=3), [LogEnd(5, END, 3)], []),
        (data(epoch=4, end=9), [LogEnd(4, 9, 0)], []),
        (data(error=1), [None], []),
        (data(error=29), [], [29]),
        (data(error=100), [], [100]),
        # A broker that passes over the last fetched epoch shows nothing.
        (data(), [], []),
    ],
)
def test_what_a_response_is_taken_for(
    response: FetchResponsePartitionData, ends: list[LogEnd | None], errors: list[int]
) -> None:
    request, (found, refused) = asyncio.run(read(response))
    assert (list(found.values()), list(refused.values())) == (ends, errors)
    (partition,) = request.topics[0].partitions
    assert (partition.fetch_offset, partition.last_fetched_epoch) == (BEYOND_END, 5)
    assert (request.max_wait, request.max_bytes, request.session_epoch) == (0, 0, -1)


@pytest.mark.parametrize(("topic_id", "offered"), [(None, None), (TOPIC_ID, 12)])
def test_without_topic_ids_a_topic_is_read_by_name(topic_id: UUID | None, offered: int | None) -> None:
    request, (found, _) = asyncio.run(read(data(epoch=5, end=END), topic_id, offered))
    assert request.topics[0].topic == "orders"
    assert list(found.values()) == [LogEnd(5, END, is_by_id=False)]


def test_a_broker_that_is_too_old_is_an_error() -> None:
    with pytest.raises(ClusterRequestFailed, match=r"Fetch up to version 11, .* from 12 on \(Kafka 2.7\)"):
        asyncio.run(read(data(), offered=11))


def test_partitions_that_were_not_requested_are_passed_over_and_an_error_of_the_response_is_raised() -> None:
    requested = LogRead(ORDERS, TOPIC_ID, 5)
    other = FetchableTopicResponse(topic_id=UUID(int=8), partitions=[data(epoch=5, end=END)])
    own = FetchableTopicResponse(
        topic_id=TOPIC_ID,
        partitions=[FetchResponsePartitionData(partition_index=1, error_code=3), data(epoch=5, end=7)],
    )
    response = FetchResponseData(responses=[other, own])
    calls: list[tuple[object, ...]] = []

    class Connection:
        def version(self, _key: object) -> int:
            return 17

        async def call(self, *arguments: object) -> FetchResponseData:
            calls.append(arguments)
            return response

    connection: Any = Connection()
    assert asyncio.run(read_log_ends(connection, [requested], 1.5)) == ({requested: LogEnd(5, 7, 0)}, {})
    assert (calls[0][0], calls[0][2:]) == (ApiKey.FETCH, (17, 1.5))
    response.error_code = 56
    with pytest.raises(ClusterRequestFailed, match="Fetch: error 56"):
        asyncio.run(read_log_ends(connection, [requested], 1.0))


def test_log_ends_of_many_partitions_are_one_request_in_their_order() -> None:
    reads = [LogRead((topic, number), UUID(int=one), 5) for one, topic in ((2, "b"), (1, "a")) for number in (1, 0)]

    async def scenario() -> FetchRequestData:
        fake = FakeBroker()
        await fake.start()
        requests = responding(fake, data(epoch=5, end=END))
        connection = await BrokerConnection.open("127.0.0.1", fake.port, Login())
        found, _ = await read_log_ends(connection, reads, 2.0)
        connection.close()
        await fake.close()
        # The fake broker responds with partition 0 of each.
        assert {read.partition for read in found} == {("a", 0), ("b", 0)}
        return requests[0]

    request = asyncio.run(scenario())
    listed = [(one.topic_id, [partition.partition for partition in one.partitions]) for one in request.topics]
    assert listed == [(UUID(int=1), [0, 1]), (UUID(int=2), [0, 1])]


def test_metadata_of_topics_is_read_in_order_and_creates_none() -> None:
    async def scenario() -> tuple[MetadataResponseData, Any]:
        fake, requests = FakeBroker(), list[Any]()
        await fake.start()

        async def metadata(request: Any) -> MetadataResponseData:
            requests.append(request)
            return METADATA

        fake.handles[ApiKey.METADATA] = metadata
        connection = await BrokerConnection.open("127.0.0.1", fake.port, Login())
        found = await read_metadata(connection, set("hgfedcba"), 2.0)
        connection.close()
        await fake.close()
        return found, requests[0]

    found, request = asyncio.run(scenario())
    assert [broker.rack for broker in found.brokers] == ["r1", "r2", "r3"]
    assert [topic.name for topic in request.topics] == list("abcdefgh")
    assert not request.allow_auto_topic_creation


def test_a_sample_has_the_partitions_of_topics_without_an_error() -> None:
    partition = MetadataResponsePartition(partition_index=2, leader_id=1, leader_epoch=5, isr_nodes=[1, 3])
    replicated = MetadataResponsePartition(partition_index=3, leader_id=1, isr_nodes=[1], replica_nodes=[1, 3])
    topics = [
        MetadataResponseTopic(error_code=0, name="orders", topic_id=TOPIC_ID, partitions=[partition, replicated]),
        MetadataResponseTopic(error_code=5, name="pay", topic_id=UUID(int=8), partitions=[partition]),
        MetadataResponseTopic(error_code=0, name="old", topic_id=None),
        MetadataResponseTopic(error_code=3, name="missing", topic_id=None),
        MetadataResponseTopic(error_code=17, name="no/name", topic_id=None),
        MetadataResponseTopic(error_code=29, name="secret", topic_id=None),
    ]
    sample = sample_of(7, 1.5, frozenset({"orders", "pay"}), MetadataResponseData(topics=topics), rack_bits(()))
    assert (sample.source, sample.requested_at, sample.topics) == (7, 1.5, frozenset({"orders", "pay"}))
    assert sample.partitions == {
        ("orders", 2): SampledPartition(1, 5, (BrokerId(1), BrokerId(3))),
        ("orders", 3): SampledPartition(1, -1, (BrokerId(1),), 2),
    }
    assert sample.topic_ids == {"orders": TOPIC_ID, "pay": UUID(int=8)}
    assert sample.undescribed == {"pay", "secret"}
