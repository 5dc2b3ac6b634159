"""min.insync.racks changes nothing for other topics, and its errors are sent as Kafka's (the proposal's section on compatibility)."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaTopicPartition

from rackspan.acks.produce_errors import produce_error
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import NotEnoughRacks, NotEnoughReplicas
from tests.cluster import raw
from tests.conformance.wire import MESSAGES, _built, batch, send, send_raw
from tests.waiting import WITHIN_SECONDS

OWN_CODE, KAFKAS_CODE = 1001, 19
VERSIONS = range(3, 13)
"""Versions of Produce with topic names."""


@pytest.fixture(scope="module", params=["false", "true"])
def cluster_without_a_rack(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedCluster, bool]]:
    """A cluster that has lost a rack, and whether codes are extended. `racks` requires three racks, `replicas` three replicas, `plain` neither."""
    with EmbeddedCluster(3, 3, config={"extended.error.codes": request.param}) as cluster:
        cluster.create_topic("racks", replicas=[[1, 2, 3]], config={"min.insync.racks": "3"})
        cluster.create_topic("replicas", replicas=[[1, 2, 3]], config={"min.insync.replicas": "3"})
        cluster.create_topic("plain", replicas=[[1, 2, 3]])
        cluster.lose_rack("r3")
        yield cluster, request.param == "true"


def sent(*topics: str, acks: int = -1) -> dict[str, Any]:
    data = [{"name": name, "partition_data": [{"index": 0, "records": batch(b"x", times=[1])}]} for name in topics]
    return {"transactional_id": None, "acks": acks, "timeout_ms": 5_000, "topic_data": data}


def partition_responses(cluster: EmbeddedCluster, version: int, *topics: str) -> dict[str, dict[str, Any]]:
    """The response by topic, read by kafka-python, which is not aware of racks."""
    response = send(cluster.address(1), "Produce", version, sent(*topics))
    return {topic["name"]: topic["partition_responses"][0] for topic in response["responses"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_error_code_is_in_the_field_of_its_own_partition(
    cluster_without_a_rack: tuple[EmbeddedCluster, bool], version: int
) -> None:
    cluster, extended = cluster_without_a_rack
    responses = partition_responses(cluster, version, "plain", "racks", "replicas")
    codes = {topic: response["error_code"] for topic, response in responses.items()}
    assert codes == {"plain": 0, "racks": OWN_CODE if extended else KAFKAS_CODE, "replicas": KAFKAS_CODE}
    assert [responses[topic]["base_offset"] for topic in ("racks", "replicas")] == [-1, -1]


def test_a_client_can_distinguish_racks_from_replicas_and_need_not(
    cluster_without_a_rack: tuple[EmbeddedCluster, bool],
) -> None:
    cluster, extended = cluster_without_a_rack
    responses = partition_responses(cluster, 9, "racks", "replicas")
    kinds = {topic: type(produce_error(each["error_code"], each["error_message"])) for topic, each in responses.items()}
    assert kinds == {"racks": NotEnoughRacks, "replicas": NotEnoughReplicas}
    # By the code alone only with extended.error.codes.
    assert (responses["racks"]["error_code"] != responses["replicas"]["error_code"]) == extended


def test_operators_distinguish_the_two_failures_by_metric_and_message(
    cluster_without_a_rack: tuple[EmbeddedCluster, bool],
) -> None:
    cluster, _ = cluster_without_a_rack

    def failures() -> int:
        return cluster.metrics()[cluster.brokers[0]]["rackspan_rack_check_failures_total"]

    before = failures()
    assert "min.isr requirement of 3" in partition_responses(cluster, 9, "replicas")["replicas"]["error_message"]
    assert failures() == before
    assert (
        partition_responses(cluster, 9, "racks")["racks"]["error_message"]
        == "racks-0: in-sync racks r1,r2 = 2 < min.insync.racks 3"
    )
    assert failures() == before + 1


def test_produce_requests_are_kafkas_in_every_version() -> None:
    """kafka-python writes them from Kafka's own schemas. A topic that requires racks gets the same bytes as one that does not."""
    with EmbeddedCluster(3, 3) as cluster:
        cluster.create_topic("racks", replicas=[[1, 2, 3]], config={"min.insync.racks": "3"})
        cluster.create_topic("plain", replicas=[[1, 2, 3]])
        for version in VERSIONS:
            codes = {
                topic: each["error_code"]
                for topic, each in partition_responses(cluster, version, "racks", "plain").items()
            }
            assert codes == {"racks": 0, "plain": 0}, version


