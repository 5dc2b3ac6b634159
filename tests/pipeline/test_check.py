"""What a disk can do to a warehouse: `check` names it, and each command that it prints leaves a clean warehouse."""

import shlex
import shutil
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, repaired_warehouse, rows, run
from rackspan.pipeline.check import CheckReport, check
from rackspan.pipeline.delta.append import append, commit
from rackspan.pipeline.delta.table import data_files
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import HISTORY, TABLES
from rackspan.pipeline.table import table_files
from rackspan.pipeline.warehouse import existing_table, named_warehouse
from tests.pipeline import expected
from tests.pipeline.examples import NOON, OF_SNAPSHOTS, small, zeros_in_column
from tests.pipeline.plain_build import refresh

ROUNDS = [
    [small(cluster, NOON + timedelta(hours=8 * number), 1 + number % 3) for cluster in ("eu", "us")]
    for number in range(3)
]
SNAPSHOTS = [one for stored in ROUNDS for one in stored]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = create_warehouse(tmp_path_factory.mktemp("template") / "warehouse")
    for stored in ROUNDS:
        store_all(stored, made)
        refresh(made)
    return Path(made.root)


@pytest.fixture
def root(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "warehouse"))


def checked(root: Path, **options: bool | timedelta) -> CheckReport:
    return check(named_warehouse(root), now=NOON + timedelta(hours=17), **options)  # type: ignore[arg-type]


def newest_entry(root: Path, table: str) -> Path:
    return max((root / "tables" / table / "_delta_log").glob("*.json"))


def newest_file(root: Path, table: str) -> Path:
    """The data file that the newest version of a table added."""
    for version in range(DeltaTable(str(root / "tables" / table)).version(), 0, -1):
        now, before = (
            set(DeltaTable(str(root / "tables" / table), version=one).file_uris()) for one in (version, version - 1)
        )
        if now - before:
            return Path(min(now - before))
    raise AssertionError(table)


def check_tables(warehouse: Warehouse, snapshots: list[ClusterSnapshot]) -> None:
    """Every table has the rows of these snapshots, each once, in order."""
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, RackPolicy()), table.grain)
        assert expected.judged_columns(rows(warehouse, name)) == wanted, name


def carried_out(command: str, root: Path) -> None:
    """Do what a remedy says, without Spark."""
    words = shlex.split(command.partition(f" --warehouse {root}")[0])
    assert words[:2] == ["rackspan", "pipeline"], command
    if words[2] == "run":
        refresh(repaired_warehouse(root))
    elif words[2] == "rebuild":
        refresh(repaired_warehouse(root), rebuild=words[3:] or (*TABLES, *HISTORY))
    else:
        assert words[2:] == ["maintain", "--drop-damaged"]
        lines: list[str] = []
        maintain(repaired_warehouse(root), now=lambda: datetime.now(UTC), give_up=lines.append)
        assert lines
        # What is dropped is judged without it.
        refresh(open_warehouse(root))


def test_a_whole_warehouse_has_no_problems(root: Path) -> None:
    report = checked(root, whole=True)
    assert report.problems == ()
    assert [(one.cluster_id, one.snapshots, one.age_seconds) for one in report.clusters] == [
        ("eu", 3, 3600),
        ("us", 3, 3600),
    ]
    assert report.tables["partitions"] == 12


def test_a_cluster_without_a_snapshot_for_so_long_is_a_problem(root: Path) -> None:
    assert checked(root, max_age=timedelta(minutes=60)).problems == ()
    late = checked(root, max_age=timedelta(minutes=59)).problems
    assert [(one.cluster, one.problem) for one in late] == [
        ("eu", "no snapshot of eu for 60 minutes"),
        ("us", "no snapshot of us for 60 minutes"),
    ]


