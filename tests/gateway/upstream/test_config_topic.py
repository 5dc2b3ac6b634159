"""The config topic while brokers are lost: one whose metadata is behind, and a leader that does not respond."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from rackspan.client.brokers import KnownBroker
from rackspan.client.login import Login
from rackspan.gateway.upstream import config_topic, config_writer
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_leader import Lead
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import HEADER_BYTES, stored_records, with_records, write_batch
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import FetchableTopicResponse, FetchResponseData
from rackspan.wire.messages.fetch import FetchResponsePartitionData as FetchedPartition
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponseData,
    ListOffsetsTopicResponse,
)
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rackspan.wire.messages.produce import PartitionProduceResponse, ProduceResponseData, TopicProduceResponse
from tests.client.fake_broker import FakeBroker, Handle
from tests.waiting import WITHIN_SECONDS

CONFIGS = "configs"
LATEST = -1
"""ListOffsets' timestamp."""


class Log:
    """The records of one partition, as a leader appends and serves them."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.start = 0
        self.behind = 0
        """By how many records the high watermark of a new leader is behind what was committed before it led."""

    async def produce(self, request: Any) -> ProduceResponseData:
        records = bytes(request.topic_data[0].partition_data[0].records)
        self.batches.append(len(self.batches).to_bytes(8, "big") + records[8:])
        partition = PartitionProduceResponse(index=0, error_code=0, base_offset=len(self.batches) - 1)
        return ProduceResponseData(responses=[TopicProduceResponse(name=CONFIGS, partition_responses=[partition])])

    async def fetch(self, request: Any) -> FetchResponseData:
        offset = request.topics[0].partitions[0].fetch_offset
        if offset == len(self.batches):
            await asyncio.sleep(request.max_wait / 1000)
        partition = FetchedPartition(
            partition_index=0,
            error_code=0,
            high_watermark=self.high_watermark,
            records=memoryview(b"".join(self.batches[offset : self.high_watermark])),
        )
        return FetchResponseData(responses=[FetchableTopicResponse(topic=CONFIGS, partitions=[partition])])

    async def list_offsets(self, request: Any) -> ListOffsetsResponseData:
        wanted = request.topics[0].partitions[0].timestamp
        partition = ListOffsetsPartitionResponse(
            partition_index=0,
            error_code=0 if wanted != LATEST or not self.behind else ErrorCode.OFFSET_NOT_AVAILABLE,
            offset=self.high_watermark if wanted == LATEST else self.start,
        )
        return ListOffsetsResponseData(topics=[ListOffsetsTopicResponse(name=CONFIGS, partitions=[partition])])

    @property
    def high_watermark(self) -> int:
        return len(self.batches) - self.behind


def metadata(brokers: dict[int, int], leader: int, epoch: int) -> Handle:
    """Metadata of the config topic. `brokers` are ports by id."""

    async def respond(_request: Any) -> MetadataResponseData:
        partition = MetadataResponsePartition(
            partition_index=0, leader_id=leader, leader_epoch=epoch, replica_nodes=[1, 2, 3], isr_nodes=[1, 2]
        )
        return MetadataResponseData(
            brokers=[
                MetadataResponseBroker(node_id=one, host="127.0.0.1", port=port, rack=f"r{one}")
                for one, port in brokers.items()
            ],
            topics=[MetadataResponseTopic(error_code=0, name=CONFIGS, partitions=[partition])],
        )

    return respond


def dead_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@asynccontextmanager
async def brokers(count: int) -> AsyncIterator[list[FakeBroker]]:
    made = [FakeBroker() for _ in range(count)]
    for one in made:
        await one.start()
    try:
        yield made
    finally:
        for one in made:
            await one.close()


def cluster_of(*ports: int) -> UpstreamCluster:
    cluster = UpstreamCluster(f"127.0.0.1:{ports[0]}", Login(), Random(1))
    cluster.by_id = {one: KnownBroker(one, "127.0.0.1", port, f"r{one}") for one, port in enumerate(ports, 1)}
    return cluster


async def written(
    cluster: UpstreamCluster, before: Callable[[ConfigTopic], Awaitable[None]] | None = None
) -> list[Any]:
    """What a gateway has replayed once a record is written."""
    replayed: list[Any] = []
    topic = ConfigTopic(CONFIGS, cluster, Login(), lambda key, value: replayed.append((key, value)))
    following = asyncio.create_task(topic.follow())
    try:
        if before is not None:
            await before(topic)
        async with asyncio.timeout(WITHIN_SECONDS):
            await topic.write(b"key", b"value")
        return replayed
    finally:
        following.cancel()
        topic.close()
        cluster.close()


def test_a_broker_whose_metadata_is_behind_does_not_hold_up_a_write() -> None:
    async def scenario() -> list[Any]:
        async with brokers(2) as (behind, leader):
            log, ports = Log(), {1: behind.port, 2: leader.port}
            gone = dead_port()
            behind.handles[ApiKey.METADATA] = metadata({**ports, 3: gone}, leader=3, epoch=4)
            leader.handles |= {
                ApiKey.METADATA: metadata(ports, leader=2, epoch=5),
                ApiKey.PRODUCE: log.produce,
                ApiKey.FETCH: log.fetch,
                ApiKey.LIST_OFFSETS: log.list_offsets,
            }
            cluster = cluster_of(behind.port, leader.port, gone)
            # The connection that is open already is that to the broker whose metadata is behind.
            await cluster.connection(1)
            return await written(cluster)

    assert asyncio.run(scenario()) == [(b"key", b"value")]


def test_batches_that_lost_records_to_compaction_are_replayed() -> None:
    async def scenario() -> list[Any]:
        async with brokers(1) as (leader,):
            log = Log()
            leader.handles |= {
                ApiKey.METADATA: metadata({1: leader.port}, leader=1, epoch=5),
                ApiKey.PRODUCE: log.produce,
                ApiKey.FETCH: log.fetch,
                ApiKey.LIST_OFFSETS: log.list_offsets,
            }
            whole = write_batch([(b"a", b"1"), (b"b", b"1"), (b"a", b"2")], 0)
            log.batches = [with_records(whole, list(stored_records(whole[HEADER_BYTES:]))[1:]), b"", b""]
            return await written(cluster_of(leader.port))

    assert asyncio.run(scenario()) == [(b"b", b"1"), (b"a", b"2"), (b"key", b"value")]


def test_a_broker_that_does_not_respond_does_not_hold_up_a_write() -> None:
    async def scenario() -> list[Any]:
        async with brokers(2) as (frozen, leader):
            log = Log()
            leader.handles |= {
                ApiKey.METADATA: metadata({2: leader.port}, leader=2, epoch=5),
                ApiKey.PRODUCE: log.produce,
                ApiKey.FETCH: log.fetch,
                ApiKey.LIST_OFFSETS: log.list_offsets,
            }
            cluster = cluster_of(frozen.port, leader.port)
            await cluster.connection(1)
            return await written(cluster)

    assert asyncio.run(scenario()) == [(b"key", b"value")]


def test_a_record_that_waits_for_followers_does_not_hold_up_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_writer, "WRITE_SECONDS", 2 * WITHIN_SECONDS)

    async def scenario() -> None:
        async with brokers(1) as (leader,):
            leader.handles |= {ApiKey.METADATA: metadata({1: leader.port}, 1, 5), ApiKey.FETCH: Log().fetch}
            cluster = cluster_of(leader.port)
            topic = ConfigTopic(CONFIGS, cluster, Login(), lambda _key, _value: None)
            writing = asyncio.create_task(topic.write(b"key", b"value"))
            while ApiKey.PRODUCE not in leader.received:
                await asyncio.sleep(0.01)
            async with asyncio.timeout(WITHIN_SECONDS):
                await cluster.refresh()
            writing.cancel()
            topic.close()
            cluster.close()

    asyncio.run(scenario())


def test_a_broker_that_moved_is_reached_at_its_new_address() -> None:
    async def scenario() -> tuple[int, int]:
        async with brokers(2) as (before, after):
            cluster = cluster_of(before.port)
            before.handles[ApiKey.METADATA] = after.handles[ApiKey.METADATA] = metadata({1: after.port}, 1, 5)
            await cluster.connection(1)
            # The old address still responds, as one that another host has taken over would.
            await cluster.refresh()
            await cluster.refresh()
            cluster.close()
            return before.received.count(ApiKey.METADATA), after.received.count(ApiKey.METADATA)

    assert asyncio.run(scenario()) == (1, 1)


def test_a_broker_that_is_down_keeps_its_rack() -> None:
    async def scenario() -> list[tuple[int, str | None]]:
        async with brokers(1) as (broker,):
            broker.handles[ApiKey.METADATA] = metadata({1: broker.port, 2: dead_port()}, 1, 5)
            cluster = UpstreamCluster(f"127.0.0.1:{broker.port}", Login(), Random(1))
            await cluster.refresh()
            broker.handles[ApiKey.METADATA] = metadata({1: broker.port}, 1, 5)
            await cluster.refresh()
            # A response of a broker whose metadata is behind still names broker 2, and one that never was up.
            cluster.record(2, "127.0.0.1", 1)
            cluster.record(3, "127.0.0.1", 1)
            cluster.close()
            assert [one.id for one in cluster.brokers()] == [1, 2]
            return [(int(one.id), one.rack) for one in cluster.all_brokers()]

    assert asyncio.run(scenario()) == [(1, "r1"), (2, "r2")]


class Leader(Log):
    """A log that can be emptied or made anew, as a broker would serve it."""

    async def fetch(self, request: Any) -> FetchResponseData:
        offset = request.topics[0].partitions[0].fetch_offset
        if not self.start <= offset <= len(self.batches):
            partition = FetchedPartition(partition_index=0, error_code=1, high_watermark=-1, records=None)
        else:
            response = await super().fetch(request)
            partition = response.responses[0].partitions[0]
            partition.log_start_offset = self.start
        return FetchResponseData(responses=[FetchableTopicResponse(topic=CONFIGS, partitions=[partition])])

    def append(self, key: bytes, value: bytes | None) -> None:
        self.batches.append(len(self.batches).to_bytes(8, "big") + write_batch([(key, value)], 0)[8:])


@asynccontextmanager
async def followed(log: Leader) -> AsyncIterator[tuple[ConfigTopic, list[Any], FakeBroker]]:
    replayed: list[Any] = []
    async with brokers(1) as (leader,):
        leader.handles |= {
            ApiKey.METADATA: metadata({1: leader.port}, 1, 5),
            ApiKey.PRODUCE: log.produce,
            ApiKey.FETCH: log.fetch,
            ApiKey.LIST_OFFSETS: log.list_offsets,
        }
        cluster = cluster_of(leader.port)
        topic = ConfigTopic(CONFIGS, cluster, Login(), lambda key, value: replayed.append((key, value)))
        following = asyncio.create_task(topic.follow())
        try:
            async with asyncio.timeout(WITHIN_SECONDS):
                yield topic, replayed, leader
        finally:
            following.cancel()
            topic.close()
            cluster.close()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_values_that_a_topic_created_anew_lacks_are_kept_and_reported_until_they_are_set_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        log = Leader()
        for key, value in ((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"c", None), (b"a", b"2")):
            log.append(key, value)
        async with followed(log) as (topic, replayed, _):
            await until(lambda: topic.current)
            assert dict(replayed) == {b"a": b"2", b"b": b"1", b"c": None}
            log.batches.clear()
            log.append(b"a", b"2")
            await until(lambda: bool(topic.lost))
            # The tombstone of c took its value away before.
            assert topic.lost == {b"b"}
            assert [line for line in lines_of(caplog) if "configs no longer has b, and no tombstone" in line]
            assert (b"b", None) not in replayed
            await topic.write(b"b", b"1")
            assert topic.lost == set()

    asyncio.run(scenario())


def test_records_that_an_unclean_election_lost_are_reported_though_as_many_others_follow() -> None:
    async def scenario() -> None:
        log = Leader()
        log.append(b"a", b"1")
        log.append(b"b", b"1")
        async with followed(log) as (topic, _, leader):
            await until(lambda: topic.current)
            log.batches.pop()
            log.append(b"d", b"1")
            log.append(b"e", b"1")
            leader.handles[ApiKey.METADATA] = metadata({1: leader.port}, 1, 6)
            topic._drop_connection()
            await until(lambda: topic.lost == {b"b"})

    asyncio.run(scenario())


def test_the_topic_is_followed_over_another_connection_before_a_login_expires(caplog: pytest.LogCaptureFixture) -> None:
    """The broker would close it at the next request, and the values would count as unread until it is opened again."""

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, replayed, _):
            await until(lambda: topic.current)
            expired = topic._connection
            assert expired is not None
            expired._expires_at = 0.0
            await until(lambda: topic._connection is not expired)
            assert expired.closed
            log.append(b"a", b"1")
            await until(lambda: replayed == [(b"a", b"1")])
            assert "cannot be followed" not in caplog.text

    asyncio.run(scenario())


def test_records_that_a_new_leader_does_not_serve_yet_are_waited_for() -> None:
    """Its high watermark is behind until its followers have fetched."""

    async def scenario() -> None:
        log = Leader()
        log.append(b"a", b"1")
        log.append(b"b", b"1")
        log.behind = 1
        async with followed(log) as (topic, replayed, leader):
            await until(lambda: leader.received.count(ApiKey.LIST_OFFSETS) > 1)
            assert not topic.current
            log.behind = 0
            await until(lambda: topic.current)
            assert dict(replayed) == {b"a": b"1", b"b": b"1"}
            log.behind = 1
            leader.handles[ApiKey.METADATA] = metadata({1: leader.port}, 1, 6)
            topic._drop_connection()
            leader.received.clear()
            await until(lambda: leader.received.count(ApiKey.LIST_OFFSETS) > 1)
            log.behind = 0
            await until(lambda: topic.current)
            assert topic.lost == set()

    asyncio.run(scenario())


def test_what_is_read_again_is_replayed_by_the_last_record_of_each_key_only() -> None:
    """An earlier value, replayed in between, would lower what is required."""

    async def scenario() -> None:
        log = Leader()
        log.append(b"a", b"1")
        log.append(b"a", b"2")
        async with followed(log) as (topic, replayed, leader):
            await until(lambda: topic.current)
            leader.handles[ApiKey.METADATA] = metadata({1: leader.port}, 1, 6)
            topic._drop_connection()
            await until(lambda: len(replayed) > 1)
            assert replayed == [(b"a", b"2"), (b"a", b"2")]

    asyncio.run(scenario())


def test_deleted_records_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> int:
        log = Leader()
        log.append(b"a", b"1")
        log.start = 1
        async with followed(log) as (topic, _, leader):
            await until(lambda: topic.current)
            fetches = leader.received.count(ApiKey.FETCH)
            await until(lambda: leader.received.count(ApiKey.FETCH) > fetches + 1)
            return topic.log_start_offset

    assert asyncio.run(scenario()) == 1
    # Once, however often it is read.
    (line,) = lines_of(caplog)
    assert line.startswith("the config topic configs begins at offset 1: records were deleted, and with them maybe")


def lines_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The log of the config topic alone: fake brokers that are closed leave lines of asyncio."""
    return [entry.getMessage() for entry in caplog.records if entry.name == config_topic.__name__]