def encoded(api: str, version: int, body: dict[str, Any]) -> bytes:
    kind = MESSAGES[f"{api}Request"]
    request = _built(kind._struct, body, kind, version)
    request.with_header(1, "same")
    return bytes(request.encode(version=version, header=True))


def every_response(config: dict[str, str], topic_config: dict[str, str]) -> dict[str, bytes | None]:
    """The responses, as bytes, to the same requests in the same order. One of three racks is lost halfway."""
    with EmbeddedCluster(3, 3, config=config, seed=3) as cluster:
        cluster.create_topic("t", replicas=[[1, 2, 3]], config=topic_config)
        responses: dict[str, bytes | None] = {}
        for lost in (False, True):
            if lost:
                cluster.lose_rack("r3")
            for version in VERSIONS:
                for acks in (-1, 1):
                    request = encoded("Produce", version, sent("t", acks=acks))
                    responses[f"Produce {version} {acks} {lost}"] = send_raw(cluster.address(1), request)
            for api, version, body in OTHER_REQUESTS:
                responses[f"{api} {version} {lost}"] = send_raw(cluster.address(1), encoded(api, version, body))
        return responses


OTHER_REQUESTS: list[tuple[str, int, dict[str, Any]]] = [
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
def test_with_the_value_1_every_response_has_the_bytes_it_has_without_the_config(
    config: dict[str, str], topic_config: dict[str, str]
) -> None:
    without = every_response({}, {})
    assert None not in without.values()
    assert every_response(config, topic_config) == without


# Clients of a topic without min.insync.racks, in a cluster whose other topics have it.


def by_librdkafka(servers: str) -> list[bytes]:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    producer.produce("plain", b"librdkafka")
    assert producer.flush(WITHIN_SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "librdkafka", "auto.offset.reset": "earliest"})
    consumer.subscribe(["plain"])
    message = consumer.poll(WITHIN_SECONDS)
    consumer.close()
    return [message.value() or b""] if message is not None else []


def by_kafka_python(servers: str) -> list[bytes]:
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    producer.send("plain", b"kafka-python").get(WITHIN_SECONDS)
    producer.close()
    consumer = KafkaConsumer(bootstrap_servers=servers)
    partition = KafkaTopicPartition("plain", 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    polled = consumer.poll(30_000)
    consumer.close()
    return [record.value for records in polled.values() for record in records][:1]


def by_aiokafka(servers: str) -> list[bytes]:
    async def both_ways() -> list[bytes]:
        async with AIOKafkaProducer(bootstrap_servers=servers, acks="all") as producer:
            await producer.send_and_wait("plain", b"aiokafka")
        consumer = AIOKafkaConsumer("plain", bootstrap_servers=servers, auto_offset_reset="earliest", group_id="aio")
        async with consumer:
            record = await asyncio.wait_for(consumer.getone(), WITHIN_SECONDS)
        return [record.value]

    return asyncio.run(both_ways())


@pytest.mark.parametrize("client", [by_librdkafka, by_kafka_python, by_aiokafka])
def test_clients_of_a_topic_without_the_config_are_not_affected(client: Callable[[str], list[bytes]]) -> None:
    """Also after the loss of a rack, which affects only the topic that requires it."""
    with EmbeddedCluster(3, 3) as cluster:
        cluster.create_topic("plain", 1, 3)
        cluster.create_topic("racks", 1, 3, config={"min.insync.racks": "3"})
        cluster.lose_rack("r3")
        assert client(",".join(cluster.address(broker) for broker in (1, 2))) == [
            client.__name__[3:].replace("_", "-").encode()
        ]
        leader = cluster.leader("racks", 0)
        assert leader is not None
        assert raw.produced(cluster.address(leader), "racks").error_code == KAFKAS_CODE


def test_an_unknown_code_is_not_retriable() -> None:
    """This is why the new code is not the default: kafka-python would not send the batch again."""
    from kafka.errors import NotEnoughReplicasError, for_code

    assert not getattr(for_code(OWN_CODE), "retriable", False)
    assert for_code(KAFKAS_CODE) is NotEnoughReplicasError
    assert NotEnoughReplicasError.retriable
