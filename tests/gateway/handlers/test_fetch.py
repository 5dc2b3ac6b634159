"""Consumers without a rack of their own read from their gateway's rack, and one that cannot be redirected is served all the same."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from struct import pack
from typing import Any, cast
from uuid import UUID

import pytest
from confluent_kafka import Consumer, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from rackspan.client.connection import BrokerConnection
from rackspan.client.login import login_from
from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.context import Path
from rackspan.errors import MalformedRequest
from rackspan.gateway.check import CheckLevel, check_cluster
from rackspan.gateway.config import parse_config
from rackspan.gateway.core.apis import OFFERED, Treatment
from rackspan.gateway.core.reader_racks import ReaderRacks
from rackspan.gateway.handlers.fetch import FetchHandler
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.model.ids import RackId
from rackspan.testing import READS_IN_RACK
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header, read_response, write_request
from rackspan.wire.messages.fetch import (
    FetchPartition,
    FetchRequestData,
    FetchRequestReplicaState,
    FetchResponseData,
    FetchTopic,
)
from tests.gateway.running import RunningGateway, document, running
from tests.waiting import WITHIN_SECONDS, eventually

RECORDS = 200


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    """Three brokers in three racks, which direct readers to the replica in their rack."""
    with EmbeddedCluster(racks=3, brokers=3, config=READS_IN_RACK, seed=3) as started:
        yield started


@pytest.fixture
def topic(cluster: EmbeddedCluster, request: pytest.FixtureRequest) -> str:
    """Three partitions, each led from another rack, all of them in every rack."""
    name = str(request.node.name).replace("[", "-").replace("]", "")[-60:]
    cluster.create_topic(name, partitions=3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(name, bytes(1000), partition=number % 3)
    assert producer.flush(WITHIN_SECONDS) == 0
    return name


@pytest.fixture
def gateway_in_r2(cluster: EmbeddedCluster) -> Iterator[RunningGateway]:
    with running(cluster.bootstrap_servers, readers={"rack": "r2"}) as gateway:
        yield gateway


def read_all(servers: str, topic: str, **config: str) -> list[tuple[int, int]]:
    """Partition and offset of every record, as consumed."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic + config.get("client.id", ""),
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
    )
    consumer.subscribe([topic])
    read: list[tuple[int, int]] = []
    try:

        def is_read() -> bool:
            messages = consumer.consume(RECORDS, 0.5)
            read.extend(
                (int(message.partition() or 0), int(message.offset() or 0))
                for message in messages
                if message.error() is None
            )
            return len(read) >= RECORDS

        eventually(is_read, "all records are read")
    finally:
        consumer.close()
    return read


def id_of(cluster: EmbeddedCluster, topic: str) -> UUID:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(WITHIN_SECONDS)
    return UUID(
        int=(described.topic_id.get_most_significant_bits() % 2**64 << 64)
        + described.topic_id.get_least_significant_bits() % 2**64
    )


def fetched_from(cluster: EmbeddedCluster, topic: str, client: str = "rdkafka") -> Counter[str | None]:
    """Bytes of records that consumers fetched, by the rack of the broker."""
    found: Counter[str | None] = Counter()
    for flow, size_bytes in cluster.traffic().items():
        if flow.path is Path.FETCH and (flow.topic, flow.client) == (topic, client):
            found[flow.from_rack] += size_bytes
    return found


