"""Every table, made by Spark, equals what the audit says of the same snapshots."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import ClusterPolicies, FleetPolicy, RackPolicy
from rackspan.audit.policy import Survive
from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, UnrackedPolicy, columns
from rackspan.pipeline import Warehouse, incremental
from rackspan.pipeline import runs as history
from rackspan.pipeline.judging import tasks
from rackspan.pipeline.landing.read import Damage
from rackspan.pipeline.landing.rows import EARLIEST
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import TABLES
from rackspan.pipeline.spark import build as job
from rackspan.pipeline.spark import session
from tests.depth import one_in
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, generated, recorded, small

pytestmark = pytest.mark.spark

SNAPSHOTS = 1000 if os.environ.get("RACKSPAN_SOAK") else 40

POLICIES: Final[Mapping[str, ClusterPolicies]] = {
    "shared, as the proposal has it": RackPolicy(),
    "own, with demands and known controllers": RackPolicy(
        UnrackedPolicy.OWN, 2, {"orders": 1, "a.b": 3}, {101: RackId("a"), 102: RackId("a"), 103: RackId("b")}
    ),
    "ignore, brokers alone may be lost; a cluster has a policy of its own": FleetPolicy(
        RackPolicy(
            UnrackedPolicy.IGNORE,
            3,
            survive=Survive.BROKER,
            topic_survive={"orders": Survive.NONE, "a.b": Survive.RACK},
            topic_leader_racks={"orders": (RackId("b"), RackId("a"))},
        ),
        {
            "007": RackPolicy(
                UnrackedPolicy.OWN,
                2,
                {"a.b": 1},
                {101: RackId("a")},
                frozenset({1, 2}),
                topic_survive={"orders": Survive.NONE},
            )
        },
    ),
}
"""Each is run with tasks of another size, so that some are one snapshot and some hold many."""

TASK_PARTITIONS = dict(zip(POLICIES, (tasks.TASK_PARTITIONS, 1, 60), strict=True))


def filled(root: Path, snapshots: list[ClusterSnapshot]) -> Warehouse:
    warehouse = pipeline.create_warehouse(root / "warehouse {a,b} [1] *")
    store_all(snapshots, warehouse)
    return warehouse


@pytest.fixture(scope="module")
def everything() -> list[ClusterSnapshot]:
    return [*generated(SNAPSHOTS), *recorded(), odd(), *with_a_gap()]


def with_a_gap() -> list[ClusterSnapshot]:
    """A topic, and the quorum, that are read, then not read, then read again: no row of drift; and then the topic is deleted."""
    whole = small("gap")
    without = replace(whole, topics=(), partitions=columns(topic=[], partition=[], leader=[], replicas=[], isr=[]))
    notes = ("topics orders: on disk but not shown to this user", "the controller quorum: unknown, timed out")
    partial = replace(without, controllers=(), partial=notes)
    return [
        replace(one, taken_at=NOON + timedelta(hours=hour)) for hour, one in enumerate((whole, partial, whole, without))
    ]


def test_a_topic_that_could_not_be_read_is_not_deleted_in_drift(ran: tuple[Warehouse, ClusterPolicies]) -> None:
    changes = [row for row in pipeline.rows(ran[0], "drift") if row["cluster_id"] == "gap"]
    assert {(row["taken_at"], row["change"]) for row in changes if "voter" not in row["change"]} == {
        ("2026-11-20T15:00:00Z", "topic-deleted"),
        ("2026-11-20T15:00:00Z", "safety-gained"),
    }
    assert len(changes) <= 3


def odd() -> ClusterSnapshot:
    """What the generator is unlikely to make: the earliest timestamp, sizes beyond a float's reach."""
    big = 2**53 + 1
    return ClusterSnapshot(
        cluster_id="odd",
        taken_at=EARLIEST.replace(microsecond=1),
        brokers=(Broker(BrokerId(0), rack=RackId("a")), Broker(BrokerId(2**31 - 1), rack=RackId("b"))),
        topics=(Topic(TopicName("t")),),
        partitions=columns(
            topic=[0, 0],
            partition=[0, 2**31 - 1],
            leader=[0, -1],
            replicas=[[0], [0]],
            isr=[[0], []],
            size_bytes=[big, big],
        ),
    )


