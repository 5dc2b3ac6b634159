"""Which connection a task gets: that of the task before, unless something speaks against it."""

import time
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
    with pytest.raises(ZeroDivisionError), reused_cluster(HERE) as first:
        raise ZeroDivisionError
    with reused_cluster(HERE) as second:
        assert second is not first
    later = time.monotonic() + IDLE_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with reused_cluster(HERE) as third:
        assert third is not second


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
