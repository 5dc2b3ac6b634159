"""Which connection a task gets: that of the task before, unless something speaks against it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_source.cluster import SourceCluster
from rackspan.kafka_source.options import ClientOptions, parse
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.report import Batch
from rackspan.kafka_source.reading.task import IDLE_SECONDS, TaskOptions, read_range, reused_cluster
from rackspan.model.ids import TopicPartition
from tests.kafka_source.filled_topics import consumed, created, produced

HERE, ELSEWHERE = ClientOptions("127.0.0.1:1"), ClientOptions("127.0.0.1:2")


def test_the_next_task_gets_the_connection_of_the_last_one_with_its_options() -> None:
    with reused_cluster(HERE) as first:
        pass
    with reused_cluster(HERE) as second:
        assert second is first
    with reused_cluster(ELSEWHERE) as other:
        assert other is not first
    with reused_cluster(HERE) as third:
        assert third is not first


def test_two_tasks_at_once_have_two_connections() -> None:
    with reused_cluster(HERE):
        pass
    with reused_cluster(HERE) as first, reused_cluster(HERE) as second:
        assert first is not second


def test_a_connection_is_closed_after_an_error_and_when_it_was_idle_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[SourceCluster] = []
    monkeypatch.setattr(SourceCluster, "close", lambda self: closed.append(self))
    with pytest.raises(ZeroDivisionError), reused_cluster(HERE) as first:
        raise ZeroDivisionError
    assert closed == [first]
    with reused_cluster(HERE) as second:
        assert second is not first
    later = time.monotonic() + IDLE_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with reused_cluster(HERE) as third:
        assert third is not second
    assert closed == [first, second]


def test_the_row_of_a_task_counts_its_records_and_names_where_its_rack_is_from(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 100)
    given = {
        "kafka.bootstrap.servers": cluster.bootstrap_servers,
        "subscribe": topic,
        "kafka.client.rack": "r2",
        "metricsPath": str(tmp_path),
    }
    task = TaskOptions(parse(given, streaming=False), ("offset",))
    for number in (0, 1):
        wanted = OffsetRange(TopicPartition(topic, number), 0, 40)
        assert sum(batch.num_rows for batch in read_range(wanted, task, Batch("b", 2))) == 40
    rows = [json.loads(line) for file in tmp_path.rglob("*.json") for line in file.read_text().splitlines()]
    assert [(row["records"], row["executor_rack"], row["rack_origin"]) for row in rows] == [
        (40, "r2", "kafka.client.rack")
    ] * 2
    assert {row["partition"] for row in rows} == {0, 1}


@pytest.mark.slow
def test_a_connection_that_was_closed_meanwhile_costs_no_record_and_no_change_of_replica(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 100)
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "kafka.client.rack": "r2"}
    task = TaskOptions(parse(given, streaming=False), ("offset", "value"))
    read = consumed(cluster.bootstrap_servers, topic)

    def offsets(number: int) -> list[int]:
        batches = read_range(OffsetRange(TopicPartition(topic, number), 0, 50), task, Batch("b", 1))
        return [offset for batch in batches for offset in batch["offset"].to_pylist()]

    brokers: list[int] = []
    fetch = SourceCluster.fetch

    def closed_at_first(self: SourceCluster, broker: int, *arguments: Any) -> Any:
        brokers.append(broker)
        if len(brokers) == 1:
            raise ConnectionResetError
        return fetch(self, broker, *arguments)

    # The leader of one of the two partitions at least is another broker than 2.
    for number in (0, 1):
        expected = [row.offset for row in read if row.partition == number]
        assert offsets(number) == expected
        brokers.clear()
        with monkeypatch.context() as patch:
            patch.setattr(SourceCluster, "fetch", closed_at_first)
            assert offsets(number) == expected
        assert brokers == [2, 2]