def test_a_consumer_without_a_rack_reads_from_its_gateways_rack_only(
    cluster: EmbeddedCluster, gateway_in_r2: RunningGateway, topic: str
) -> None:
    read = read_all(gateway_in_r2.bootstrap_servers, topic)
    assert sorted(read) == sorted((number % 3, number // 3) for number in range(RECORDS)), "nothing twice, nothing lost"
    assert set(fetched_from(cluster, topic)) == {"r2"}


def test_without_the_option_it_reads_from_leaders(
    cluster: EmbeddedCluster, gateway: RunningGateway, topic: str
) -> None:
    read_all(gateway.bootstrap_servers, topic)
    assert set(fetched_from(cluster, topic)) == {"r1", "r2", "r3"}
    assert gateway.gateway.fetch.written == 0


def test_a_consumer_that_names_its_rack_keeps_it(
    cluster: EmbeddedCluster, gateway_in_r2: RunningGateway, topic: str
) -> None:
    read_all(gateway_in_r2.bootstrap_servers, topic, **{"client.rack": "r3"})
    assert set(fetched_from(cluster, topic)) == {"r3"}


def test_unless_it_is_replaced(cluster: EmbeddedCluster, topic: str) -> None:
    readers = {"rack": "r2", "replace": {"client": {"rack": True}}}
    with running(cluster.bootstrap_servers, readers=readers) as gateway:
        read_all(gateway.bootstrap_servers, topic, **{"client.rack": "r3"})
    assert set(fetched_from(cluster, topic)) == {"r2"}


def test_client_ids_and_addresses_have_racks_of_their_own(cluster: EmbeddedCluster, topic: str) -> None:
    readers = {"networks": {"127.0.0.0/8": "r1"}, "clients": {"billing-.*": "r3"}}
    with running(cluster.bootstrap_servers, readers=readers) as gateway:
        read_all(gateway.bootstrap_servers, topic, **{"client.id": "billing-1"})
        read_all(gateway.bootstrap_servers, topic, **{"client.id": "shop"})
    assert set(fetched_from(cluster, topic, "billing-1")) == {"r3"}
    assert set(fetched_from(cluster, topic, "shop")) == {"r1"}


@pytest.mark.parametrize("version", [11, 12, 17])
def test_a_client_that_ignores_the_replica_is_served_by_the_leader_from_its_third_fetch_on(
    cluster: EmbeddedCluster, gateway_in_r2: RunningGateway, topic: str, version: int
) -> None:
    """It would otherwise get no record, ever: a leader that names a replica sends none."""
    gateway = gateway_in_r2.gateway
    name, topic_id = (topic, None) if version < 13 else ("", id_of(cluster, topic))
    partition, broker = next((at, leader) for at in range(3) if (leader := cluster.leader(topic, at)) in (1, 3))
    fetch = FetchRequestData(
        max_wait=10,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic=name,
                topic_id=topic_id,
                partitions=[FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)],
            )
        ],
    )

    async def fetches() -> list[tuple[int, int]]:
        connection = await BrokerConnection.open(*gateway_in_r2.address(broker), login_from({}), 10)
        try:
            responses = []
            for _ in range(4):
                response: FetchResponseData = await connection.send(ApiKey.FETCH, fetch, version)
                (found,) = response.responses[0].partitions
                responses.append((found.preferred_read_replica, len(found.records or b"")))
            return responses
        finally:
            connection.close()

    responses = asyncio.run(fetches())
    assert [preferred for preferred, _ in responses] == [2, 2, -1, -1]
    assert [size > 0 for _, size in responses] == [False, False, True, True]
    assert gateway.fetch.redirects.left_alone == 1


class Session:
    """A client's session with broker 1 or another one: how many fetches were forwarded as they came, and with a rack."""

    host, peer = "192.0.2.1", "192.0.2.1:5"

    def __init__(self, broker: int) -> None:
        self.broker = broker
        self.as_sent = 0
        self.racks: list[str] = []
        self.client: list[str | None] = []
        """Its names and racks, as bytes are counted by them."""
        self.counted: list[tuple[object, ...]] = []
        self.responses: list[bytes] = []

    def respond(self, _exchange: Exchange, parts: Sequence[Any]) -> None:
        self.responses.append(b"".join(map(bytes, parts)))

    def name_client(self, client_id: str | None) -> None:
        self.client.append(client_id)

    locate_client = name_client

    def count_fetched(self, *counted: object) -> None:
        self.counted.append(counted)

    def forward(self, exchange: Exchange, parts: Sequence[Any] | None = None) -> None:
        if parts is None:
            self.as_sent += 1
            return
        request = memoryview(b"".join(map(bytes, parts)))
        header = read_header(request)
        assert (header.correlation_id, header.client_id) == (exchange.correlation_id, "shop")
        fetch: FetchRequestData = read_body(request, header)
        self.racks.append(fetch.rack_id)


