"""What `follow` makes of snapshots that come in any order, late, twice, or again after a kill: the rows of a `run`."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector
from pyspark.sql import SparkSession

from rackspan import interrupts
from rackspan.audit import ClusterPolicies, RackPolicy
from rackspan.errors import InvalidWarehouse, UsageError, WarehouseBusy
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, create_warehouse, rows
from rackspan.pipeline import follow as module
from rackspan.pipeline.delta.table import add_columns
from rackspan.pipeline.follow import FollowedBatch, FollowTotals, _spark_build, follow, metric_families
from rackspan.pipeline.incremental import RunReport, RunWork
from rackspan.pipeline.landing.store import SnapshotLocation, store_all
from rackspan.pipeline.runs import last_run, prices_of
from rackspan.pipeline.schemas import SNAPSHOTS as SNAPSHOTS_TABLE
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.spark import session
from rackspan.pipeline.warehouse import existing_table, only_follow, only_run
from rackspan.traffic import PriceFile
from tests.depth import at_depth
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, small
from tests.pipeline.hours.prices import PRICES
from tests.waiting import WITHIN_SECONDS

SNAPSHOTS = [small(cluster, NOON + timedelta(hours=9 * n), 1 + n % 3) for n in range(4) for cluster in ("a", "b")]


class Markers:
    """A batch of the stream: rows with an id."""

    def __init__(self, ids: list[str]) -> None:
        self._ids = ids

    def collect(self) -> list[Any]:
        return [type("Row", (), {"snapshot_id": one}) for one in self._ids]


def batches(
    warehouse: Warehouse,
    ended: list[FollowedBatch],
    stop: threading.Event | None = None,
    prices: PriceFile | None = None,
) -> module._Batches:
    build = plain_build.PlainBuild(plain_build.build_for(warehouse), warehouse)
    return module._Batches(warehouse, RackPolicy(), build, ended.append, stop or threading.Event(), prices)


def judge(made: module._Batches, ids: list[str], number: int) -> None:
    made.judge(Markers(ids), number)  # type: ignore[arg-type]


def ids_of(snapshots: list[ClusterSnapshot], warehouse: Warehouse) -> list[str]:
    return [one.snapshot_id for one in store_all(snapshots, warehouse) if isinstance(one, SnapshotLocation)]


def check(warehouse: Warehouse, snapshots: list[ClusterSnapshot]) -> None:
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, RackPolicy()), table.grain)
        assert expected.judged_columns(rows(warehouse, name)) == wanted, name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_depth(test=2, soak=100)))
def test_every_order_of_arrival_and_every_repeated_batch_gives_the_rows_of_one_run(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    warehouse = create_warehouse(tmp_path / "warehouse")
    order = rng.sample(SNAPSHOTS, len(SNAPSHOTS))
    ends = [0, *sorted(rng.sample(range(1, len(order)), 3)), len(order)]
    ended: list[FollowedBatch] = []
    for number, (start, end) in enumerate(pairwise(ends)):
        ids = ids_of(order[start:end], warehouse)
        for _ in range(rng.randint(1, 2)):
            # A new process each time, as after a kill.
            judge(batches(warehouse, ended), ids, number)
    check(warehouse, SNAPSHOTS)
    assert sum(one.report.snapshots for one in ended) == len(SNAPSHOTS)


@pytest.mark.slow
def test_a_snapshot_that_is_stored_but_not_in_a_batch_yet_is_neither_judged_nor_compared_with(tmp_path: Path) -> None:
    """Else the rows of the batch would differ from those of a snapshot without any, and no reader could put them together."""
    warehouse = create_warehouse(tmp_path / "warehouse")
    early, late = small(taken_at=NOON), small(taken_at=NOON + timedelta(hours=1), leader=2)
    first, second = ids_of([early, late], warehouse)
    ended: list[FollowedBatch] = []
    judge(batches(warehouse, ended), [second], 0)
    assert [row["snapshot_id"] for row in rows(warehouse, "judged")] == [second]
    check(warehouse, [late])
    judge(batches(warehouse, ended), [first], 1)
    assert [row["change"] for row in rows(warehouse, "drift")] == ["leader-moved"]
    check(warehouse, [early, late])


@pytest.mark.slow
def test_what_is_in_no_batch_yet_stands_between_no_two_that_are_judged(tmp_path: Path) -> None:
    """Else readers in SQL, to whom a row is true until the next of its key, would see those of a late one at the snapshot after it."""
    warehouse = create_warehouse(tmp_path / "warehouse")
    first, late, later, last = (small(taken_at=NOON + timedelta(hours=n), leader=1 + n % 2) for n in range(4))
    ended: list[FollowedBatch] = []
    made = batches(warehouse, ended)
    judge(made, ids_of([first, last], warehouse), 0)
    ids = ids_of([late, later], warehouse)
    judge(made, ids[:1], 1)
    check(warehouse, [first, late, last])
    judged = {row["snapshot_id"]: row["base_id"] for row in rows(warehouse, "judged")}
    assert list(judged.values()) == [None, *list(judged)[:2]]
    judge(made, ids[1:], 2)
    check(warehouse, [first, late, later, last])


@pytest.mark.slow
def test_a_batch_with_another_policy_leaves_what_is_in_no_batch_yet_to_its_own(tmp_path: Path) -> None:
    """Else the first snapshot of a day, of which all rows are stored, would have them twice."""
    warehouse = create_warehouse(tmp_path / "warehouse")
    snapshots = [small(taken_at=NOON + timedelta(days=number), leader=1 + number % 2) for number in range(3)]
    ids, ended = ids_of(snapshots, warehouse), list[FollowedBatch]()
    plain_build.refresh(warehouse, RackPolicy(min_insync_racks=2), only=ids[:1])
    for number in (1, 2):
        judge(batches(warehouse, ended), ids[number : number + 1], number)
        check(warehouse, snapshots[: number + 1])
    assert [(each.report.snapshots, each.report.remade) for each in ended] == [(1, 1), (1, 0)]


@pytest.mark.slow
def test_a_late_snapshot_is_counted_as_one_that_corrects_another(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    ended: list[FollowedBatch] = []
    made = batches(warehouse, ended)
    judge(made, ids_of([small(taken_at=NOON), small(taken_at=NOON + timedelta(hours=2))], warehouse), 0)
    judge(made, ids_of([small(taken_at=NOON + timedelta(hours=1), leader=2)], warehouse), 1)
    assert [one.report.corrected for one in ended] == [0, 1]
    totals = FollowTotals()
    for one in ended:
        totals.add(one)
    text = metrics(totals)
    assert "rackspan_follow_snapshots_total 3.0" in text
    assert "rackspan_follow_corrected_total 1.0" in text
    assert f"rackspan_follow_partitions_total {totals.partitions}.0" in text
    assert totals.partitions >= 6
    assert totals.judge_seconds > 0
    assert 'rackspan_follow_rows_total{table="drift"} 4.0' not in text
    assert f'rackspan_follow_rows_total{{table="partition_durability"}} {totals.rows["partition_durability"]}.0' in text


@pytest.mark.slow
def test_a_batch_is_made_with_the_prices_of_its_follow(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    judge(batches(warehouse, [], prices=PRICES), ids_of([small()], warehouse), 0)
    assert prices_of(last_run(warehouse)) == PRICES


def test_the_metrics_add_up_batches() -> None:
    totals = FollowTotals()
    assert "behind" not in metrics(totals), "nothing is known before the first batch"
    first = RunReport("1", snapshots=3, corrected=1, partitions=8, seconds=1.5, rows={"findings": 2, "drift": 1})
    second = RunReport("2", snapshots=1, corrected=0, partitions=4, seconds=0.25, rows={"drift": 4})
    totals.add(FollowedBatch(0, first, 7.0, judge_seconds=1.0))
    totals.add(FollowedBatch(1, second, 3.0, judge_seconds=0.125))
    totals.add(FollowedBatch(2, RunReport(None), None))
    values = dict(line.rsplit(" ", 1) for line in metrics(totals).splitlines() if not line.startswith("#"))
    assert {name.removeprefix("rackspan_follow_"): float(value) for name, value in values.items()} == {
        "batches_total": 3,
        "snapshots_total": 4,
        "corrected_total": 1,
        "partitions_total": 12,
        "batch_seconds_total": 1.75,
        "judge_seconds_total": 1.125,
        'rows_total{table="drift"}': 5,
        'rows_total{table="findings"}': 2,
        "behind_seconds": 3,
    }


def metrics(totals: FollowTotals) -> str:
    class Collecting(Collector):
        def collect(self) -> Any:
            return metric_families(totals)

    registry = CollectorRegistry()
    registry.register(Collecting())
    return generate_latest(registry).decode()


@pytest.mark.slow
def test_a_batch_waits_for_a_run_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_SECONDS", 0.01)
    warehouse = create_warehouse(tmp_path / "warehouse")
    ids = ids_of([small()], warehouse)
    ended: list[FollowedBatch] = []
    made = batches(warehouse, ended)
    with only_run(warehouse):
        thread = threading.Thread(target=judge, args=(made, ids, 0))
        thread.start()
        time.sleep(0.05)
        assert not ended
    thread.join()
    assert [one.report.snapshots for one in ended] == [1]


def test_who_waits_for_a_run_at_work_can_be_stopped(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    ids = ids_of([small()], warehouse)
    stop = threading.Event()
    made = batches(warehouse, [], stop)
    with only_run(warehouse):
        stop.set()
        with pytest.raises(WarehouseBusy, match="follow ends"):
            judge(made, ids, 0)


def test_a_second_follow_of_a_warehouse_is_refused_and_run_is_not(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    with only_follow(warehouse):
        with pytest.raises(WarehouseBusy, match="another rackspan pipeline follow is at work here; stop it first"):
            follow(warehouse, RackPolicy(), lambda _: None, threading.Event(), available_now=True)
        with only_run(warehouse):
            pass


def test_no_batch_begins_after_the_end(tmp_path: Path) -> None:
    """Spark may call for one more batch while its stream is being stopped."""
    warehouse = create_warehouse(tmp_path / "warehouse")
    made = batches(warehouse, [])
    made.finish()
    with pytest.raises(WarehouseBusy, match="follow ends"):
        judge(made, ids_of([small()], warehouse), 0)


class Stream:
    """A stream as `follow` sees it: what it does in a thread of its own, and the error that it ends with."""

    def __init__(
        self,
        work: Callable[[], None] = lambda: None,
        error: str | None = None,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        self._error, self._on_stop = error, on_stop
        self._thread = threading.Thread(target=work)
        self._thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        return self._thread.is_alive()

    def exception(self) -> Exception | None:
        return None if self._error is None else RuntimeError(self._error)

    def stop(self) -> None:
        self._on_stop()
        self._thread.join()


def light_session(_master: str | None, *, light: bool, required: Sequence[str]) -> nullcontext[None]:
    assert light, "all work of follow is done in Python"
    assert required == ("numpy", "pyarrow")
    return nullcontext()


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[module._Batches], Stream]]:
    """What `follow` starts instead of streams of Spark, one after another."""
    following: list[Callable[[module._Batches], Stream]] = []
    monkeypatch.setattr(session, "spark_session", light_session)
    monkeypatch.setattr(
        module,
        "_spark_build",
        lambda _spark, warehouse: plain_build.PlainBuild(plain_build.build_for(warehouse), warehouse),
    )
    monkeypatch.setattr(module, "_started", lambda _spark, _warehouse, made, _trigger: following.pop(0)(made))
    monkeypatch.setattr(module, "POLL_SECONDS", 0.01)
    return following


@pytest.mark.slow
def test_the_stream_is_stopped_after_the_batch_at_work(
    streams: list[Callable[[module._Batches], Stream]], tmp_path: Path
) -> None:
    """Spark interrupts a batch when its stream is stopped."""
    warehouse = create_warehouse(tmp_path / "warehouse")
    ids = ids_of([small()], warehouse)
    stop = threading.Event()
    ended: list[FollowedBatch] = []
    ended_at_stop: list[int] = []

    def slow(batch: FollowedBatch) -> None:
        stop.set()
        time.sleep(0.2)
        ended.append(batch)

    streams.append(lambda made: Stream(lambda: judge(made, ids, 0), on_stop=lambda: ended_at_stop.append(len(ended))))
    follow(warehouse, RackPolicy(), slow, stop)
    assert [one.report.snapshots for one in ended] == [1]
    assert ended_at_stop == [1]


@pytest.mark.slow
def test_ctrl_c_leaves_a_batch_behind_that_does_not_end_and_names_it(
    streams: list[Callable[[module._Batches], Stream]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    ids = ids_of([small()], warehouse)
    begun, released = threading.Event(), threading.Event()

    def interrupted(_seconds: float) -> None:
        """In place of the main thread's pause: Ctrl-C comes while the batch is at work."""
        assert begun.wait(WITHIN_SECONDS)
        monkeypatch.setattr(interrupts, "_ends_until", time.monotonic())
        raise KeyboardInterrupt

    def never(_batch: FollowedBatch) -> None:
        begun.set()
        assert released.wait(WITHIN_SECONDS)

    streams.append(lambda made: Stream(lambda: judge(made, ids, 0)))
    monkeypatch.setattr(module, "time", SimpleNamespace(sleep=interrupted, monotonic=time.monotonic))
    with pytest.raises(KeyboardInterrupt):
        follow(warehouse, RackPolicy(), never, threading.Event())
    released.set()
    named = [line.partition(" did not end in ")[0] for line in caplog.messages]
    assert named == ["the batch at work", "the stream"]


