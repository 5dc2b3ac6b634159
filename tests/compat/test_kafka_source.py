"""Ranges read from real Kafka as a Spark task reads them, against librdkafka's consumer.

The brokers have no replica.selector.class: a follower serves a consumer that fetches from it directly.
"""

import json
import time
import uuid
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rackspan.apply import LiveCluster
from rackspan.client.cluster import ConnectionSettings
from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_process import KafkaCluster
from rackspan.kafka_source.options import parse
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.report import Batch
from rackspan.kafka_source.reading.task import TaskOptions, read_range
from rackspan.model import ids
from tests.kafka_fixtures import create_topic
from tests.kafka_source.filled_topics import CODECS, consumed, created, produced, transaction
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

RACKS = {1: "r1", 2: "r2", 3: "r3", 4: "r1", 5: "r2", 6: "r3"}


def options(cluster: KafkaCluster, topic: str, **more: str) -> TaskOptions:
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic}
    named = {name.replace("__", "."): value for name, value in more.items()}
    return TaskOptions(parse({**given, **named}, streaming=False), ("offset", "value"))


def read(task: TaskOptions, partition: int, start: int, end: int) -> Iterator[tuple[int, bytes | None]]:
    for batch in read_range(
        OffsetRange(ids.TopicPartition(task.source.topics, partition), start, end), task, Batch("b", 1)
    ):
        yield from zip(batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True)


def expected(
    cluster: KafkaCluster, topic: str, partition: int, *, committed: bool = False
) -> list[tuple[int, bytes | None]]:
    found = consumed(cluster.bootstrap_servers, topic, committed=committed)
    return [(row.offset, row.value) for row in found if row.partition == partition]


@pytest.fixture(scope="module")
def filled(kafka: KafkaCluster) -> str:
    topic = created(kafka)
    for index, codec in enumerate(CODECS):
        produced(kafka.bootstrap_servers, topic, 400, codec, first=400 * index)
    return topic


@pytest.mark.parametrize("rack", ["r1", "r2", "r3"])
def test_every_byte_comes_from_the_executors_rack(kafka: KafkaCluster, filled: str, rack: str, tmp_path: Path) -> None:
    task = options(kafka, filled, kafka__client__rack=rack, metricsPath=str(tmp_path))
    for partition in (0, 1):
        wanted = expected(kafka, filled, partition)
        assert len(wanted) == 1000
        assert list(read(task, partition, 0, 1000)) == wanted
    rows = metrics(tmp_path)
    assert {RACKS[row["broker"]] for row in rows} == {rack}
    assert {row["choice"] for row in rows} == {"same-rack"}
    assert sum(row["bytes"] for row in rows) > 0


def test_ranges_end_at_and_inside_gaps_of_transactions(kafka: KafkaCluster) -> None:
    topic = created(kafka)
    for number in range(4):
        transaction(kafka.bootstrap_servers, topic, [b"%d" % value for value in range(8)], commit=number % 2 == 1)
    for level in ("read_committed", "read_uncommitted"):
        task = options(kafka, topic, kafka__isolation__level=level, kafka__client__rack="r2")
        wanted = expected(kafka, topic, 0, committed=level == "read_committed")
        assert len(wanted) == (8 if level == "read_committed" else 16)
        for start in (0, 3, 4, 7):
            for end in (4, 5, 9, 10, 19, 20):
                assert list(read(task, 0, start, end)) == [row for row in wanted if start <= row[0] < end], (start, end)


def compacted(kafka: KafkaCluster) -> tuple[str, list[tuple[int, bytes | None]]]:
    """A topic that the log cleaner has been through, and the records of its partition 0 as they were read then."""
    config = {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.001", "segment.ms": "100", "max.compaction.lag.ms": "100",
    }  # fmt: skip
    topic = created(kafka, config=config)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    sent = 0
    deadline = time.monotonic() + WITHIN_SECONDS
    while True:
        for _ in range(50):
            producer.produce(topic, key=b"k%d" % (sent % 7), value=b"%d" % sent, partition=0)
            sent += 1
        producer.flush(WITHIN_SECONDS)
        found = expected(kafka, topic, 0)
        gaps = [after - before for (before, _), (after, _) in pairwise(found)]
        if gaps and (max(gaps) > 10 or found[0][0] > 10):
            return topic, found
        assert time.monotonic() < deadline, "the log cleaner has not run"
        time.sleep(1)


