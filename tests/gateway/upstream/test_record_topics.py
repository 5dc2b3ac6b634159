"""The gateway's counters beside those of the brokers: the same bytes by path, topic, client and racks."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast
from uuid import UUID

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition
from prometheus_client.core import Metric

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.context import Path as TrafficPath
from rackspan.errors import ClusterUnreachable
from rackspan.gateway.core.record_bytes import BytesPath, ClientLabels, RecordBytes
from rackspan.gateway.metrics import families
from rackspan.gateway.upstream import record_topics
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.record_topics import follow_record_topics, settle
from rackspan.model import Broker, BrokerId, RackId
from rackspan.testing import READS_IN_RACK
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.gateway.running import RunningGateway, running
from tests.gateway.sleeps import Sleeps
from tests.waiting import WITHIN_SECONDS

RECORDS = 300
PARTITIONS = 6


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Three brokers in three racks, which direct readers to the replica in their rack."""
    with EmbeddedCluster(racks=3, brokers=3, config=READS_IN_RACK, seed=3) as started:
        yield started


Counted = tuple[BytesPath, str, str, str, str]
"""BytesPath, topic, client id, from rack, to rack; a rack that is not known is empty."""


def by_gateway(gateway: RunningGateway) -> Counter[Counted]:
    gateway.run(settle(gateway.gateway.record_bytes, gateway.gateway.cluster))
    counted: Counter[Counted] = Counter()
    for flow, size in gateway.gateway.record_bytes.flows.items():
        # Brokers do not see which rack a producer is in.
        from_rack = "" if flow.path is BytesPath.PRODUCE else flow.from_rack
        counted[flow.path, flow.topic, flow.client_id, from_rack, flow.to_rack] += size
    return counted


def by_brokers(cluster: EmbeddedCluster, topics: Sequence[str]) -> Counter[Counted]:
    paths = {False: BytesPath.CONSUME_LEADER, True: BytesPath.CONSUME_FOLLOWER}
    counted: Counter[Counted] = Counter()
    for flow, size in cluster.traffic().items():
        if flow.topic in topics and flow.path is not TrafficPath.REPLICATE:
            path = BytesPath.PRODUCE if flow.path is TrafficPath.PRODUCE else paths[flow.from_follower]
            counted[path, flow.topic, flow.client or "", flow.from_rack or "", flow.to_rack or ""] += size
    return counted