def rarely(*names: str, every: Iterable[str] = (*OF_SNAPSHOTS, *TABLES, *HISTORY)) -> list[Any]:
    """Every table; those named in make soak only."""
    return [pytest.param(one, marks=pytest.mark.soak if one in names else []) for one in every]


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def zeros_inside(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 3] = bytes(len(content) // 3 - 4)
    file.write_bytes(content)


def of_another_snapshot(file: Path) -> None:
    table = next(folder for folder in file.parents if (folder / "_delta_log").is_dir())
    shutil.copyfile(min(one for one in table.rglob("*.parquet") if one.read_bytes() != file.read_bytes()), file)


HARMS: tuple[Callable[[Path], None], ...] = (half, emptied, zeros_inside, of_another_snapshot, Path.unlink)


EACH = [(table, harm) for harm in HARMS for table in (*OF_SNAPSHOTS, *TABLES, *HISTORY)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "harm"),
    # Each kind of damage in make test, every pair in make soak.
    [
        pytest.param(table, harm, id=f"{table}-{harm.__name__}", marks=[] if number % 11 == 0 else pytest.mark.soak)
        for number, (table, harm) in enumerate(EACH)
    ],
)
def test_each_remedy_for_a_damaged_file_leaves_a_clean_warehouse(
    root: Path, table: str, harm: Callable[[Path], None]
) -> None:
    harm(newest_file(root, table))
    found = checked(root, whole=True).problems
    assert found
    assert found[0].table == table
    for _ in range(4):
        problems = checked(root, whole=True).problems
        if not problems:
            break
        carried_out(problems[0].remedy, root)
    assert checked(root, whole=True).problems == ()
    left = (
        [one for one in SNAPSHOTS if one not in ROUNDS[2]]
        if table in ("brokers", "topics", "partitions")
        else SNAPSHOTS
    )
    stored = {(row["cluster_id"], row["taken_at"]) for row in rows(open_warehouse(root), "snapshots")}
    assert len(stored) == len(left)
    if table != "snapshots":
        check_tables(open_warehouse(root), left)


@pytest.mark.slow
@pytest.mark.parametrize("table", rarely("findings", "outage_impact", "drift", "brokers", "topics"))
def test_each_remedy_for_a_torn_log_leaves_a_clean_warehouse_with_everything(root: Path, table: str) -> None:
    entry = newest_entry(root, table)
    entry.write_bytes(entry.read_bytes()[:100])
    [problem, *_] = checked(root).problems
    assert (problem.kind, problem.table) == ("torn-log", table)
    carried_out(problem.remedy, root)
    assert checked(root, whole=True).problems == ()
    check_tables(open_warehouse(root), SNAPSHOTS)


@pytest.mark.slow
@pytest.mark.parametrize("table", rarely("partition_durability", "outage_impact", "drift", every=(*TABLES, *HISTORY)))
def test_a_derived_table_that_is_gone_is_made_again(root: Path, table: str) -> None:
    shutil.rmtree(root / "tables" / table)
    problems = checked(root).problems
    if table == "runs":
        carried_out(f"rackspan pipeline rebuild --warehouse {root}", root)
    else:
        carried_out(problems[0].remedy, root)
    assert checked(root, whole=True).problems == ()
    check_tables(open_warehouse(root), SNAPSHOTS)


@pytest.mark.slow
@pytest.mark.parametrize("table", rarely("brokers", "topics", every=OF_SNAPSHOTS))
def test_a_damaged_landing_file_quarantines_its_snapshots_until_it_is_back(root: Path, table: str) -> None:
    later = [small(cluster, NOON + timedelta(hours=30), 3) for cluster in ("eu", "us")]
    last = [small(cluster, NOON + timedelta(hours=31), 2) for cluster in ("eu", "us")]
    store_all(later, open_warehouse(root))
    file = newest_file(root, table)
    content = file.read_bytes()
    store_all(last, open_warehouse(root))
    half(file)
    report = refresh(open_warehouse(root))
    assert report.snapshots == 2
    assert len(report.quarantined) == (1 if table == "snapshots" else 2)
    assert all(file.name in why for why in report.quarantined.values())
    check_tables(open_warehouse(root), [*SNAPSHOTS, *last])
    assert list(rows(open_warehouse(root), "runs"))[-1]["quarantined"] == report.quarantined
    again = refresh(open_warehouse(root))
    assert (again.run, again.quarantined.keys()) == (None, report.quarantined.keys())
    file.write_bytes(content)
    assert checked(root).problems[0].remedy == f"rackspan pipeline run --warehouse {root}"
    restored = refresh(open_warehouse(root))
    assert (restored.snapshots, restored.quarantined) == (2, {})
    check_tables(open_warehouse(root), [*SNAPSHOTS, *later, *last])
    assert checked(root).problems == ()


def test_a_snapshot_that_was_damaged_under_another_policy_is_judged_by_it_once_it_is_back(root: Path) -> None:
    file = newest_file(root, "partitions")
    content = file.read_bytes()
    half(file)
    strict = RackPolicy(min_insync_racks=2)
    assert len(refresh(open_warehouse(root), strict).quarantined) == 2
    file.write_bytes(content)
    report = refresh(open_warehouse(root), strict)
    assert (report.remade, report.reason) == (2, "their data files are whole again")
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, SNAPSHOTS, strict), table.grain)
        assert expected.judged_columns(rows(open_warehouse(root), name)) == wanted, name


