"""Rows written to real Kafka as a Spark task writes them: racks that are lost, and a cluster with TLS and logins."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, RetriableProduceError
from rackspan.kafka_process import KafkaCluster
from rackspan.kafka_source.options import parse
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.report import Batch
from rackspan.kafka_source.reading.task import TaskOptions, read_range
from rackspan.kafka_source.writing.options import SinkOptions, parse_sink
from rackspan.kafka_source.writing.rows import OutgoingRow
from rackspan.kafka_source.writing.sender import WriteReport, opened_sender
from rackspan.model.ids import TopicPartition
from tests.kafka_fixtures import USERS, create_topic
from tests.kafka_source.filled_topics import consumed
from tests.secured_fixtures import Secured, admin_client, scram_login
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

ALONE = Batch("b", 1)


def rows(topic: str, count: int) -> list[OutgoingRow]:
    return [OutgoingRow(topic, None, b"%d" % number, b"v%d" % number, None) for number in range(count)]


def write(options: SinkOptions, sent: list[OutgoingRow]) -> WriteReport:
    with opened_sender(options) as sender:
        sender.send(sent)
        return sender.finish()


def in_sync(kafka: KafkaCluster, topic: str) -> set[int]:
    metadata = AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(topic, timeout=WITHIN_SECONDS)
    return set(metadata.topics[topic].partitions[0].isrs)


@pytest.fixture
def in_two_racks(kafka: KafkaCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic on brokers 4 (r1) and 5 (r2), the second of which is started again after the test."""
    topic = f"sink-{request.node.name.split('[')[0][-30:]}"
    create_topic(kafka, topic, assignment=[[4, 5]])
    yield topic
    if 5 not in kafka.pids:
        kafka.restart(5)
        kafka.wait_until_ready()


def guarded(kafka: KafkaCluster, policy: str) -> SinkOptions:
    return parse_sink(
        {"kafka.bootstrap.servers": kafka.bootstrap_servers, "min.insync.racks": "2", "underMinRacks": policy}
    )


def test_a_write_fails_while_a_rack_is_lost_and_waits_for_it_where_it_may(
    kafka: KafkaCluster, in_two_racks: str
) -> None:
    """At first the lost broker is in sync still: the acknowledgement comes when it no longer is, and is not believed."""
    assert write(guarded(kafka, "fail"), rows(in_two_racks, 100)).records == {in_two_racks: 100}
    kafka.kill(5)
    with pytest.raises(RetriableProduceError, match=r"in-sync racks r1 = 1 < min\.insync\.racks 2"):
        write(guarded(kafka, "fail"), rows(in_two_racks, 100))
    eventually(lambda: in_sync(kafka, in_two_racks) == {4}, "broker 5 is out of the ISR")
    before = len(consumed(kafka.bootstrap_servers, in_two_racks, 1))
    with pytest.raises(RetriableProduceError):
        write(guarded(kafka, "fail"), rows(in_two_racks, 100))
    assert len(consumed(kafka.bootstrap_servers, in_two_racks, 1)) == before
    back = threading.Timer(3, kafka.restart, [5])
    back.start()
    report = write(guarded(kafka, "wait"), rows(in_two_racks, 100))
    assert in_sync(kafka, in_two_racks) == {4, 5}
    back.join()
    assert report.records == {in_two_racks: 100}
    assert report.waited_seconds > 2
    assert len(consumed(kafka.bootstrap_servers, in_two_racks, 1)) == before + 100 + report.sent_again
    kafka.wait_until_ready()


def test_keys_go_to_the_partitions_of_the_java_producer(kafka: KafkaCluster) -> None:
    """kafka-python's murmur2 is the reference, and Spark's connector in test_kafka_source_rows.py."""
    from kafka.partitioner.default import murmur2

    create_topic(kafka, "sink-keys", partitions=5, replication_factor=2)
    write(parse_sink({"kafka.bootstrap.servers": kafka.bootstrap_servers}), rows("sink-keys", 300))
    found = {row.key: row.partition for row in consumed(kafka.bootstrap_servers, "sink-keys", 5)}
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 5 for key in found}
    assert len(found) == 300


def properties(secured: Secured, user: str, folder: Path, password: str | None = None) -> str:
    """A Java client's file, as commandConfig takes it: TLS, and a login by SCRAM."""
    given = {**secured.trusting(), **scram_login(user, "SCRAM-SHA-512", password), "security.protocol": "SASL_SSL"}
    path = folder / "client.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    return str(path)


@pytest.fixture(scope="module")
def secret_topic(secured: Secured) -> str:
    from confluent_kafka.cimpl import NewTopic

    admin = admin_client(secured.cluster)
    admin.create_topics([NewTopic("secrets", 1, 2)])["secrets"].result(WITHIN_SECONDS)
    return "secrets"


def connected(secured: Secured, command_config: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": secured.at("LOGINTLS"), "commandConfig": command_config}


def test_records_are_written_and_read_over_tls_with_a_login(
    secured: Secured, secret_topic: str, tmp_path: Path
) -> None:
    given = connected(secured, properties(secured, "admin", tmp_path))
    assert write(parse_sink({**given, "min.insync.racks": "2"}), rows(secret_topic, 50)).records == {secret_topic: 50}
    for rack in ("r1", "r2"):
        source = parse({**given, "subscribe": secret_topic, "kafka.client.rack": rack}, streaming=False)
        batches = read_range(
            OffsetRange(TopicPartition(secret_topic, 0), 0, 50), TaskOptions(source, ("value",)), ALONE
        )
        assert [value for batch in batches for value in batch["value"].to_pylist()] == [b"v%d" % n for n in range(50)]


def test_a_wrong_password_is_one_line_at_once(secured: Secured, secret_topic: str, tmp_path: Path) -> None:
    given = connected(secured, properties(secured, "admin", tmp_path, password="wrong"))  # noqa: S106 — of a test
    with pytest.raises(ClusterUnauthorized) as raised:
        write(parse_sink(given), rows(secret_topic, 1))
    assert "\n" not in str(raised.value)
    task = TaskOptions(parse({**given, "subscribe": secret_topic}, streaming=False), ("value",))
    with pytest.raises(ClusterUnauthorized):
        list(read_range(OffsetRange(TopicPartition(secret_topic, 0), 0, 1), task, ALONE))


def test_a_user_without_rights_is_refused_at_once(secured: Secured, secret_topic: str, tmp_path: Path) -> None:
    assert "nobody" in USERS
    given = connected(secured, properties(secured, "nobody", tmp_path))
    with pytest.raises(ClusterRequestFailed, match=r"topic secrets: TOPIC_AUTHORIZATION_FAILED \(29\)"):
        write(parse_sink(given), rows(secret_topic, 1))
    task = TaskOptions(parse({**given, "subscribe": secret_topic}, streaming=False), ("value",))
    with pytest.raises(ClusterRequestFailed, match=r"topic secrets: TOPIC_AUTHORIZATION_FAILED \(29\)"):
        list(read_range(OffsetRange(TopicPartition(secret_topic, 0), 0, 1), task, ALONE))