def produce(servers: str, topic: str, client: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": client, "log_level": 0})
    for number in range(RECORDS):
        producer.produce(topic, bytes(1000 + number), partition=number % PARTITIONS)
    assert producer.flush(WITHIN_SECONDS) == 0


def produce_by_kafka_python(servers: str, topic: str, client: str) -> None:
    producer = KafkaProducer(bootstrap_servers=servers, client_id=client)
    for number in range(RECORDS):
        producer.send(topic, bytes(500), partition=number % PARTITIONS)
    producer.flush(WITHIN_SECONDS)
    producer.close()


def read_by_librdkafka(servers: str, topic: str, client: str, count: int, rack: str = "") -> None:
    config = {"bootstrap.servers": servers, "client.id": client, "group.id": client, "log_level": 0}
    consumer = Consumer({**config, "client.rack": rack})
    consumer.assign([TopicPartition(topic, at, OFFSET_BEGINNING) for at in range(PARTITIONS)])
    read = 0
    while read < count:
        read += len(consumer.consume(count, 1))
    consumer.close()


def read_by_kafka_python(servers: str, topic: str, client: str, count: int) -> None:
    consumer = KafkaConsumer(bootstrap_servers=servers, client_id=client, auto_offset_reset="earliest", group_id=None)
    partitions = [KafkaPythonPartition(topic, at) for at in range(PARTITIONS)]
    consumer.assign(partitions)
    for _ in range(count):
        next(consumer)
    # It fetches some records twice; a response that is on its way when it closes has left the broker and never reaches it.
    consumer.pause(*partitions)
    consumer.poll(timeout_ms=1_000)
    consumer.close()


def read_by_aiokafka(servers: str, topic: str, client: str, count: int) -> None:
    async def read() -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=servers, client_id=client, auto_offset_reset="earliest", group_id=None
        )
        await consumer.start()
        for _ in range(count):
            await consumer.getone()
        await consumer.stop()

    asyncio.run(read())


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "readers"), [("off", False), ("off", True), ("verified", True)])
def test_the_gateway_and_the_brokers_count_the_same(cluster: EmbeddedCluster, mode: str, readers: bool) -> None:
    topic, count = f"counted-{mode}-{readers}", 2 * RECORDS
    cluster.create_topic(topic, partitions=PARTITIONS)
    tables = {"acknowledgements": {"mode": mode}, **({"readers": {"clients": {"home-.*": "r2"}}} if readers else {})}
    with running(cluster.bootstrap_servers, **tables) as gateway:
        servers = gateway.bootstrap_servers
        produce(servers, topic, "home-producer")
        produce_by_kafka_python(servers, topic, "shop")
        read_by_librdkafka(servers, topic, "home-librdkafka", count)
        read_by_librdkafka(servers, topic, "far-librdkafka", count, rack="r3")
        read_by_librdkafka(servers, topic, "leaders-librdkafka", count)
        read_by_kafka_python(servers, topic, "home-kafka-python", count)
        read_by_aiokafka(servers, topic, "leaders-aiokafka", count)
        inside, counted = by_brokers(cluster, [topic]), by_gateway(gateway)
        text = "\n".join(str(family.samples) for family in gateway.run(_families(gateway)))
    assert counted.keys() == inside.keys()
    for flow, size in inside.items():
        assert abs(counted[flow] - size) <= size / 1000, flow
    assert {path for path, *_ in counted} == {BytesPath.PRODUCE, BytesPath.CONSUME_LEADER, BytesPath.CONSUME_FOLLOWER}
    home = [flow for flow in counted if flow[2].startswith("home-") and flow[0] is not BytesPath.PRODUCE]
    assert {from_rack for *_, from_rack, _ in home} == ({"r2"} if readers else {"r1", "r2", "r3"})
    assert {to_rack for *_, to_rack in home} == {"r2" if readers else ""}
    software = {(flow.client_id, flow.client_software_name) for flow in gateway.gateway.record_bytes.flows}
    assert ("home-librdkafka", "confluent-kafka-python") in software or ("home-librdkafka", "librdkafka") in software
    assert ("home-kafka-python", "kafka-python") in software
    assert "rackspan_gateway_record_bytes_total" in text
    produced = {flow for flow in gateway.gateway.record_bytes.flows if flow.path is BytesPath.PRODUCE}
    assert {flow.from_rack for flow in produced if flow.client_id == "home-producer"} == {"r2" if readers else ""}


class OneBroker:
    """A cluster whose broker, as Kafka's, ignores the names of a request that has ids."""

    def __init__(self) -> None:
        self.ids = {UUID(int=1): "orders"}

    async def any_connection(self) -> "OneBroker":
        return self

    async def call(self, _key: ApiKey, request: MetadataRequestData) -> MetadataResponseData:
        requested = request.topics or ()
        ids = {topic.topic_id for topic in requested if topic.topic_id is not None}
        names = {self.ids[each] for each in ids if each in self.ids} if ids else {topic.name for topic in requested}
        partitions = [MetadataResponsePartition(partition_index=0, leader_id=1)]
        return MetadataResponseData(
            topics=[
                MetadataResponseTopic(
                    name=name, topic_id=next((at for at, known in self.ids.items() if known == name), None),
                    partitions=partitions,
                )
                for name in names
            ]
        )  # fmt: skip

    def all_brokers(self) -> tuple[Broker, ...]:
        return (Broker(BrokerId(1), RackId("r1")),)