def test_a_compacted_topic_has_gaps_everywhere(kafka: KafkaCluster) -> None:
    topic, wanted = compacted(kafka)
    task = options(kafka, topic, kafka__client__rack="r3")
    last = wanted[-1][0] + 1
    for start, end in [(0, last), (1, last - 1), (0, last // 2), (last // 2, last), (3, 4), (last // 3, last // 2)]:
        found = list(read(task, 0, start, end))
        # The cleaner may have gone on since: what is left by now lies between the two readings.
        now = [row for row in expected(kafka, topic, 0) if start <= row[0] < end]
        assert set(now) <= set(found) <= {row for row in wanted if start <= row[0] < end}


def in_many_batches(kafka: KafkaCluster, topic: str, partitions: int) -> None:
    """6,000 records: a broker sends a whole batch, however little is requested, so that one batch would be one response."""
    for first in range(0, 6000, 500):
        produced(kafka.bootstrap_servers, topic, 500, partitions=partitions, first=first)


@pytest.mark.rest
def test_a_broker_that_is_killed_while_it_is_read_costs_no_record(kafka: KafkaCluster) -> None:
    topic = created(kafka)
    in_many_batches(kafka, topic, partitions=2)
    wanted = expected(kafka, topic, 0)
    task = options(kafka, topic, kafka__client__rack="r2", kafka__max__partition__fetch__bytes="20000")
    rows = read(task, 0, 0, 3000)
    found = [next(rows) for _ in range(100)]
    try:
        for broker in (2, 5):
            kafka.kill(broker)
        found += rows
    finally:
        for broker in (2, 5):
            kafka.restart(broker)
        kafka.wait_until_ready()
    assert found == wanted


def test_records_that_were_deleted_fail_the_read_or_are_skipped(kafka: KafkaCluster) -> None:
    topic = created(kafka)
    produced(kafka.bootstrap_servers, topic, 100)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, 30)]).values():
        future.result()
    with pytest.raises(ClusterRequestFailed, match="-0: offsets 10 to 30 are gone; the log begins at 30"):
        list(read(options(kafka, topic, kafka__client__rack="r2"), 0, 10, 50))
    tolerant = options(kafka, topic, kafka__client__rack="r2", failOnDataLoss="false")
    assert [offset for offset, _ in read(tolerant, 0, 10, 50)] == list(range(30, 50))


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in folder.rglob("*.json") for line in file.read_text().splitlines()]


def leader(kafka: KafkaCluster, topic: str) -> int:
    """Of partition 0."""
    found: int = (
        AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        .list_topics(topic)
        .topics[topic]
        .partitions[0]
        .leader
    )
    return found


def test_a_rack_that_no_broker_has_is_reported_and_read_from_the_leader(
    kafka: KafkaCluster, filled: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Brokers send a consumer of an unknown rack to the leader, without an error."""
    task = options(kafka, filled, kafka__client__rack="r9", metricsPath=str(tmp_path))
    assert list(read(task, 0, 0, 1000)) == expected(kafka, filled, 0)
    assert {(row["choice"], row["broker"]) for row in metrics(tmp_path)} == {
        ("rack-of-no-broker", leader(kafka, filled))
    }
    assert "rack-of-no-broker" in capsys.readouterr().err


def test_a_follower_gives_what_the_leader_has_just_acknowledged(kafka: KafkaCluster, tmp_path: Path) -> None:
    """Its high watermark is a fetch behind the leader's: it has no record there yet, and is fetched from again."""
    topic = created(kafka, 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0})
    rack = next(rack for rack in ("r1", "r2", "r3") if rack != RACKS[leader(kafka, topic)])
    task = options(kafka, topic, kafka__client__rack=rack, kafka__fetch__max__wait__ms="50", metricsPath=str(tmp_path))
    # Each read takes as long as the follower's next fetch, half a second.
    for number in range(10):
        producer.produce(topic, b"%d" % number, partition=0)
        assert producer.flush(WITHIN_SECONDS) == 0
        assert list(read(task, 0, number, number + 1)) == [(number, b"%d" % number)]
    assert {row["choice"] for row in metrics(tmp_path)} == {"same-rack"}


def test_a_partition_whose_replicas_and_leader_move_while_it_is_read_costs_no_record(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    topic = f"t-moved-{uuid.uuid4().hex[:8]}"
    create_topic(kafka, topic, assignment=[[1, 2, 3]], config={"retention.ms": "-1"})
    in_many_batches(kafka, topic, partitions=1)
    wanted = [(row.offset, row.value) for row in consumed(kafka.bootstrap_servers, topic, 1)]
    task = options(
        kafka, topic, kafka__client__rack="r2", kafka__max__partition__fetch__bytes="20000", metricsPath=str(tmp_path)
    )
    rows = read(task, 0, 0, 6000)
    found = [next(rows) for _ in range(100)]
    move(kafka, topic, (6, 4, 5))
    found += rows
    assert found == wanted
    assert {row["broker"] for row in metrics(tmp_path)} == {2, 5}
    assert {row["choice"].split(",")[-1] for row in metrics(tmp_path)} == {"same-rack"}


def move(kafka: KafkaCluster, topic: str, replicas: tuple[int, ...]) -> None:
    """Reassign partition 0, and wait until only these replicas hold it and the first of them leads."""
    with LiveCluster(ConnectionSettings(kafka.bootstrap_servers, timeout_seconds=60)) as cluster:
        cluster.start_moves({ids.TopicPartition(topic, 0): replicas})
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def moved() -> bool:
        row = admin.list_topics(topic).topics[topic].partitions[0]
        return sorted(row.replicas) == sorted(row.isrs) == sorted(replicas) and row.leader == replicas[0]

    eventually(moved, "the replicas have moved")


def test_records_that_are_deleted_while_they_are_read_fail_the_read_or_are_skipped(kafka: KafkaCluster) -> None:
    """OffsetOutOfRange in the middle of a range, at a follower."""
    for strict in (True, False):
        topic = created(kafka)
        in_many_batches(kafka, topic, partitions=2)
        task = options(
            kafka, topic, kafka__client__rack="r2", kafka__max__partition__fetch__bytes="5000",
            failOnDataLoss=str(strict).lower(),
        )  # fmt: skip
        rows = read(task, 0, 0, 3000)
        found = [next(rows)[0] for _ in range(10)]
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        for future in admin.delete_records([TopicPartition(topic, 0, 2500)]).values():
            future.result()
        if strict:
            with pytest.raises(ClusterRequestFailed, match="are gone; the log begins at 2500"):
                list(rows)
            continue
        found += [offset for offset, _ in rows]
        assert found[-500:] == list(range(2500, 3000))
        assert found == sorted(set(found))
        assert len(found) < 3000
