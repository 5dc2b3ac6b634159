"""librdkafka (confluent-kafka) against the embedded cluster."""

import json
import logging
import time
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic, TopicPartition

from rackspan.cluster import EmbeddedCluster
from tests.waiting import WITHIN_SECONDS


def name(prefix: str = "t") -> str:
    return f"{prefix}-{uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def admin(cluster: EmbeddedCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


def created(admin: AdminClient, partitions: int = 1, factor: int = 3, **config: str) -> str:
    topic = name()
    new = NewTopic(topic, partitions, factor, config={key.replace("_", "."): value for key, value in config.items()})
    admin.create_topics([new])[topic].result(WITHIN_SECONDS)
    return topic


def produced(cluster: EmbeddedCluster, topic: str, values: list[bytes], **config: object) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 5, **config})
    errors: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        errors.append(error)

    for value in values:
        producer.produce(topic, value, key=value[:2], on_delivery=delivered)
    assert producer.flush(WITHIN_SECONDS) == 0
    assert errors == [None] * len(values)


def consumed(cluster: EmbeddedCluster, topic: str, count: int, partitions: int = 1, **config: object) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": name("none"),
            "enable.auto.commit": False,
            **config,
        }
    )
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in range(partitions)])
    found: list[bytes] = []
    while len(found) < count:
        message = consumer.poll(WITHIN_SECONDS)
        assert message is not None, f"{len(found)} of {count} records came"
        assert message.error() is None
        found.append(message.value() or b"")
    consumer.close()
    return found


@pytest.mark.parametrize("acks", ["all", 1, 0])
@pytest.mark.parametrize("compression", ["none", "gzip", "lz4", "zstd", "snappy"])
def test_what_is_produced_is_consumed(
    cluster: EmbeddedCluster, admin: AdminClient, acks: object, compression: str
) -> None:
    topic = created(admin, partitions=3)
    values = [b"%d-" % number + b"x" * 500 for number in range(200)]
    config = {"acks": acks, "compression.type": compression, "enable.idempotence": acks == "all"}
    produced(cluster, topic, values, **config)
    assert sorted(consumed(cluster, topic, len(values), partitions=3)) == sorted(values)


