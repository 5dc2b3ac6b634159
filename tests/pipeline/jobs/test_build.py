"""Every table, made by Spark, equals what the audit says of the same snapshots."""

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.errors import InvalidSnapshot, InvalidWarehouse, UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, UnrackedPolicy, columns
from rackspan.pipeline import Warehouse, session
from rackspan.pipeline.manifest import read_manifest
from rackspan.pipeline.schemas import TABLES
from tests.pipeline import expected
from tests.pipeline.examples import NOON, generated, recorded, small

pytestmark = pytest.mark.spark

SNAPSHOTS = 1000 if os.environ.get("RACKSPAN_SOAK") else 40

POLICIES = {
    "shared, as the proposal has it": RackPolicy(),
    "own, with demands and known controllers": RackPolicy(
        UnrackedPolicy.OWN, 2, {"orders": 1, "a.b": 3}, {101: RackId("a"), 102: RackId("a"), 103: RackId("b")}
    ),
    "ignore, brokers alone may be lost": RackPolicy(
        UnrackedPolicy.IGNORE, 3, survive=Survive.BROKER, topic_survive={"orders": Survive.NONE, "a.b": Survive.RACK}
    ),
}
"""Each is run with batches of another size, so that some end in the middle of a snapshot and some hold many."""

BATCH_ROWS = dict(zip(POLICIES, ("50000", "3", "17"), strict=True))


def filled(root: Path, snapshots: list[ClusterSnapshot]) -> Warehouse:
    # Spark reads paths as patterns and so would trip over these brackets.
    warehouse = pipeline.create_warehouse(root / "warehouse {a,b} [1] *")
    for snapshot in snapshots:
        assert pipeline.store(snapshot, warehouse).new
    return warehouse


@pytest.fixture(scope="module")
def everything() -> list[ClusterSnapshot]:
    return [*generated(SNAPSHOTS), *recorded(), odd()]


def odd() -> ClusterSnapshot:
    """What the generator is unlikely to make: a timestamp before Spark's calendar changes, sizes beyond a float's reach."""
    big = 2**53 + 1
    return ClusterSnapshot(
        cluster_id="odd",
        taken_at=NOON.replace(year=1582, month=10, day=10, microsecond=1),
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
    return filled(tmp_path_factory.mktemp("template"), everything).root


@pytest.fixture(scope="module", params=POLICIES)
def ran(
    request: pytest.FixtureRequest, spark: SparkSession, template: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Warehouse, RackPolicy]:
    copy = shutil.copytree(template, tmp_path_factory.mktemp("spark") / template.name)
    warehouse = pipeline.open_warehouse(Path(copy))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(session.SETTINGS, "spark.sql.execution.arrow.maxRecordsPerBatch", BATCH_ROWS[request.param])
        pipeline.run(warehouse, POLICIES[request.param])
    return warehouse, POLICIES[request.param]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_equals_the_audit_of_every_snapshot(
    ran: tuple[Warehouse, RackPolicy], everything: list[ClusterSnapshot], name: str
) -> None:
    warehouse, policy = ran
    wanted = expected.ordered(expected.table(name, everything, policy), TABLES[name].grain)
    made = list(pipeline.rows(warehouse, name))
    assert len(wanted) > len(everything)
    for mine, theirs in zip(made, wanted, strict=False):
        assert mine == theirs
    assert len(made) == len(wanted)
    assert list(pipeline.rows(warehouse, name, limit=100)) == wanted[:100]


def test_every_file_has_the_schema_of_its_table_and_is_compressed(ran: tuple[Warehouse, RackPolicy]) -> None:
    warehouse, _policy = ran
    for name, days in read_manifest(warehouse).tables.items():
        for file in [file for one in days.values() for file in one.files]:
            parquet = pq.ParquetFile(warehouse.tables / file)
            plain = parquet.schema_arrow.remove_metadata()
            assert [(field.name, str(field.type).replace("element", "item")) for field in plain] == [
                (field.name, str(field.type)) for field in TABLES[name].schema
            ]
            assert parquet.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_run_without_news_starts_nothing(ran: tuple[Warehouse, RackPolicy], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "spark_session", None)
    warehouse, policy = ran
    assert pipeline.run(warehouse, policy).run is None


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
    assert read_manifest(warehouse).run is None


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("partitions", r"Spark stopped: "),
        ("topics", r"topics\.parquet: cannot be read: .*; take the snapshot again$"),
        ("brokers", r"brokers\.parquet: cannot be read: .*; take the snapshot again$"),
        ("cluster", r"cluster\.parquet: cannot be read: .*; take the snapshot again$"),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_reported_in_one_line(
    spark: SparkSession, tmp_path: Path, name: str, line: str
) -> None:
    warehouse = filled(tmp_path, [small()])
    file = next(warehouse.snapshots.rglob(f"{name}.parquet"))
    file.write_bytes(b"PAR1 and no more")
    with pytest.raises((InvalidWarehouse, InvalidSnapshot), match=line) as caught:
        pipeline.run(warehouse, RackPolicy())
    assert "\n" not in str(caught.value)
    assert str(warehouse.root) in str(caught.value)
    assert read_manifest(warehouse).run is None