def test_a_snapshot_that_lost_rows_without_a_damaged_file_is_not_judged_as_a_smaller_cluster(root: Path) -> None:
    store_all([small("eu", NOON + timedelta(hours=40), 3)], open_warehouse(root))
    opened = existing_table(open_warehouse(root), "partitions")
    commit(opened, [], {}, removed=[max(data_files(opened), key=lambda file: file.most or "")])
    report = refresh(open_warehouse(root))
    assert list(report.quarantined.values()) == ["table partitions has 0 rows of it"]
    check_tables(open_warehouse(root), SNAPSHOTS)


def test_what_the_ids_of_a_file_do_not_show_quarantines_its_snapshots_too(root: Path) -> None:
    """A block of zeros in another column is found once the build fails."""
    late = small("eu", NOON + timedelta(hours=40), 3)
    store_all([late, small("us", NOON + timedelta(hours=41), 3)], open_warehouse(root))
    zeros_in_column(newest_file(root, "partitions"), "leader")
    report = refresh(open_warehouse(root))
    assert (report.snapshots, len(report.quarantined)) == (0, 2)
    check_tables(open_warehouse(root), SNAPSHOTS)


def test_readers_leave_out_whole_snapshots_and_say_which(root: Path) -> None:
    half(newest_file(root, "partition_durability"))
    lines: list[str] = []
    left = list(rows(open_warehouse(root), "partition_durability", left_out=lines.append))
    assert len(left) == 8
    assert f"rackspan pipeline rebuild partition_durability --warehouse {root}" in lines[0]
    with pytest.raises(InvalidWarehouse, match=r"rackspan pipeline check --whole"):
        list(rows(open_warehouse(root), "partition_durability"))


def test_a_snapshot_whose_rows_are_in_two_files_is_left_out_with_the_damaged_one(root: Path) -> None:
    warehouse, table = open_warehouse(root), TABLES["partition_durability"]
    file, opened = newest_file(root, table.name), existing_table(warehouse, table.name)
    stored = table_files(warehouse, table, last_run(warehouse)).stored(table.schema)
    split = pa.Table.from_batches(stored).sort_by("valid_from").slice(11)
    append(opened, split, {})
    half(file)
    lines: list[str] = []
    left = list(rows(warehouse, table.name, left_out=lines.append))
    assert (len(left), len(lines)) == (8, 1)


@pytest.mark.slow
def test_a_rebuild_drops_a_damaged_file_of_snapshots_that_are_damaged_too(root: Path) -> None:
    """Of a day on which nothing can be made again."""
    for table in ("partitions", "findings"):
        half(newest_file(root, table))
    first = checked(root).problems[0]
    assert first.remedy == f"rackspan pipeline rebuild findings --warehouse {root}"
    carried_out(first.remedy, root)
    assert {one.table for one in checked(root).problems} == {"partitions", "snapshots"}
    carried_out(checked(root).problems[0].remedy, root)
    assert checked(root, whole=True).problems == ()
    check_tables(open_warehouse(root), [one for stored in ROUNDS[:2] for one in stored])


def test_maintenance_joins_what_is_whole_and_leaves_a_damaged_file_as_it_is(root: Path) -> None:
    file = min((root / "tables" / "partitions").rglob("*.parquet"))
    half(file)
    done = {one.name: one for one in maintain(open_warehouse(root), now=lambda: datetime.now(UTC))}
    assert len(done["partitions"].damaged) == 1
    assert (done["partitions"].joined, done["brokers"].joined) == (0, 2)
    assert file.is_file()
    assert done["findings"].damaged == ()


def test_rebuild_refuses_a_table_that_nothing_can_make_again(root: Path) -> None:
    with pytest.raises(
        UsageError, match=r"the derived tables are partition_durability, findings, outage_impact, drift"
    ):
        run(open_warehouse(root), RackPolicy(), rebuild="partitions")


def test_a_rebuilt_table_is_read_as_before_until_it_is_whole(root: Path) -> None:
    before = existing_table(open_warehouse(root), "findings").version()
    report = refresh(open_warehouse(root), rebuild=["findings"])
    assert (report.remade, report.reason, set(report.rows)) == (6, "a rebuild of findings", {"findings"})
    last = last_run(open_warehouse(root))
    assert last is not None
    assert last.versions["findings"] == before + 1
    check_tables(open_warehouse(root), SNAPSHOTS)