def test_a_missing_topic_is_created_by_a_producer(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    topic = name("auto")
    produced(cluster, topic, [b"first"])
    assert consumed(cluster, topic, 1) == [b"first"]
    assert {cluster.rack(broker) for broker in cluster.replicas(topic, 0)} == {"r1", "r2", "r3"}


def test_a_record_larger_than_the_fetch_limit_is_still_returned(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    topic = created(admin)
    produced(cluster, topic, [b"x" * 900_000, b"small"])
    sizes = list(
        map(
            len,
            consumed(
                cluster,
                topic,
                2,
                **{
                    "fetch.message.max.bytes": 1000,
                    "fetch.max.bytes": 1024,
                    "message.max.bytes": 1000,
                    "receive.message.max.bytes": 2_000_000,
                },
            ),
        )
    )
    assert sizes == [900_000, 5]


def test_a_record_larger_than_max_message_bytes_is_refused(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    topic = created(admin, max_message_bytes="1000")
    failed: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce(topic, b"x" * 5000, on_delivery=lambda error, _: failed.append(error))
    producer.flush(WITHIN_SECONDS)
    assert [error.code() for error in failed if error] == [KafkaError.MSG_SIZE_TOO_LARGE]


def test_offsets_are_found_by_timestamp(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    topic = created(admin)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for timestamp in (1_000, 2_000, 3_000):
        producer.produce(topic, str(timestamp), timestamp=timestamp)
    producer.flush(WITHIN_SECONDS)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": name(), "enable.auto.commit": False}
    )
    requested = [TopicPartition(topic, 0, 1_500)]
    assert [partition.offset for partition in consumer.offsets_for_times(requested, 30)] == [1]
    assert consumer.get_watermark_offsets(TopicPartition(topic, 0), 30) == (0, 3)
    past_the_end = consumer.offsets_for_times([TopicPartition(topic, 0, 9_000)], 30)
    assert past_the_end[0].offset == -1
    consumer.close()
    place = TopicPartition(topic, 0)
    latest = admin.list_offsets(
        {
            place: OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]
        }
    )[place].result(WITHIN_SECONDS)
    assert (latest.offset, latest.timestamp) == (2, 3_000)


def test_metadata_has_leaders_and_broker_addresses(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    topic = created(admin, partitions=6)
    metadata = admin.list_topics(topic, timeout=WITHIN_SECONDS)
    assert set(metadata.brokers) == set(cluster.brokers)
    for index, partition in metadata.topics[topic].partitions.items():
        assert partition.leader == cluster.leader(topic, index)
        assert set(partition.isrs) == cluster.isr(topic, index)
    assert admin.describe_cluster().result(WITHIN_SECONDS).cluster_id == cluster.cluster_id
    assert {node.rack for node in admin.describe_cluster().result(WITHIN_SECONDS).nodes} == {"r1", "r2", "r3"}


def test_topics_are_extended_configured_and_deleted(cluster: EmbeddedCluster, admin: AdminClient) -> None:
    topic = created(admin, min_insync_replicas="2")
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(WITHIN_SECONDS)
    assert len(admin.list_topics(topic, timeout=WITHIN_SECONDS).topics[topic].partitions) == 4
    resource = ConfigResource(ResourceType.TOPIC, topic)
    rise = ConfigEntry("min.insync.racks", "2", incremental_operation=AlterConfigOpType.SET)
    altered = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[rise])
    admin.incremental_alter_configs([altered])[altered].result(WITHIN_SECONDS)
    configs = admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)
    assert (configs["min.insync.racks"].value, configs["min.insync.replicas"].value) == ("2", "2")
    admin.delete_topics([topic])[topic].result(WITHIN_SECONDS)
    # A Metadata request for its name would create it again.
    assert topic not in admin.list_topics(timeout=WITHIN_SECONDS).topics


@pytest.mark.parametrize(
    ("new", "code"),
    [
        (NewTopic("bad name!", 1, 1), KafkaError.TOPIC_EXCEPTION),
        (NewTopic("too-many", 1, 9), KafkaError.INVALID_REPLICATION_FACTOR),
        (NewTopic("none", 0, 1), KafkaError.INVALID_PARTITIONS),
        (NewTopic("odd", 1, 1, config={"no.such.key": "1"}), KafkaError.INVALID_CONFIG),
    ],
)
def test_what_kafka_refuses_is_refused(cluster: EmbeddedCluster, admin: AdminClient, new: NewTopic, code: int) -> None:
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([new])[new.topic].result(WITHIN_SECONDS)
    assert refused.value.args[0].code() == code


@pytest.mark.parametrize("recreated", [False, True])
def test_a_deleted_topic_is_fetched_without_protocol_errors_and_with_pauses(
    cluster: EmbeddedCluster, admin: AdminClient, recreated: bool
) -> None:
    topic, lines, requests = created(admin), _LogLines(), [0]

    def count_fetches(statistics: str) -> None:
        brokers: list[dict[str, Any]] = list(json.loads(statistics)["brokers"].values())
        requests.append(sum(broker["req"].get("Fetch", 0) for broker in brokers))

    produced(cluster, topic, [b"old"])
    config = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": name(), "statistics.interval.ms": 100}
    consumer = Consumer({**config, "stats_cb": count_fetches}, logger=lines.logger)
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(WITHIN_SECONDS)
    assert message is not None
    assert message.value() == b"old"
    admin.delete_topics([topic])[topic].result(WITHIN_SECONDS)
    if recreated:
        admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(WITHIN_SECONDS)
    before, end = requests[-1], time.monotonic() + 2  # short: so long is counted
    while time.monotonic() < end:
        consumer.poll(0.1)
    consumer.close()
    assert [line for line in lines if "PROTOERR" in line] == []
    assert requests[-1] - before < 50


class _LogLines(list[str]):
    """What librdkafka logs, through a logger of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.logger = logging.Logger("librdkafka", logging.DEBUG)
        handler = logging.Handler()
        handler.emit = lambda record: self.append(record.getMessage())  # type: ignore[method-assign]
        self.logger.addHandler(handler)
