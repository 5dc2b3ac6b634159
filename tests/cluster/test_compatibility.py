"""What min.insync.racks leaves as it was, and how its errors travel (Compatibility, Deprecation, and Migration Plan)."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition

from rackspan.acks.replies import exception
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import NotEnoughRacks, NotEnoughReplicas
from tests.cluster import raw
from tests.conformance.wire import MESSAGES, _built, batch, send, send_raw

OWN_CODE, KAFKAS_CODE = 1001, 19
VERSIONS = range(3, 13)
"""Of Produce: those that go by topic names."""


@pytest.fixture(scope="module", params=["false", "true"])
def lacking(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedCluster, bool]]:
    """A rack is lost: `racks` asks for three, `replicas` for three replicas, `plain` for nothing. And whether codes are extended."""
    with EmbeddedCluster(3, 3, config={"extended.error.codes": request.param}) as cluster:
        cluster.create_topic("racks", replicas=[[1, 2, 3]], config={"min.insync.racks": "3"})
        cluster.create_topic("replicas", replicas=[[1, 2, 3]], config={"min.insync.replicas": "3"})
        cluster.create_topic("plain", replicas=[[1, 2, 3]])
        cluster.lose_rack("r3")
        yield cluster, request.param == "true"


def sent(*topics: str, acks: int = -1) -> dict[str, Any]:
    data = [{"name": name, "partition_data": [{"index": 0, "records": batch(b"x", times=[1])}]} for name in topics]
    return {"transactional_id": None, "acks": acks, "timeout_ms": 5_000, "topic_data": data}


def answered(cluster: EmbeddedCluster, version: int, *topics: str) -> dict[str, dict[str, Any]]:
    """By topic, as kafka-python reads it; it knows nothing of racks."""
    answer = send(cluster.address(1), "Produce", version, sent(*topics))
    return {one["name"]: one["partition_responses"][0] for one in answer["responses"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_code_stands_in_the_error_field_of_its_own_partition(
    lacking: tuple[EmbeddedCluster, bool], version: int
) -> None:
    cluster, extended = lacking
    found = answered(cluster, version, "plain", "racks", "replicas")
    codes = {topic: one["error_code"] for topic, one in found.items()}
    assert codes == {"plain": 0, "racks": OWN_CODE if extended else KAFKAS_CODE, "replicas": KAFKAS_CODE}
    assert [found[topic]["base_offset"] for topic in ("racks", "replicas")] == [-1, -1]


def test_a_client_may_tell_racks_from_replicas_and_need_not(lacking: tuple[EmbeddedCluster, bool]) -> None:
    cluster, extended = lacking
    found = answered(cluster, 9, "racks", "replicas")
    kinds = {topic: type(exception(one["error_code"], one["error_message"])) for topic, one in found.items()}
    assert kinds == {"racks": NotEnoughRacks, "replicas": NotEnoughReplicas}
    # By code alone only whoever asked for such codes.
    assert (found["racks"]["error_code"] != found["replicas"]["error_code"]) == extended


def test_operators_tell_the_two_failures_apart_by_metric_and_message(lacking: tuple[EmbeddedCluster, bool]) -> None:
    cluster, _ = lacking

    def failures() -> int:
        return cluster.metrics()[cluster.brokers[0]]["rackspan_rack_check_failures_total"]

    before = failures()
    assert "min.isr requirement of 3" in answered(cluster, 9, "replicas")["replicas"]["error_message"]
    assert failures() == before
    assert (
        answered(cluster, 9, "racks")["racks"]["error_message"]
        == "racks-0: in-sync racks r1,r2 = 2 < min.insync.racks 3"
    )
    assert failures() == before + 1


def test_produce_requests_are_kafkas_in_every_version() -> None:
    """Written by kafka-python from Kafka's own schemas; a topic that asks for racks takes the same bytes as one that does not."""
    with EmbeddedCluster(3, 3) as cluster:
        cluster.create_topic("racks", replicas=[[1, 2, 3]], config={"min.insync.racks": "3"})
        cluster.create_topic("plain", replicas=[[1, 2, 3]])
        for version in VERSIONS:
            codes = {topic: one["error_code"] for topic, one in answered(cluster, version, "racks", "plain").items()}
            assert codes == {"racks": 0, "plain": 0}, version


def encoded(api: str, version: int, body: dict[str, Any]) -> bytes:
    kind = MESSAGES[f"{api}Request"]
    request = _built(kind._struct, body, kind, version)
    request.with_header(1, "same")
    return bytes(request.encode(version=version, header=True))


