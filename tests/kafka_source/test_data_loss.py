"""When a loss is believed, by a script of log ends; and batches that begin or end beyond the log, on the embedded cluster."""

from collections.abc import Mapping, Sequence

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_source.data_loss import ATTEMPTS, ends_below, report_loss
from rackspan.kafka_source.data_source import KafkaReader
from rackspan.kafka_source.options import parse
from rackspan.model.ids import TopicPartition
from tests.kafka_source.filled_topics import created, produced

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)


class ScriptedEnds:
    """Each request's log end of every partition."""

    def __init__(self, ends: Sequence[int]) -> None:
        self.ends = [*ends]

    def offsets(self, timestamps: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        assert not committed
        return dict.fromkeys(timestamps, self.ends.pop(0))


def below(ends: Sequence[int]) -> tuple[Mapping[TopicPartition, int], int]:
    """And the requests that were left over."""
    cluster, pauses = ScriptedEnds(ends), list[float]()
    found = ends_below(cluster, {ZERO: 5, ONE: 20}, pauses.append)  # type: ignore[arg-type]
    assert pauses == [1.0] * (len(ends) - len(cluster.ends) - 1)
    return found, len(cluster.ends)


def test_an_end_below_is_believed_when_it_is_reported_each_time() -> None:
    assert below([10] * ATTEMPTS) == ({ONE: 10}, 0)


def test_a_leader_that_is_late_once_is_no_loss() -> None:
    assert below([10, 20, 0]) == ({}, 1)
    assert below([20, 0, 0]) == ({}, 2)


def test_an_end_that_is_reached_is_no_loss() -> None:
    assert below([20]) == ({}, 0)


def test_a_loss_is_an_error_or_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    report_loss("orders-0 is gone", "do this", fail=False)
    assert capsys.readouterr().err == "rackspan-kafka: orders-0 is gone\n"
    with pytest.raises(ClusterRequestFailed, match=r"^orders-0 is gone; do this$"):
        report_loss("orders-0 is gone", "do this", fail=True)


class LaterLeadersFirst(ScriptedEnds):
    """The partitions in the order in which their brokers responded."""

    def offsets(self, timestamps: Mapping[TopicPartition, int], *, committed: bool) -> dict[TopicPartition, int]:
        return dict(sorted(super().offsets(timestamps, committed=committed).items(), reverse=True))


def test_losses_are_named_in_order_of_the_partitions(capsys: pytest.CaptureFixture[str], no_pauses: None) -> None:
    both = '{"orders": {"0": 20, "1": 20}}'
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "orders", "startingOffsets": both}
    offsets = {ZERO: 20, ONE: 20}
    reader = KafkaReader(parse({**given, "failOnDataLoss": "false"}, streaming=False), ())
    reader._check_ends(LaterLeadersFirst([10] * ATTEMPTS), offsets, {})  # type: ignore[arg-type]
    named = [line.split()[3] for line in capsys.readouterr().err.splitlines()]
    assert named == ["orders-0", "orders-1"]
    reader = KafkaReader(parse({**given, "endingOffsets": both}, streaming=False), ())
    with pytest.raises(ClusterRequestFailed, match="endingOffsets: orders-0 is to be read"):
        reader._check_ends(LaterLeadersFirst([10] * ATTEMPTS), {}, offsets)  # type: ignore[arg-type]


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rackspan.kafka_source.data_loss.PAUSE_SECONDS", 0)


def batch(cluster: EmbeddedCluster, topic: str, **options: str) -> list[tuple[int, int, int]]:
    """Partition, start and end of the ranges that are planned."""
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, **options}
    tasks = KafkaReader(parse(given, streaming=False), ("offset",)).partitions()
    return [(task.wanted.partition.partition, task.wanted.start, task.wanted.end) for task in tasks]  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_start_beyond_the_end_is_a_loss(
    cluster: EmbeddedCluster, no_pauses: None, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 10)
    at_end, beyond = (f'{{"{topic}": {{"0": {offset}, "1": -2}}}}' for offset in (5, 6))
    assert batch(cluster, topic, startingOffsets=at_end) == [(1, 0, 5)]
    line = (
        f"option startingOffsets: {topic}-0 is to be read from offset 6, and its log ends at 5: "
        "it was truncated, or the topic was created again"
    )
    with pytest.raises(ClusterRequestFailed) as raised:
        batch(cluster, topic, startingOffsets=beyond)
    assert str(raised.value) == (
        f"{line}; name an offset up to there; failOnDataLoss=false reads nothing of this partition"
    )
    assert capsys.readouterr().err == ""
    assert batch(cluster, topic, startingOffsets=beyond, failOnDataLoss="false") == [(1, 0, 5)]
    assert capsys.readouterr().err == f"rackspan-kafka: {line}\n"


@pytest.mark.parametrize("strict", ["true", "false"])
def test_an_end_beyond_the_log_is_refused_when_the_query_is_planned(
    cluster: EmbeddedCluster, no_pauses: None, strict: str
) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 10)
    at_end, beyond = (f'{{"{topic}": {{"0": {offset}, "1": -1}}}}' for offset in (5, 6))
    assert batch(cluster, topic, endingOffsets=at_end) == [(0, 0, 5), (1, 0, 5)]
    with pytest.raises(ClusterRequestFailed) as raised:
        batch(cluster, topic, endingOffsets=beyond, failOnDataLoss=strict)
    assert str(raised.value) == (
        f"option endingOffsets: {topic}-0 is to be read up to offset 6, and its log ends at 5; name an offset up to there, or latest"
    )


def test_options_without_effect_are_named_once(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    topic = created(cluster)
    batch(cluster, topic, maxOffsetsPerTrigger="5", **{"kafka.max.poll.records": "5"})
    assert capsys.readouterr().err == (
        "rackspan-kafka: options without effect here: maxOffsetsPerTrigger, kafka.max.poll.records\n"
    )