@pytest.mark.parametrize(("follows", "written"), [(True, 4), (False, 3)])
def test_a_client_that_fetched_from_the_replica_that_was_named_keeps_its_rack_however_often_one_is_named(
    follows: bool, written: int
) -> None:
    """Named in vain twice in a row, a client is taken for one that ignores replicas."""

    async def scenario() -> tuple[int, int, int]:
        handler = FetchHandler(ReaderRacks(RackId("r2")))
        leader, named = Session(1), Session(2 if follows else 3)

        def fetched(session: Session) -> None:
            topics = [FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, fetch_offset=0)])]
            parts = write_request(ApiKey.FETCH, 12, 7, "shop", FetchRequestData(topics=topics))
            exchange = Exchange(ApiKey.FETCH, 12, 7, Treatment.ENDPOINTS_LAST)
            handler.take(cast("Any", session), exchange, memoryview(b"".join(parts)))
            if session is leader and exchange.on_partition is not None:
                exchange.on_partition("orders", 0, 2, 0)

        for session in (leader, named, leader, leader):
            fetched(session)
        assert {*leader.racks, *named.racks} == {"r2"}
        return len(leader.racks) + len(named.racks), leader.as_sent, handler.written

    assert asyncio.run(scenario()) == (written, 4 - written, written)


@pytest.mark.parametrize(
    ("version", "own", "replaces", "rack", "racks", "client"),
    [
        (11, "", False, "r2", ["r2"], ["shop", "", "r2"]),
        (17, "", False, "r2", ["r2"], ["shop", "", "r2"]),
        (12, "r3", False, "r2", [], ["shop", "r3"]),
        (12, "r3", True, "r2", ["r2"], ["shop", "r3", "r2"]),
        (12, "r3", True, None, [], ["shop", "r3"]),
        (12, "", False, None, [], ["shop", ""]),
        # A fetch of these versions has no rack.
        (10, "", False, "r2", [], ["shop", ""]),
        (4, "", True, "r2", [], ["shop", ""]),
    ],
)
def test_a_fetch_gets_a_rack_if_it_names_none_or_that_is_replaced(
    version: int, own: str, replaces: bool, rack: str | None, racks: list[str], client: list[str]
) -> None:
    async def scenario() -> None:
        rules = ReaderRacks(None if rack is None else RackId(rack), replaces=replaces)
        handler, session = FetchHandler(rules), Session(1)
        topics = [FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, fetch_offset=0)])]
        parts = write_request(ApiKey.FETCH, version, 7, "shop", FetchRequestData(topics=topics, rack_id=own))
        exchange = Exchange(ApiKey.FETCH, version, 7, Treatment.ENDPOINTS_LAST)
        handler.take(cast("Any", session), exchange, memoryview(b"".join(parts)))
        assert (session.racks, session.as_sent, handler.written) == (racks, 1 - len(racks), len(racks))
        assert session.client == client
        assert (exchange.on_partition is not None) is bool(racks)

    asyncio.run(scenario())


@pytest.mark.parametrize(("client_id", "rack"), [(None, "r2"), ("", "r2"), ("billing-1", "r3")])
def test_a_client_without_an_id_has_the_rack_of_no_pattern(client_id: str | None, rack: str) -> None:
    async def scenario() -> list[tuple[str | None, str]]:
        handler = FetchHandler(ReaderRacks(RackId("r2"), {"billing-.*": RackId("r3")}))
        session, written = Session(1), list[tuple[str | None, str]]()
        parts = write_request(ApiKey.FETCH, 12, 7, client_id, FetchRequestData())
        exchange = Exchange(ApiKey.FETCH, 12, 7, Treatment.ENDPOINTS_LAST)

        def forward(_: Exchange, parts: Sequence[Any]) -> None:
            request = memoryview(b"".join(map(bytes, parts)))
            header = read_header(request)
            written.append((header.client_id, read_body(request, header).rack_id))

        session.forward = forward  # type: ignore[method-assign, assignment]
        handler.take(cast("Any", session), exchange, memoryview(b"".join(parts)))
        return written

    assert asyncio.run(scenario()) == [(client_id, rack)]