def test_ids_and_names_are_looked_up_apart() -> None:
    counted = RecordBytes(10, 10)
    counted.add(ClientLabels("shop"), 1, UUID(int=1).bytes, 0, 10)
    counted.add(ClientLabels("shop"), 1, "pay", 0, 20)
    counted.add(ClientLabels("shop"), 1, UUID(int=2).bytes, 0, 30)
    asyncio.run(settle(counted, cast("UpstreamCluster", OneBroker())))
    found = {(flow.path, flow.topic): size for flow, size in counted.flows.items()}
    assert found == {
        (BytesPath.CONSUME_LEADER, "orders"): 10,
        (BytesPath.CONSUME_LEADER, "pay"): 20,
        (BytesPath.CONSUME, "(unknown)"): 30,
    }


class Lacking(OneBroker):
    """A cluster that has no topic of any id, and no leader of one partition of each name."""

    async def call(self, _key: ApiKey, request: MetadataRequestData) -> MetadataResponseData:
        partitions = [MetadataResponsePartition(partition_index=at, leader_id=one) for at, one in ((0, 1), (1, -1))]
        return MetadataResponseData(
            topics=[
                MetadataResponseTopic(error_code=5, name=topic.name, partitions=partitions)
                if topic.topic_id is None
                else MetadataResponseTopic(error_code=100, name=None, topic_id=topic.topic_id)
                for topic in request.topics or ()
            ]
        )


def test_a_topic_that_is_gone_is_unknown_and_one_that_lacks_a_leader_is_known() -> None:
    counted = RecordBytes(10, 10)
    for topic, partition, size in ((UUID(int=2).bytes, 0, 30), ("pay", 0, 20), ("pay", 1, 10)):
        counted.add(ClientLabels("shop"), 1, topic, partition, size)
    asyncio.run(settle(counted, cast("UpstreamCluster", Lacking())))
    assert {(flow.path, flow.topic): size for flow, size in counted.flows.items()} == {
        (BytesPath.CONSUME, "(unknown)"): 30,
        (BytesPath.CONSUME_LEADER, "pay"): 20,
        (BytesPath.CONSUME, "pay"): 10,
    }


def test_bytes_are_settled_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, sleeps = RecordBytes(10, 10), Sleeps(2)
    counted.add(ClientLabels("shop"), 1, "pay", 0, 10)
    monkeypatch.setattr(asyncio, "sleep", sleeps)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(follow_record_topics(counted, cast("UpstreamCluster", OneBroker())))
    assert (sleeps.seconds, counted.flows.total()) == ([5.0, 5.0], 10)


def test_bytes_are_settled_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_topics, "SETTLE_SECONDS", 0)
    counted = RecordBytes(10, 10)

    async def scenario() -> None:
        following = asyncio.create_task(follow_record_topics(counted, cast("UpstreamCluster", OneBroker())))
        for total in (10, 20):
            counted.add(ClientLabels("shop"), 1, "pay", 0, 10)
            async with asyncio.timeout(WITHIN_SECONDS):
                while counted.flows.total() < total:
                    await asyncio.sleep(0.001)
        following.cancel()

    asyncio.run(scenario())


def test_bytes_that_cannot_be_looked_up_count_later(caplog: pytest.LogCaptureFixture) -> None:
    class Gone(OneBroker):
        async def any_connection(self) -> OneBroker:
            raise ClusterUnreachable("no broker responds")

    counted = RecordBytes(10, 10)
    counted.add(ClientLabels("shop"), 1, "pay", 0, 20)
    asyncio.run(settle(counted, cast("UpstreamCluster", Gone())))
    assert (counted.flows.total(), counted.unsettled()) == (0, frozenset({"pay"}))
    assert caplog.messages == ["topics of counted bytes could not be looked up: no broker responds"]
    asyncio.run(settle(counted, cast("UpstreamCluster", OneBroker())))
    assert counted.flows.total() == 20


async def _families(gateway: RunningGateway) -> list[Metric]:
    return list(families(gateway.gateway))