def test_a_config_topic_that_cannot_be_followed_is_reported_at_once_and_now_and_then(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(config_topic, "_BACKOFF_SECONDS", 0)
    caplog.set_level(logging.INFO, config_topic.__name__)

    def unread() -> list[str]:
        return [line for line in lines_of(caplog) if "cannot be followed for" in line]

    async def scenario() -> None:
        log, tries = Leader(), 0
        log.append(b"a", b"1")

        async def refused(_: Any) -> FetchResponseData:
            nonlocal tries
            tries += 1
            refusal = FetchedPartition(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return FetchResponseData(responses=[FetchableTopicResponse(topic=CONFIGS, partitions=[refusal])])

        async def timed_out() -> Lead:
            raise TimeoutError

        async with followed(log) as (topic, _, leader):
            await until(lambda: topic.current)
            leader.handles[ApiKey.FETCH] = refused
            await until(lambda: tries > 5)
            assert not topic.current
            assert len(unread()) == 1
            monkeypatch.setattr(config_topic, "WARN_SECONDS", 0)
            await until(lambda: len(unread()) > 2)
            # An error without words: the leader does not respond in time.
            monkeypatch.setattr(topic._leader, "find", timed_out)
            topic._drop_connection()
            await until(lambda: unread()[-1].endswith(" s: TimeoutError"))
            monkeypatch.undo()
            monkeypatch.setattr(config_topic, "_BACKOFF_SECONDS", 0)
            leader.handles[ApiKey.FETCH] = log.fetch
            await until(lambda: topic.current)

    asyncio.run(scenario())
    assert unread()[0] == "the config topic configs cannot be followed for 0 s: error 6 from the leader of configs"
    assert lines_of(caplog)[-1] == "the config topic configs is followed again"