def test_the_bytes_of_a_fetch_with_a_rack_count_and_only_a_named_replica_is_a_redirect() -> None:
    async def scenario() -> None:
        handler, session = FetchHandler(ReaderRacks(RackId("r2"))), Session(1)
        topics = [FetchTopic(topic="orders", partitions=[FetchPartition(partition=0, fetch_offset=0)])]
        request = b"".join(write_request(ApiKey.FETCH, 12, 7, "shop", FetchRequestData(topics=topics)))
        for _ in range(5):
            exchange = Exchange(ApiKey.FETCH, 12, 7, Treatment.ENDPOINTS_LAST)
            handler.take(cast("Any", session), exchange, memoryview(request))
            assert exchange.on_partition is not None
            exchange.on_partition("orders", 0, -1, 100)
        assert (session.racks, session.counted) == (["r2"] * 5, [("orders", 0, -1, 100)] * 5)
        assert handler.redirects.left_alone == 0

    asyncio.run(scenario())


VERSIONS_OF_FETCH = OFFERED[ApiKey.FETCH]
WITH_TAG = 15
"""From here on the replica is in a tag (KIP-903)."""

NAMED: dict[str, Any] = {"topic": "orders", "topic_id": UUID(int=7)}


def fetch_as(replica: int, version: int, *partitions: int, session_id: int = 0) -> bytes:
    fetch = FetchRequestData(
        replica_id=replica if version < WITH_TAG else -1,
        replica_state=FetchRequestReplicaState(replica_id=replica, replica_epoch=9) if version >= WITH_TAG else None,
        session_id=session_id,
        topics=[FetchTopic(**NAMED, partitions=[FetchPartition(partition=one) for one in partitions])]
        if partitions
        else [],
    )
    return b"".join(write_request(ApiKey.FETCH, version, 7, "shop", fetch))


def outcome_of(request: bytes, rules: ReaderRacks | None = None) -> Session:
    """A session with what became of this request."""

    async def scenario() -> Session:
        session, header = Session(1), read_header(request)
        exchange = Exchange(ApiKey.FETCH, header.api_version, 7, Treatment.ENDPOINTS_LAST)
        handler = FetchHandler(rules or ReaderRacks())
        handler.take(cast("Any", session), exchange, memoryview(request))
        assert handler.refused == len(session.responses)
        return session

    return asyncio.run(scenario())


def read_refusal(response: bytes, version: int) -> tuple[int, list[tuple[int, int]], int]:
    """The error of the response and of each partition, and the id of its fetch session."""
    found: FetchResponseData = read_response(ApiKey.FETCH, version, response)
    assert all((one.topic if version < 13 else one.topic_id) in NAMED.values() for one in found.responses)
    partitions = [one for topic in found.responses for one in topic.partitions]
    assert all(one.high_watermark == -1 and not one.records for one in partitions)
    return found.error_code, [(one.partition_index, one.error_code) for one in partitions], found.session_id


@pytest.mark.parametrize("rules", [ReaderRacks(), ReaderRacks(RackId("r2"))])
@pytest.mark.parametrize("version", VERSIONS_OF_FETCH)
def test_a_fetch_that_names_a_replica_is_refused_in_every_version(version: int, rules: ReaderRacks) -> None:
    """As by a broker whose authorizer denies CLUSTER_ACTION: TOPIC_AUTHORIZATION_FAILED for each partition."""
    for replica in (0, 3, 2**31 - 1, -3, -(2**31)):
        session = outcome_of(fetch_as(replica, version, 0, 4), rules)
        assert (session.as_sent, session.racks) == (0, [])
        assert [read_refusal(one, version) for one in session.responses] == [(0, [(0, 29), (4, 29)], 0)]
    for consumer in (-1, -2):
        session = outcome_of(fetch_as(consumer, version, 0, 4), rules)
        assert (session.as_sent + len(session.racks), session.responses) == (1, [])


