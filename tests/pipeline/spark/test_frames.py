"""Runs on Spark and on a fake of it in this process: what they make, when they start Spark, and how they end it."""

import pickle
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from rackspan import pipeline
from rackspan.audit import ClusterMembers, ClusterPolicies, FleetPolicy, RackPolicy
from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, notebook
from rackspan.pipeline.judging import tasks
from rackspan.pipeline.judging.tasks import JudgeTask, TaskSnapshot
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.spark import build as job
from rackspan.pipeline.spark import session
from rackspan.pipeline.table import _json_value
from rackspan.text import utc_text
from tests.pipeline import expected
from tests.pipeline.examples import NOON, small, zeros_in_column
from tests.pipeline.readings import history, store_readings
from tests.pipeline.spark.fake_spark import FakeSession

SNAPSHOTS = [small(cluster, NOON + timedelta(hours=7 * n), 1 + n % 3) for n in range(3) for cluster in ("a", "b")]
POLICIES = FleetPolicy(RackPolicy(), {"b": RackPolicy(min_insync_racks=2)})


@pytest.fixture(params=["fake", pytest.param("Spark", marks=pytest.mark.spark)])
def spark_like(request: pytest.FixtureRequest) -> Any:
    return FakeSession() if request.param == "fake" else request.getfixturevalue("spark")