@pytest.mark.slow
def test_the_error_of_a_batch_ends_follow_and_not_what_spark_says_of_it(
    streams: list[Callable[[module._Batches], Stream]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    ids = ids_of([small()], warehouse)

    def fail(*_words: Any, **_options: Any) -> None:
        raise InvalidWarehouse("the disk is full")

    def work(made: module._Batches) -> None:
        with suppress(InvalidWarehouse):
            judge(made, ids, 0)

    monkeypatch.setattr(module, "refresh", fail)
    streams.append(lambda made: Stream(lambda: work(made), "Job aborted"))
    with pytest.raises(InvalidWarehouse, match=r"^the disk is full$"):
        follow(warehouse, RackPolicy(), lambda _batch: None, threading.Event())


def test_a_stream_that_ends_by_itself_is_reported_in_one_line(
    streams: list[Callable[[module._Batches], Stream]], tmp_path: Path
) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    streams.append(lambda _made: Stream(error="the checkpoint is torn\n at a.java:1"))
    with pytest.raises(
        InvalidWarehouse, match=r": the stream ended: the checkpoint is torn; where .* remove that folder"
    ):
        follow(warehouse, RackPolicy(), lambda _batch: None, threading.Event())


class Calls:
    """A reader and a writer of streams: each call is recorded, and returns the object."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    @property
    def readStream(self) -> "Calls":  # noqa: N802 - Spark's name
        return self

    @property
    def writeStream(self) -> "Calls":  # noqa: N802 - Spark's name
        return self

    def __getattr__(self, name: str) -> Callable[..., "Calls"]:
        def call(*words: Any, **options: Any) -> "Calls":
            self.calls.append((name, *words, *options.items()))
            return self

        return call


def test_the_stream_reads_added_markers_some_files_at_a_time_and_keeps_its_place(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    made, spark = batches(warehouse, []), Calls()
    module._started(spark, warehouse, made, {"availableNow": True})  # type: ignore[arg-type]
    assert spark.calls == [
        ("format", "delta"),
        ("option", "maxFilesPerTrigger", 20),
        ("option", "skipChangeCommits", "true"),
        ("load", warehouse.spark_path("snapshots")),
        ("select", "snapshot_id"),
        ("foreachBatch", made.judge),
        ("option", "checkpointLocation", f"{warehouse.spark_root}/checkpoints/follow"),
        ("trigger", ("availableNow", True)),
        ("start",),
    ]


@pytest.mark.parametrize(
    ("available_now", "trigger"), [(True, {"availableNow": True}), (False, {"processingTime": "2.5 seconds"})]
)
def test_a_stream_is_triggered_by_time_or_for_what_is_stored_now(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, available_now: bool, trigger: dict[str, Any]
) -> None:
    triggers: list[Any] = []

    def start(_spark: Any, _warehouse: Any, _batches: Any, given: Any) -> Stream:
        triggers.append(dict(given))
        return Stream()

    monkeypatch.setattr(session, "spark_session", light_session)
    monkeypatch.setattr(module, "_started", start)
    follow(
        create_warehouse(tmp_path / "w"),
        RackPolicy(),
        lambda _: None,
        threading.Event(),
        every=2.5,
        available_now=available_now,
    )
    assert triggers == [trigger]


@pytest.mark.slow
@pytest.mark.parametrize("changes", [1, module.SCHEMA_CHANGES_MAX])
def test_a_stream_that_new_columns_end_is_started_again(
    streams: list[Callable[[module._Batches], Stream]], tmp_path: Path, changes: int
) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    ids = ids_of([small()], warehouse)
    ended: list[FollowedBatch] = []
    streams += [lambda _made: Stream(error="[DELTA_SCHEMA_CHANGED] a column")] * changes
    streams.append(lambda made: Stream(lambda: judge(made, ids, 0)))
    follow(warehouse, RackPolicy(), ended.append, threading.Event())
    assert [one.report.snapshots for one in ended] == [1]


def test_a_stream_that_changes_of_columns_end_without_a_batch_between_them_is_given_up(
    streams: list[Callable[[module._Batches], Stream]], tmp_path: Path
) -> None:
    streams += [lambda _made: Stream(error="[DELTA_SCHEMA_CHANGED] a column\nmore")] * (module.SCHEMA_CHANGES_MAX + 1)
    warehouse = create_warehouse(tmp_path / "warehouse")
    with pytest.raises(
        InvalidWarehouse, match=r"the stream ended: \[DELTA_SCHEMA_CHANGED\] a column; where checkpoints"
    ):
        follow(warehouse, RackPolicy(), lambda _: None, threading.Event())
    assert not streams


@pytest.mark.slow
def test_a_batch_between_changes_of_columns_begins_their_count_again(
    streams: list[Callable[[module._Batches], Stream]], tmp_path: Path
) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    ids = ids_of([small()], warehouse)
    ended: list[FollowedBatch] = []
    for changes in (module.SCHEMA_CHANGES_MAX, module.SCHEMA_CHANGES_MAX - 1):
        streams += [lambda _made: Stream(error="[DELTA_SCHEMA_CHANGED] a column")] * changes
        streams.append(lambda made: Stream(lambda: judge(made, ids, 0), "[DELTA_SCHEMA_CHANGED] a column"))
    streams.append(lambda _made: Stream())
    follow(warehouse, RackPolicy(), ended.append, threading.Event())
    assert len(ended) == 2


@pytest.mark.spark
def test_a_small_batch_runs_one_job_of_at_most_three_stages(spark: SparkSession, tmp_path: Path) -> None:
    """All tables together; the stream's own reading of the marker table is Delta's."""
    warehouse = create_warehouse(tmp_path / "warehouse")
    store_all(SNAPSHOTS[:3], warehouse)
    tracker = spark.sparkContext.statusTracker()
    stages: list[int] = []

    def counted(spark: SparkSession, warehouse: Warehouse) -> Any:
        build = _spark_build(spark, warehouse)

        def build_in_group(work: RunWork, policies: ClusterPolicies) -> Any:
            spark.sparkContext.setJobGroup(str(tmp_path), "one batch")
            files = build.judged(work, policies)
            jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(str(tmp_path))]
            stages.append(len({stage for info in jobs if info is not None for stage in info.stageIds}))
            return files

        return plain_build.PlainBuild(build_in_group, warehouse)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_spark_build", counted)
        follow(warehouse, RackPolicy(), lambda _: None, threading.Event(), available_now=True)
    assert len(stages) == 1
    assert 1 <= stages[0] <= 3
    check(warehouse, SNAPSHOTS[:3])


@pytest.mark.spark
def test_spark_follows_late_and_repeated_snapshots_to_the_rows_of_one_run(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse {a} [1]")
    order = list(SNAPSHOTS)
    Random(5).shuffle(order)
    ended: list[FollowedBatch] = []
    for some in (order[:5], order[3:]):
        store_all(some, warehouse)
        follow(warehouse, RackPolicy(), ended.append, threading.Event(), available_now=True)
    check(warehouse, SNAPSHOTS)
    assert [one.report.snapshots for one in ended if one.report.run] == [5, 3]
    before = len(ended)
    follow(warehouse, RackPolicy(), ended.append, threading.Event(), available_now=True)
    assert [one.report.run for one in ended[before:]] in ([], [None])


@pytest.mark.spark
def test_a_batch_has_at_most_so_many_files_of_markers(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module.FILES_PER_BATCH == 20
    monkeypatch.setattr(module, "FILES_PER_BATCH", 1)
    warehouse = create_warehouse(tmp_path / "warehouse")
    for one in SNAPSHOTS[:3]:
        store_all([one], warehouse)
    sizes: list[int] = []

    def count(self: module._Batches, markers: Any, _number: int) -> None:
        sizes.append(len(markers.collect()))

    monkeypatch.setattr(module._Batches, "judge", count)
    follow(warehouse, RackPolicy(), lambda _: None, threading.Event(), available_now=True)
    assert sizes == [1, 1, 1]


@pytest.mark.spark
def test_columns_that_a_newer_collector_adds_do_not_end_the_stream(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    store_all(SNAPSHOTS[:2], warehouse)
    stop = threading.Event()
    ended: list[FollowedBatch] = []

    def newer_collectors(batch: FollowedBatch) -> None:
        ended.append(batch)
        judged = sum(one.report.snapshots for one in ended)
        if judged == 6:
            stop.set()
        elif batch.report.run:
            add_columns(existing_table(warehouse, SNAPSHOTS_TABLE.name), pa.schema([(f"new_{judged}", pa.string())]))
            store_all(SNAPSHOTS[judged : judged + 2], warehouse)

    follow(warehouse, RackPolicy(), newer_collectors, stop, every=0.1)
    assert [one.report.snapshots for one in ended if one.report.run] == [2, 2, 2]
    check(warehouse, SNAPSHOTS[:6])


def test_follow_does_not_go_through_spark_connect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")
    with pytest.raises(UsageError, match="follow does not run through Spark Connect; unset it, or give --master"):
        follow(create_warehouse(tmp_path / "warehouse"), RackPolicy(), lambda _: None, threading.Event())


@pytest.mark.spark
def test_a_stop_lets_the_batch_at_work_end_and_an_error_ends_the_stream(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    store_all(SNAPSHOTS[:2], warehouse)
    stop = threading.Event()
    at_work: list[int] = []

    def slow_build(_spark: object, warehouse: Warehouse) -> Any:
        plain = plain_build.build_for(warehouse)

        def build(work: RunWork, policy: ClusterPolicies) -> Any:
            at_work.append(len(work.snapshots))
            stop.set()
            time.sleep(0.5)
            return plain(work, policy)

        return plain_build.PlainBuild(build, warehouse)

    monkeypatch.setattr(module, "_spark_build", slow_build)
    ended: list[FollowedBatch] = []
    follow(warehouse, RackPolicy(), ended.append, stop, every=0.1)
    assert (at_work, [one.report.snapshots for one in ended]) == ([2], [2])
    check(warehouse, SNAPSHOTS[:2])

    def failing(_spark: object, warehouse: Warehouse) -> Any:
        def build(_work: RunWork, _policy: ClusterPolicies) -> Any:
            raise UsageError("brokers without a rack: 4")

        return plain_build.PlainBuild(build, warehouse)

    monkeypatch.setattr(module, "_spark_build", failing)
    store_all(SNAPSHOTS[2:4], warehouse)
    with pytest.raises(UsageError, match="brokers without a rack: 4"):
        follow(warehouse, RackPolicy(), ended.append, threading.Event(), every=0.1)
    offsets = sorted((tmp_path / "warehouse" / "checkpoints" / "follow" / "offsets").glob("[0-9]*"))
    offsets[-1].write_text("torn")
    with pytest.raises(InvalidWarehouse, match="checkpoints/follow"):
        follow(warehouse, RackPolicy(), ended.append, threading.Event(), every=0.1)