def every_answer(config: dict[str, str], topic_config: dict[str, str]) -> dict[str, bytes | None]:
    """What a cluster answers in bytes to the same requests in the same order, one of its three racks lost halfway."""
    with EmbeddedCluster(3, 3, config=config, seed=3) as cluster:
        cluster.create_topic("t", replicas=[[1, 2, 3]], config=topic_config)
        found: dict[str, bytes | None] = {}
        for lost in (False, True):
            if lost:
                cluster.lose_rack("r3")
            for version in VERSIONS:
                for acks in (-1, 1):
                    request = encoded("Produce", version, sent("t", acks=acks))
                    found[f"Produce {version} {acks} {lost}"] = send_raw(cluster.address(1), request)
            for api, version, body in QUESTIONS:
                found[f"{api} {version} {lost}"] = send_raw(cluster.address(1), encoded(api, version, body))
        return found


QUESTIONS: list[tuple[str, int, dict[str, Any]]] = [
    ("Fetch", 12, {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 24, "isolation_level": 0,
                   "session_id": 0, "session_epoch": -1, "rack_id": "",
                   "topics": [{"topic": "t", "partitions": [{"partition": 0, "fetch_offset": 0, "current_leader_epoch": -1,
                                                             "partition_max_bytes": 1 << 20}]}]}),
    ("ListOffsets", 7, {"replica_id": -1, "isolation_level": 0,
                        "topics": [{"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]}),
    ("ApiVersions", 0, {}),
    ("DescribeGroups", 4, {"groups": ["g"]}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "topic_config"),
    [({"min.insync.racks": "1"}, {}), ({}, {"min.insync.racks": "1"}), ({"extended.error.codes": "true"}, {})],
)
def test_with_the_value_1_every_answer_is_byte_for_byte_what_it_is_without(
    config: dict[str, str], topic_config: dict[str, str]
) -> None:
    without = every_answer({}, {})
    assert None not in without.values()
    assert every_answer(config, topic_config) == without


# Clients that know nothing of it, on a topic that does not ask for it, in a cluster whose other topics do.


def by_librdkafka(servers: str) -> list[bytes]:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    producer.produce("plain", b"librdkafka")
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "librdkafka", "auto.offset.reset": "earliest"})
    consumer.subscribe(["plain"])
    message = consumer.poll(30)
    consumer.close()
    return [message.value() or b""] if message is not None else []


def by_kafka_python(servers: str) -> list[bytes]:
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    producer.send("plain", b"kafka-python").get(30)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=servers)
    partition = KafkaTopicPartition("plain", 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found = consumer.poll(30_000)
    consumer.close()
    return [record.value for records in found.values() for record in records][:1]


def by_aiokafka(servers: str) -> list[bytes]:
    async def both_ways() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
            await producer.send_and_wait("plain", b"aiokafka")
        consumer = AIOKafkaConsumer("plain", bootstrap_servers=servers, auto_offset_reset="earliest", group_id="aio")
        async with consumer:
            record = await asyncio.wait_for(consumer.getone(), 30)
        return [record.value]

    return asyncio.run(both_ways())


@pytest.mark.parametrize("client", [by_librdkafka, by_kafka_python, by_aiokafka])
def test_clients_go_on_as_before_where_a_topic_asks_for_nothing(client: Callable[[str], list[bytes]]) -> None:
    """With a rack lost too, which costs only the topic that asks for it."""
    with EmbeddedCluster(3, 3) as cluster:
        cluster.create_topic("plain", 1, 3)
        cluster.create_topic("racks", 1, 3, config={"min.insync.racks": "3"})
        cluster.lose_rack("r3")
        assert client(",".join(cluster.address(one) for one in (1, 2))) == [
            client.__name__[3:].replace("_", "-").encode()
        ]
        leader = cluster.leader("racks", 0)
        assert leader is not None
        assert raw.produced(cluster.address(leader), "racks").error_code == KAFKAS_CODE


def test_an_unknown_code_would_not_be_taken_for_a_retriable_one() -> None:
    """Why the new code is not the default: kafka-python, by its own table, would not send the batch again."""
    from kafka.errors import NotEnoughReplicasError, for_code

    assert not getattr(for_code(OWN_CODE), "retriable", False)
    assert for_code(KAFKAS_CODE) is NotEnoughReplicasError
    assert NotEnoughReplicasError.retriable
