"""A task drives the reading of its range: what it waits for, how long, and what it says of what is lost."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.kafka_source.cluster import FetchedRecords, SourceMetadata, SourcePartition, SourceTopic
from rackspan.kafka_source.executor_rack import ExecutorRack
from rackspan.kafka_source.options import EARLIEST_OFFSET, parse
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading import task
from rackspan.kafka_source.reading.report import TaskReport
from rackspan.kafka_source.reading.task import TaskOptions, _RangeReader
from rackspan.model.ids import TopicPartition
from tests.kafka_source.records.test_columns import Record, built

A0 = TopicPartition("a", 0)
RECORDS = 4
DATA = built([Record(offset, 1, None, b"v") for offset in range(RECORDS)])
LED_BY_1 = SourceMetadata({1: "r1", 2: "r2"}, {"a": SourceTopic(None, {0: SourcePartition(1, (1, 2), (1, 2))})}, {})
NO_LEADER = SourceMetadata({2: "r2"}, {"a": SourceTopic(None, {0: SourcePartition(-1, (1, 2), ())})}, {})


def response(error_code: int = 0, records: bytes = b"") -> FetchedRecords:
    return FetchedRecords(error_code, records, 4, 0, ())


class FakeCluster:
    """Each reading of the metadata and each fetch takes the next of what the test gives, the last one again and again."""

    def __init__(
        self,
        responses: Sequence[FetchedRecords | Exception] = (),
        metadata: Sequence[SourceMetadata] = (LED_BY_1,),
        log: tuple[int, int] = (0, 4),
        seconds_each: float = 0.0,
        down: int | None = None,
    ) -> None:
        self.is_open = False
        self.now = 0.0
        self.steps: list[str] = []
        self._responses, self._metadata, self._log = list(responses), list(metadata), log
        self._seconds_each = seconds_each
        self._down = down

    def metadata(self, topics: Sequence[str]) -> SourceMetadata:
        assert topics == ["a"]
        self.steps.append("metadata")
        return self._metadata.pop(0) if len(self._metadata) > 1 else self._metadata[0]

    def offsets(self, timestamps: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        [(partition, at)] = timestamps.items()
        return {partition: self._log[0] if at == EARLIEST_OFFSET else self._log[1]}

    def fetch(self, broker: int, topic_id: str | None, at: TopicPartition, offset: int, most: int) -> Callable[[], Any]:
        assert (topic_id, at) == (None, A0)
        self.steps.append(f"fetch {offset} from {broker}")
        if broker == self._down:
            raise ConnectionRefusedError("refused")

        def wait() -> FetchedRecords:
            self.now += self._seconds_each
            found = self._responses.pop(0) if len(self._responses) > 1 else self._responses[0]
            if isinstance(found, Exception):
                raise found
            return found

        return wait

    def sleep(self, seconds: float) -> None:
        self.steps.append(f"sleep {seconds:g}")
        self.now += seconds


Read = Callable[..., tuple[list[int], TaskReport]]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    """The offsets that are read of the range 0 to 4 before a fake cluster, and the report about it."""

    def run(
        cluster: FakeCluster, end: int = RECORDS, rack: str | None = "r2", **options: str
    ) -> tuple[list[int], TaskReport]:
        monkeypatch.setattr(task, "time", SimpleNamespace(monotonic=lambda: cluster.now))
        given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a", "progressTimeoutMs": "1000", **options}
        report = TaskReport(OffsetRange(A0, 0, end, None), ExecutorRack(rack, "test"))
        reader = _RangeReader(
            cluster,  # type: ignore[arg-type] # As much of a cluster as is used.
            TaskOptions(parse(given, streaming=False), ("offset",)),
            report,
            cluster.sleep,
        )
        return [int(offset) for records in reader.records() for offset in records.offsets], report

    return run


def test_a_range_is_read_from_the_replica_in_the_rack_and_its_bytes_counted(read: Read) -> None:
    cluster = FakeCluster([response(records=DATA)])
    offsets, report = read(cluster)
    assert offsets == [0, 1, 2, 3]
    assert cluster.steps == ["metadata", "fetch 0 from 2"]
    assert report.bytes_by_broker == {(2, "r2"): len(DATA)}
    assert report.choices == ["same-rack"]


def test_the_next_fetch_is_under_way_while_spark_takes_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster([response(records=DATA)])
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a"}
    report = TaskReport(OffsetRange(A0, 0, RECORDS + 1, None), ExecutorRack("r1", "test"))
    options = TaskOptions(parse(given, streaming=False), ("offset",))
    records = _RangeReader(cluster, options, report, cluster.sleep).records()  # type: ignore[arg-type]
    next(records)
    assert cluster.steps == ["metadata", "fetch 0 from 1", "fetch 4 from 1"]


def test_a_follower_that_fails_is_left_for_the_leader_after_a_pause(read: Read) -> None:
    cluster = FakeCluster([ConnectionResetError("closed"), response(records=DATA)])
    assert read(cluster)[0] == [0, 1, 2, 3]
    assert cluster.steps == ["metadata", "fetch 0 from 2", "sleep 0.2", "metadata", "fetch 0 from 1"]


def test_a_follower_that_cannot_be_reached_is_left_for_the_leader_too(read: Read) -> None:
    cluster = FakeCluster([response(records=DATA)], down=2)
    assert read(cluster)[0] == [0, 1, 2, 3]
    assert cluster.steps == ["metadata", "fetch 0 from 2", "sleep 0.2", "metadata", "fetch 0 from 1"]


def test_a_batch_that_is_cut_off_is_fetched_once_more_wherever_it_stands(read: Read) -> None:
    first, second = (built([Record(offset, 1, None, b"v")]) for offset in range(2))
    cut = [response(records=first[:40]), response(records=first), response(records=second[:40])]
    assert read(FakeCluster([*cut, response(records=second)]), end=2)[0] == [0, 1]
    with pytest.raises(ClusterRequestFailed, match="the batch at offset 1 does not fit into a fetch of 40 bytes"):
        read(FakeCluster(cut), end=2)


def test_a_connection_of_an_earlier_task_may_fail_once_without_blame(read: Read) -> None:
    cluster = FakeCluster([ConnectionResetError("closed"), ConnectionResetError("closed"), response(records=DATA)])
    cluster.is_open = True
    assert read(cluster)[0] == [0, 1, 2, 3]
    assert [step for step in cluster.steps if step.startswith("fetch")] == [
        "fetch 0 from 2",
        "fetch 0 from 2",
        "fetch 0 from 1",
    ]


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        (FakeCluster(metadata=[NO_LEADER]), "it has no leader, or the leader is down"),
        (FakeCluster(metadata=[SourceMetadata({1: None}, {}, {"a": "wrong (5)"})]), r"wrong \(5\)"),
        (FakeCluster([ConnectionResetError("closed")]), "broker [12]: closed"),
        (FakeCluster([response()]), "no broker has records at the position"),
    ],
    ids=["no leader", "no topic", "no connection", "no records"],
)
def test_without_progress_a_task_fails_after_the_timeout(read: Read, cluster: FakeCluster, why: str) -> None:
    with pytest.raises(ClusterUnreachable, match=f"^a-0: nothing was read for 1 s at offset 0 of 0 to 4: {why}$"):
        read(cluster)
    assert 1.0 < cluster.now < 1.5
    assert [step for step in cluster.steps if step.startswith("sleep")] == ["sleep 0.2"] * round(cluster.now / 0.2)


def test_progress_begins_the_wait_anew(read: Read) -> None:
    """Three records, with a failed fetch between each two, take longer than the timeout of a second."""
    first, second, third = (response(records=built([Record(offset, 1, None, b"v")])) for offset in range(3))
    failed = response(error_code=6)
    cluster = FakeCluster([first, failed, second, failed, third], seconds_each=0.3)
    assert read(cluster, end=3, rack="r1")[0] == [0, 1, 2]
    assert cluster.now == pytest.approx(5 * 0.3 + 2 * 0.2)


def test_a_topic_that_may_not_be_read_is_an_error_at_once(read: Read) -> None:
    refused = SourceMetadata({}, {}, {"a": "TOPIC_AUTHORIZATION_FAILED (29)"}, frozenset({"a"}))
    cluster = FakeCluster(metadata=[refused])
    with pytest.raises(
        ClusterRequestFailed, match=r"topic a: TOPIC_AUTHORIZATION_FAILED \(29\); check the right to read it"
    ):
        read(cluster)
    assert cluster.now == 0


def test_records_that_are_gone_are_skipped_and_reported(read: Read, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster([response(error_code=1), response(records=DATA)], log=(2, 9))
    offsets, report = read(cluster, rack="r1", failOnDataLoss="false")
    assert (offsets, report.skipped_offsets) == ([2, 3], 2)
    assert capsys.readouterr().err == (
        "rackspan-kafka: a-0: offsets 0 to 2 are skipped; the log begins at 2: they were deleted, by retention or by request\n"
    )
    with pytest.raises(ClusterRequestFailed, match="offsets 0 to 2 are gone"):
        read(FakeCluster([response(error_code=1)], log=(2, 9)), rack="r1")