@pytest.mark.parametrize("version", [7, 12, VERSIONS_OF_FETCH[-1]])
def test_a_replica_that_names_no_partition_of_a_fetch_session_is_refused(version: int) -> None:
    """A consumer may have opened the session, with the partitions."""
    session = outcome_of(fetch_as(3, version, session_id=5))
    assert [read_refusal(one, version) for one in session.responses] == [(29, [], 0)]
    assert outcome_of(fetch_as(-1, version, session_id=5)).as_sent == 1


CONSUMER, REPLICA_3 = (b"\x0d" + pack(">iq", replica, -1) + b"\0" for replica in (-1, 3))
"""The value of the tag with its size in front."""


def with_tags(*tags: bytes) -> bytes:
    """A fetch of the newest version that ends with these tagged fields."""
    fetch = FetchRequestData(topics=[FetchTopic(**NAMED, partitions=[FetchPartition(partition=0)])])
    request = b"".join(write_request(ApiKey.FETCH, VERSIONS_OF_FETCH[-1], 7, "shop", fetch))
    return request.removesuffix(b"\0") + bytes([len(tags)]) + b"".join(tags)


def test_a_tagged_replica_is_found_wherever_it_stands() -> None:
    assert outcome_of(with_tags()).as_sent == outcome_of(with_tags(b"\1" + CONSUMER)).as_sent == 1
    for tags in ([b"\1" + REPLICA_3], [b"\0\2\2a", b"\1" + REPLICA_3], [b"\1" + REPLICA_3, b"\x09\1x"]):
        assert len(outcome_of(with_tags(*tags)).responses) == 1


@pytest.mark.parametrize(
    "tags",
    [
        [b"\1" + CONSUMER, b"\1" + REPLICA_3],
        [b"\1" + REPLICA_3, b"\1" + CONSUMER],
        # Java drops the bits of a varint beyond 32: tag 1.
        [b"\x81\x80\x80\x80\x10" + REPLICA_3],
        # Java reads a tag that it has by its fields, and not by its size, in which the replica is hidden here.
        [b"\0" + bytes([2 + len(REPLICA_3) + 1]) + b"\2a" + b"\1" + REPLICA_3],
    ],
)
def test_a_tag_that_two_readers_could_read_apart_is_malformed(tags: list[bytes]) -> None:
    with pytest.raises(MalformedRequest):
        outcome_of(with_tags(*tags))


def test_a_client_that_names_a_replica_has_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        handler, session, request = FetchHandler(ReaderRacks()), Session(1), fetch_as(3, 12, 0)
        for _ in range(3):
            handler.take(cast("Any", session), Exchange(1, 12, 7, Treatment.ENDPOINTS_LAST), memoryview(request))
        assert handler.refused == 3

    asyncio.run(scenario())
    assert caplog.messages == ["refused a fetch as replica 3: client=192.0.2.1:5; brokers do not fetch here"]


@pytest.mark.parametrize(("config", "level"), [(READS_IN_RACK, CheckLevel.OK), ({}, CheckLevel.WARNING)])
def test_the_check_says_whether_the_brokers_will_follow_the_racks(config: dict[str, str], level: CheckLevel) -> None:
    with EmbeddedCluster(racks=2, brokers=2, config=config) as cluster:
        on = parse_config(document(cluster.bootstrap_servers, readers={"rack": "r1"}))
        found = {result.check: result for result in asyncio.run(check_cluster(on))}
        assert found["replica.selector.class"].level is level
        off = parse_config(document(cluster.bootstrap_servers))
        assert "replica.selector.class" not in {result.check for result in asyncio.run(check_cluster(off))}