@pytest.fixture
def sessions(spark_like: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `run` starts and ends, in order; the session is shared."""
    events: list[Any] = []

    @contextmanager
    def counted(*words: Any, **options: Any) -> Iterator[Any]:
        events.append((words, options))
        try:
            yield spark_like
        finally:
            events.append("end")

    monkeypatch.setattr(session, "spark_session", counted)
    return events


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    made = pipeline.create_warehouse(tmp_path / "warehouse")
    store_all(SNAPSHOTS, made)
    return made


STARTED = ("local[3]", None), {"delta": False, "light": True, "required": ("numpy", "pyarrow")}


@pytest.mark.slow
@pytest.mark.parametrize("task_partitions", [tasks.TASK_PARTITIONS, 1])
def test_a_run_makes_every_row_and_starts_spark_once(
    sessions: list[Any], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, task_partitions: int
) -> None:
    for module in (tasks, job):
        monkeypatch.setattr(module, "TASK_PARTITIONS", task_partitions)
    report = pipeline.run(warehouse, POLICIES, "local[3]")
    assert sessions == [STARTED, "end"]
    check_rows(warehouse, SNAPSHOTS, POLICIES)
    assert report.rows.keys() >= {*TABLES, "durability_time"}
    assert {name: len(list(pipeline.rows(warehouse, name, changes=True))) for name in report.rows} == report.rows
    last = last_run(warehouse)
    assert last is not None
    assert last.kind == "run"
    assert pipeline.run(warehouse, POLICIES, "local[3]").run is None
    assert sessions == [STARTED, "end"]


@pytest.mark.slow
def test_executors_are_to_have_what_hours_of_readings_import_once_there_are_readings(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in `follow`, whose session began before the first reading."""
    looked_for: list[Any] = []
    monkeypatch.setattr(job, "require_on_executors", lambda _session, modules: looked_for.append(modules))
    monkeypatch.setattr(session, "spark_session", lambda *_words, **_options: nullcontext(FakeSession()))
    pipeline.run(warehouse, POLICIES)
    assert looked_for == []
    store_readings(warehouse, history(Random(1), 1))
    pipeline.run(warehouse, POLICIES)
    assert looked_for == [("msgspec", "ortools")]


@pytest.mark.slow
def test_a_backlog_is_judged_in_parts_by_one_session_and_reported_as_one_run(
    sessions: list[Any], warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "PARTITIONS_AT_ONCE", 4)
    report = pipeline.run(warehouse, POLICIES, remote="sc://h:1")
    assert sessions == [((None, "sc://h:1"), STARTED[1]), "end"]
    assert (report.snapshots, report.left) == (6, 0)
    assert [row["snapshots"] for row in pipeline.rows(warehouse, "runs")] == [2, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rebuild", "tables"), [("findings", {"findings"}), (pipeline.EVERY, {*TABLES}), ("traffic", set[str]())]
)
def test_a_rebuild_makes_the_rows_of_its_tables_again(
    sessions: list[Any], warehouse: Warehouse, rebuild: str, tables: set[str]
) -> None:
    pipeline.run(warehouse, POLICIES)
    report = pipeline.run(warehouse, POLICIES, rebuild=rebuild)
    assert report.rows.keys() & TABLES.keys() == tables
    last = last_run(warehouse)
    assert last is not None
    assert (last.kind, last.number) == ("rebuild", 2)
    with pytest.raises(UsageError, match=r"^table snapshots: not one that a run makes, .* the derived tables are"):
        pipeline.run(warehouse, POLICIES, rebuild="snapshots")
    with pytest.raises(UsageError, match="table 'nothing': there is none of that name"):
        pipeline.run(warehouse, POLICIES, rebuild="nothing")


@pytest.mark.parametrize(
    ("sizes", "partitions"),
    [([1, 3], 1), ([600_000, 3, 300_000], 2), ([500_000, 500_000], 2), ([1_900_000, *range(9)], 4), ([500_000], 1)],
)
def test_tasks_are_dealt_out_evenly_in_partitions_of_a_seconds_work(
    spark_like: Any, warehouse: Warehouse, sizes: list[int], partitions: int
) -> None:
    stored = next(iter(read_markers(warehouse).of_days([NOON.date()])))
    snapshots = [TaskSnapshot(replace(stored, partitions=size), ClusterMembers((), (), RackPolicy())) for size in sizes]
    frame = job.task_frame(spark_like, [JudgeTask(0, "", "", (snapshot,)) for snapshot in snapshots])

    def sizes_dealt(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [pickle.loads(task).partitions for batch in batches for task in batch.column(0).to_pylist()]  # noqa: S301 - made above
        yield pa.RecordBatch.from_pydict({"sizes": pa.array([found], pa.list_(pa.int64()))})

    dealt = [row["sizes"] for row in frame.mapInArrow(sizes_dealt, "sizes ARRAY<BIGINT>").collect()]
    assert len(dealt) == partitions
    assert {len(part) for part in dealt} <= {len(sizes) // partitions, -(-len(sizes) // partitions)}
    assert sorted(size for part in dealt for size in part) == sorted(sizes)


@pytest.mark.slow
def test_what_cannot_be_read_is_left_out_and_the_rest_is_judged(sessions: list[Any], tmp_path: Path) -> None:
    """A block of zeros in a column that the ids do not show: a task fails, and the second build leaves those snapshots out.

    Their ids are around the one of another file, for which the damaged file would else be read too.
    """
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    store_all([small(taken_at=NOON + timedelta(hours=hour)) for hour in (0, 2)], warehouse)
    zeros_in_column(next(Path(warehouse.table("partitions")).rglob("part-*.parquet")), "leader")
    between = small("another", taken_at=NOON + timedelta(hours=1), leader=2)
    store_all([between], warehouse)
    report = pipeline.run(warehouse, RackPolicy())
    assert (report.snapshots, len(report.quarantined)) == (1, 2)
    check_rows(warehouse, [between], RackPolicy())
    assert len(sessions) == 2


def check_rows(warehouse: Warehouse, snapshots: list[ClusterSnapshot], policies: ClusterPolicies) -> None:
    """Every table has the rows of these snapshots."""
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, policies), table.grain)
        assert expected.judged_columns(pipeline.rows(warehouse, name)) == wanted, name


@pytest.mark.slow
def test_some_snapshots_are_judged_under_another_policy(warehouse: Warehouse) -> None:
    """Whole, and drift from the snapshot before; in a notebook nothing is written."""
    spark: Any = FakeSession()
    second = SNAPSHOTS[2:4]
    ids = [
        row["snapshot_id"]
        for row in pipeline.rows(warehouse, "snapshots")
        if row["taken_at"] == utc_text(NOON + timedelta(hours=7))
    ]
    for name, table in TABLES.items():
        frame: Any = notebook.judge(spark, warehouse, name, ids, POLICIES)
        before = SNAPSHOTS[:2] if name == "drift" else []
        wanted = expected.ordered(expected.table(name, [*before, *second], POLICIES), table.grain)
        rows = pa.concat_tables(frame.partitions).to_pylist()
        assert {row["run_id"] for row in rows} == {""}
        found = [{column: _json_value(value) for column, value in row.items()} | {"run_id": "none"} for row in rows]
        assert expected.ordered(expected.judged_columns(found), table.grain) == wanted, name
    assert last_run(warehouse) is None


class JavaError:
    """An exception of the JVM, as py4j shows it."""

    def __init__(self, text: str, cause: "JavaError | None" = None) -> None:
        self.text, self.cause = text, cause

    def getCause(self) -> "JavaError | None":  # noqa: N802 - Java's name
        return self.cause

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self.text


WORKER = "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n  File a\n"


@pytest.mark.slow
@pytest.mark.parametrize("spark_like", ["fake"], indirect=True)
@pytest.mark.parametrize(
    ("cause", "line"),
    [
        (None, "[CODE] what Spark says"),
        (
            JavaError("java.io.IOException: outer", JavaError("java.io.IOException: disk full\nat a.b")),
            "java.io.IOException: disk full",
        ),
        (JavaError(f"{WORKER}rackspan.errors.InvalidWarehouse: part-1 is gone\n"), "part-1 is gone"),
        (JavaError(f"{WORKER}KeyboardInterrupt\n"), "KeyboardInterrupt"),
        (JavaError("x" * 500), "x" * 400),
    ],
)
def test_a_failure_is_the_innermost_cause_in_one_line(
    warehouse: Warehouse, sessions: list[Any], monkeypatch: pytest.MonkeyPatch, cause: JavaError | None, line: str
) -> None:
    error = PySparkException("[CODE] what Spark says\nJVM stacktrace:\nmore")
    error.java_exception = cause  # type: ignore[attr-defined]

    def failing(_spark: Any, _tasks: Any) -> Any:
        raise error

    monkeypatch.setattr(job, "task_frame", failing)
    with pytest.raises(InvalidWarehouse) as caught:
        pipeline.run(warehouse, POLICIES)
    assert str(caught.value).startswith(
        f"{warehouse.root}: Spark stopped: {line}; see --debug; rackspan pipeline check "
    )
    assert last_run(warehouse) is None
    assert sessions[1:] == ["end"]