@pytest.fixture(scope="module")
def template(everything: list[ClusterSnapshot], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(filled(tmp_path_factory.mktemp("template"), everything).root)


@pytest.fixture(scope="module", params=one_in(3, POLICIES))
def ran(
    request: pytest.FixtureRequest, spark: SparkSession, template: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, ClusterPolicies]:
    copy = shutil.copytree(template, tmp_path_factory.mktemp("spark") / template.name)
    warehouse = pipeline.open_warehouse(Path(copy))
    with pytest.MonkeyPatch.context() as patch:
        for module in (tasks, job):
            patch.setattr(module, "TASK_PARTITIONS", TASK_PARTITIONS[request.param])
        pipeline.run(warehouse, POLICIES[request.param])
    return warehouse, POLICIES[request.param]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_equals_the_audit_of_every_snapshot(
    ran: tuple[Warehouse, ClusterPolicies], everything: list[ClusterSnapshot], name: str
) -> None:
    warehouse, policy = ran
    wanted = expected.ordered(expected.table(name, everything, policy), TABLES[name].grain)
    made = expected.judged_columns(pipeline.rows(warehouse, name))
    assert len(wanted) > len(everything)
    for mine, theirs in zip(made, wanted, strict=False):
        assert mine == theirs
    assert len(made) == len(wanted)


def test_other_engines_read_the_same_rows_from_the_same_path(
    ran: tuple[Warehouse, ClusterPolicies], spark: SparkSession
) -> None:
    """DuckDB over delta-rs' Arrow data set and Spark by path: the rows of `pipeline table`. Polars is below, on a plain path."""
    warehouse, _ = ran
    for name in ("findings", "partition_durability"):
        ours = len(list(pipeline.rows(warehouse, name, changes=True)))
        delta = DeltaTable(warehouse.table(name)).to_pyarrow_dataset()
        with duckdb.connect() as connection:
            connection.register("delta", delta)
            ((count,),) = connection.execute("select count(*) from delta").fetchall()
            newest = "select count(*) from delta where valid_from = (select max(valid_from) from delta)"
            assert connection.execute(newest).fetchall()[0][0] > 0
        assert count == ours
        assert spark.read.format("delta").load(warehouse.spark_path(name)).count() == ours


def test_no_derived_table_has_a_feature_that_another_engine_may_not_know(
    ran: tuple[Warehouse, ClusterPolicies],
) -> None:
    for name in TABLES:
        protocol = DeltaTable(ran[0].table(name)).protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_a_run_without_news_starts_nothing(
    ran: tuple[Warehouse, ClusterPolicies], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "spark_session", None)
    warehouse, policy = ran
    assert pipeline.run(warehouse, policy).run is None


@pytest.mark.parametrize("task_partitions", [tasks.TASK_PARTITIONS, 1], ids=["one task", "a task for each snapshot"])
def test_a_first_run_is_one_job_of_at_most_three_stages(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task_partitions: int
) -> None:
    """However many tables and tasks: what a small run costs is what its stages cost."""
    for module in (tasks, job):
        monkeypatch.setattr(module, "TASK_PARTITIONS", task_partitions)
    warehouse = filled(tmp_path, [small(taken_at=NOON + timedelta(minutes=minute)) for minute in range(5)])
    spark.sparkContext.setJobGroup(str(tmp_path), "a first run")
    pipeline.run(warehouse, RackPolicy())
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(str(tmp_path))]
    stages = {stage for info in jobs if info is not None for stage in info.stageIds}
    assert 1 <= len(stages) <= 3


def test_late_snapshots_another_policy_and_a_killed_run_end_in_the_same_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commits that the other tests do not make: appends beside old rows, replacements, a restore."""
    snapshots = [small(taken_at=NOON + timedelta(hours=18 * n), leader=1 + n % 3) for n in range(4)]
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    store_all([snapshots[0], snapshots[2]], warehouse)
    plain_build.refresh(warehouse)

    def killed(*_words: object, **_options: object) -> None:
        raise InvalidWarehouse("killed")

    store_all(snapshots, warehouse)
    with monkeypatch.context() as patch:
        patch.setattr(history, "add_judged", killed)
        with pytest.raises(InvalidWarehouse, match="killed"):
            plain_build.refresh(warehouse)
    for policy in (RackPolicy(), RackPolicy(min_insync_racks=2)):
        pipeline.run(warehouse, policy)
        for name, table in TABLES.items():
            wanted = expected.ordered(expected.table(name, snapshots, policy), table.grain)
            assert expected.judged_columns(pipeline.rows(warehouse, name)) == wanted
            stored = len(list(pipeline.rows(warehouse, name, changes=True)))
            assert pl.read_delta(warehouse.table(name)).height == stored <= len(wanted)


def test_a_policy_that_refuses_rackless_brokers_refuses_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    rackless = Broker(BrokerId(4))
    snapshot = ClusterSnapshot(
        cluster_id="x",
        taken_at=NOON,
        brokers=(rackless,),
        topics=(),
        partitions=columns(topic=[], partition=[], leader=[], replicas=[], isr=[]),
    )
    warehouse = filled(tmp_path, [small(), snapshot])
    with pytest.raises(UsageError, match=r"^brokers without a rack: 4; set broker.rack"):
        pipeline.run(warehouse, RackPolicy(UnrackedPolicy.ERROR))
    assert last_run(warehouse) is None


def test_a_failure_of_spark_is_reported_in_one_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = filled(tmp_path, [small()])
    next(Path(warehouse.table("partitions")).rglob("part-*.parquet")).write_bytes(b"PAR1 and no more")
    monkeypatch.setattr(incremental, "find_damage", lambda *_words, **_options: Damage({}, {}))
    with pytest.raises(InvalidWarehouse, match=r"Spark stopped: ") as caught:
        pipeline.run(warehouse, RackPolicy())
    assert "\n" not in str(caught.value)
    assert warehouse.root in str(caught.value)
    assert last_run(warehouse) is None
