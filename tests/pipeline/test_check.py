"""What a disk can do to a warehouse: `check` names it, and each command that it prints leaves a clean warehouse."""

import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, repaired_warehouse, rows, run
from rackspan.pipeline.check import CheckReport, WarehouseProblem, check
from rackspan.pipeline.delta.append import append, commit
from rackspan.pipeline.delta.table import data_files, open_table
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.runs import commit_run, last_run
from rackspan.pipeline.schemas import DERIVED, HISTORY, TABLES
from rackspan.pipeline.table import table_files
from rackspan.pipeline.warehouse import FilesRead, existing_table, named_warehouse
from tests.pipeline import expected
from tests.pipeline.examples import NOON, OF_SNAPSHOTS, small, zeros_in_column
from tests.pipeline.plain_build import refresh

pytestmark = pytest.mark.slow

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


def test_a_warehouse_in_an_object_store_has_no_log_files_that_could_be_torn(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Warehouse, "table_folder", lambda _warehouse, _name: None)
    assert checked(root).problems == ()


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


def carried_out(command: str, root: Path, refresh: Callable[..., Any] = refresh) -> None:
    """Do what a remedy says, without Spark."""
    words = shlex.split(command.partition(f" --warehouse {root}")[0])
    assert words[:2] == ["rackspan", "pipeline"], command
    if words[2] == "run":
        refresh(repaired_warehouse(root))
    elif words[2] == "rebuild":
        refresh(repaired_warehouse(root), rebuild=words[3:] or (*DERIVED, *HISTORY))
    elif words[2:] == ["maintain"]:
        maintain(repaired_warehouse(root), now=lambda: datetime.now(UTC))
    else:
        assert words[2:] == ["maintain", "--drop-damaged"]
        lines: list[str] = []
        maintain(repaired_warehouse(root), now=lambda: datetime.now(UTC), give_up=lines.append)
        assert lines
        # What is dropped is judged without it.
        refresh(open_warehouse(root))


def cleaned(root: Path, refresh: Callable[..., Any]) -> list[WarehouseProblem]:
    """Carry out one remedy after the other until there is no problem. Returns what each was for."""
    done: list[WarehouseProblem] = []
    while problems := checked(root, whole=True).problems:
        assert len(done) < 4, problems
        done.append(problems[0])
        carried_out(done[-1].remedy, root, refresh)
    return done


def test_a_whole_warehouse_has_no_problems(root: Path) -> None:
    report = checked(root, whole=True)
    assert report.problems == ()
    assert [(one.cluster_id, one.snapshots, one.age_seconds) for one in report.clusters] == [
        ("eu", 3, 3600),
        ("us", 3, 3600),
    ]
    assert report.tables["partitions"] == 12


def test_a_snapshot_of_a_time_to_come_hides_no_collector_that_stopped(root: Path) -> None:
    """One whose clock was a year ahead would be the newest for a year."""
    store_all([small("eu", NOON + timedelta(days=365)), small("new", NOON + timedelta(days=2))], open_warehouse(root))
    report = checked(root, max_age=timedelta(minutes=59))
    assert [(each.cluster_id, each.snapshots, each.age_seconds) for each in report.clusters] == [
        ("eu", 4, 3600),
        ("new", 1, -31 * 3600),
        ("us", 3, 3600),
    ]
    assert [each.cluster for each in report.problems if each.kind == "late"] == ["eu", "us"]


def test_a_check_opens_a_derived_table_once_and_one_of_snapshots_at_most_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Counter[str]()

    def counted(url: str, version: int | None = None) -> DeltaTable | None:
        opened[url.rsplit("/", 1)[-1]] += 1
        return open_table(url, version)

    for module in ("check", "warehouse", "runs"):
        monkeypatch.setattr(f"rackspan.pipeline.{module}.open_table", counted)
    assert checked(root).problems == ()
    assert {name: opened[name] for name in TABLES} == dict.fromkeys(TABLES, 1)
    # For the rows of each snapshot, and the markers for the bases of snapshots.
    assert max(opened.values()) <= 3
    assert sum(opened.values()) <= len(opened) + len(OF_SNAPSHOTS) + 1


def test_a_cluster_without_a_snapshot_for_so_long_is_a_problem(root: Path) -> None:
    assert checked(root, max_age=timedelta(minutes=60)).problems == ()
    late = checked(root, max_age=timedelta(minutes=59)).problems
    assert [(one.cluster, one.problem) for one in late] == [
        ("eu", "no snapshot for 60 minutes"),
        ("us", "no snapshot for 60 minutes"),
    ]


def test_snapshots_that_no_run_has_judged_for_so_long_are_a_problem(root: Path, tmp_path: Path) -> None:
    """At 17 hours past noon, with a snapshot more of 16:30 and one of 30 hours, which is of a time to come."""
    warehouse = open_warehouse(root)
    store_all([small("eu", NOON + timedelta(hours=hours)) for hours in (16.5, 30)], warehouse)
    [waiting] = {row["snapshot_id"] for row in rows(warehouse, "snapshots") if "T04:30" in str(row["taken_at"])}
    assert checked(root, max_age=timedelta(minutes=60)).problems == ()
    [late] = [one for one in checked(root, max_age=timedelta(minutes=29)).problems if one.table == "judged"]
    line = f"no run has judged 1 snapshot of more than 29 minutes ago ({waiting}): the newest run began at "
    assert late.problem.startswith(line)
    carried_out(late.remedy, root)
    assert [one for one in checked(root, max_age=timedelta(minutes=29)).problems if one.table == "judged"] == []
    fresh = create_warehouse(tmp_path / "fresh")
    store_all(SNAPSHOTS, fresh)
    [never] = checked(tmp_path / "fresh", max_age=timedelta(minutes=60)).problems
    # Two are of exactly 60 minutes ago.
    assert never.problem.startswith("no run has judged 4 snapshots of more than 60 minutes ago (")
    assert never.problem.endswith(": there was no run yet")


def stored_twice(root: Path, table: str, ids: list[str]) -> None:
    """Append the rows of some snapshots once more."""
    opened = existing_table(named_warehouse(root), table)
    rows = opened.to_pyarrow_table()
    append(opened, rows.filter(pc.is_in(rows["snapshot_id"], pa.array(ids))), {})


def test_rows_that_are_there_twice_are_a_problem(root: Path) -> None:
    ids = [row["snapshot_id"] for row in rows(open_warehouse(root), "judged")]
    stored_twice(root, "judged", ids[:2])
    stored_twice(root, "snapshots", ids[1:2])
    found = [(one.kind, one.table, one.problem) for one in checked(root).problems]
    assert (
        "doubled",
        "snapshots",
        "1 snapshots are there twice, such as that of eu at 2026-11-20T20:00:00+00:00",
    ) in found
    assert not [one for one in found if one[:2] == ("doubled", "judged")]
    # In force is the version that the newest run names.
    last = last_run(open_warehouse(root))
    assert last is not None
    version = DeltaTable(str(root / "tables" / "judged")).version()
    made = replace(
        last, number=last.number + 1, run_id=f"{last.number + 1:010}-a", versions={**last.versions, "judged": version}
    )
    commit_run(open_warehouse(root), existing_table(open_warehouse(root), "runs"), made)
    [one] = [one for one in checked(root).problems if (one.kind, one.table) == ("doubled", "judged")]
    assert one.problem == f"2 snapshots are there twice ({ids[0]}, {ids[1]})"
    assert one.remedy == f"rackspan pipeline rebuild --warehouse {root}"


def without_row_of(root: Path, table: str, snapshot_id: str) -> None:
    """Delete the rows of a snapshot, as some other program may."""
    existing_table(named_warehouse(root), table).delete(f"snapshot_id = '{snapshot_id}'")


def test_a_judged_snapshot_that_others_build_on_and_one_that_is_not_stored_are_missing(root: Path) -> None:
    first, second = [row["snapshot_id"] for row in rows(open_warehouse(root), "judged") if row["cluster_id"] == "eu"][
        :2
    ]
    without_row_of(root, "judged", first)
    put_into_force(open_warehouse(root), "judged")
    loose = WarehouseProblem(
        "missing-rows",
        f"1 snapshots have rows that differ from those of a snapshot that has none ({second})",
        f"rackspan pipeline rebuild --warehouse {root}",
        "judged",
    )
    assert checked(root).problems == (loose,)
    for name in OF_SNAPSHOTS:
        without_row_of(root, name, second)
    gone, *_ = [one for one in checked(root).problems if one != loose]
    assert (gone.kind, gone.table) == ("missing-rows", "judged")
    assert gone.problem == f"1 snapshots that are not stored any more ({second})"
    assert gone.remedy.startswith(f"rackspan pipeline maintain --drop-damaged --warehouse {root} gives up")


@pytest.mark.parametrize("table", ["partition_durability", "outage_impact"])
def test_a_judged_snapshot_without_rows_is_a_problem_of_the_table(root: Path, table: str) -> None:
    snapshot_id = next(row["snapshot_id"] for row in rows(open_warehouse(root), "judged"))
    without_row_of(root, table, snapshot_id)
    put_into_force(open_warehouse(root), table)
    line = f"1 judged snapshots have other rows than they should ({snapshot_id})"
    remedy = f"rackspan pipeline rebuild {table} --warehouse {root}"
    assert checked(root).problems == (WarehouseProblem("missing-rows", line, remedy, table),)


def test_a_folder_without_tables_is_not_checked_and_one_without_snapshots_is_late(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidWarehouse, match=r"not a warehouse \(it has no table snapshots\); fill one with rackspan "
    ):
        checked(tmp_path)
    create_warehouse(tmp_path)
    assert checked(tmp_path).problems == ()
    [late] = checked(tmp_path, max_age=timedelta(hours=1)).problems
    assert (late.kind, late.problem) == ("late", "no snapshot of any cluster")


@pytest.mark.parametrize(
    ("table", "remedy"),
    [
        ("brokers", "copy its folder _delta_log back from a backup: no command can make it again"),
        ("findings", "rackspan pipeline rebuild findings --warehouse "),
    ],
)
def test_a_log_that_is_no_log_is_a_problem_with_what_brings_it_back(root: Path, table: str, remedy: str) -> None:
    (root / "tables" / table / "_delta_log" / f"{0:020}.json").write_text('{"protocol": {}}')
    [problem, *_] = checked(root).problems
    assert (problem.kind, problem.table) == ("unreadable-log", table)
    assert "cannot be read as a Delta table" in problem.problem
    assert problem.remedy == remedy + (str(root) if remedy.endswith(" ") else "")


@pytest.mark.parametrize("part", [".", "_delta_log"])
@pytest.mark.parametrize(("table", "count"), [("brokers", 18), ("topics", 6), ("partitions", 12)])
def test_a_landing_table_that_is_gone_is_a_problem_and_nothing_makes_it_anew_and_empty(
    root: Path, tmp_path: Path, table: str, count: int, part: str
) -> None:
    """Six snapshots of three brokers, one topic and two partitions, each stored whole or as it changed."""
    gone = root / "tables" / table / part
    rows_there = existing_table(named_warehouse(root), table).to_pyarrow_table().num_rows
    assert rows_there <= count
    backup = shutil.move(gone, tmp_path / "backup")
    for whole in (False, True):
        [problem] = checked(root, whole=whole).problems
        assert problem.problem == f"it is gone, and the stored snapshots have {rows_there} rows in it"
        assert problem.remedy == "copy its folder _delta_log back from a backup: no command can make it again"
    for use in (create_warehouse, repaired_warehouse):
        with pytest.raises(
            InvalidWarehouse, match=f"its table {table} is gone.* have {rows_there} rows; copy its folder back"
        ):
            use(root)
    assert not (root / "tables" / table / "_delta_log").exists()
    shutil.move(backup, gone)
    assert checked(root, whole=True).problems == ()


def test_a_table_of_the_markers_that_is_gone_is_a_problem(root: Path) -> None:
    shutil.rmtree(root / "tables" / "snapshots" / "_delta_log")
    [problem] = checked(root).problems
    assert (problem.kind, problem.table) == ("unreadable-log", "snapshots")
    assert problem.problem.startswith("it is gone, and the other tables have ")


@pytest.mark.parametrize("content", ["nothing", "an earlier run"])
def test_without_the_row_of_the_newest_run_every_derived_table_is_rebuilt(root: Path, content: str) -> None:
    newest, earlier = newest_file(root, "runs"), min((root / "tables" / "runs").glob("*.parquet"), key=by_time)
    newest.write_bytes(b"" if content == "nothing" else earlier.read_bytes())
    [problem] = checked(root).problems
    assert (problem.kind, problem.table) == ("damaged-file", "runs")
    assert newest.name in problem.problem
    assert ("it has other rows than its log says" in problem.problem) is (content != "nothing")
    assert problem.remedy == f"rackspan pipeline rebuild --warehouse {root}"
    carried_out(problem.remedy, root)
    assert checked(root, whole=True).problems == ()
    check_tables(open_warehouse(root), SNAPSHOTS)


def test_a_torn_row_of_a_run_before_the_newest_is_found_too(root: Path) -> None:
    earlier = min((root / "tables" / "runs").glob("*.parquet"), key=by_time)
    emptied(earlier)
    [problem] = checked(root).problems
    assert (problem.kind, problem.table) == ("damaged-file", "runs")
    assert earlier.name in problem.problem
    before = [row["run_id"] for row in rows(open_warehouse(root), "judged")]
    carried_out(problem.remedy, root)
    assert checked(root, whole=True).problems == ()
    # Nothing is judged again.
    assert [row["run_id"] for row in rows(open_warehouse(root), "judged")] == before


def test_a_bad_block_in_a_column_of_judged_is_found_and_rebuilt(root: Path) -> None:
    zeros_in_column(newest_file(root, "judged"), "base_id")
    [problem] = checked(root).problems
    assert (problem.kind, problem.table) == ("damaged-file", "judged")
    carried_out(problem.remedy, root)
    assert checked(root, whole=True).problems == ()
    check_tables(open_warehouse(root), SNAPSHOTS)


def by_time(file: Path) -> int:
    return file.stat().st_mtime_ns


def put_into_force(warehouse: Warehouse, table: str) -> None:
    """A run that names the newest version of a table."""
    last = last_run(warehouse)
    assert last is not None
    versions = {**last.versions, table: int(existing_table(warehouse, table).version())}
    made = replace(last, number=last.number + 1, versions=versions)
    commit_run(warehouse, existing_table(warehouse, "runs"), made)


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


def in_a_table_each(kinds: Sequence[Callable[..., Any]], tables: Sequence[str], stride: int = 1) -> list[Any]:
    """Each kind of damage, or one in `stride`, in one table, each in another, in make test; every pair in make soak."""
    return [
        pytest.param(
            table,
            kind,
            id=f"{table}-{kind.__name__}",
            marks=[] if number % stride == 0 and at == number * len(tables) // len(kinds) else pytest.mark.soak,
        )
        for number, kind in enumerate(kinds)
        for at, table in enumerate(tables)
    ]


@pytest.mark.parametrize(("table", "harm"), in_a_table_each(HARMS, (*OF_SNAPSHOTS, *TABLES, *HISTORY)))
def test_each_remedy_for_a_damaged_file_leaves_a_clean_warehouse(
    root: Path, table: str, harm: Callable[[Path], None]
) -> None:
    harm(newest_file(root, table))
    assert cleaned(root, refresh)[0].table == table
    left = (
        [one for one in SNAPSHOTS if one not in ROUNDS[2]]
        if table in ("brokers", "topics", "partitions")
        else SNAPSHOTS
    )
    stored = {(row["cluster_id"], row["taken_at"]) for row in rows(open_warehouse(root), "snapshots")}
    assert len(stored) == len(left)
    if table != "snapshots":
        check_tables(open_warehouse(root), left)


@pytest.mark.parametrize("table", rarely("findings", "outage_impact", "drift", "brokers", "topics"))
def test_each_remedy_for_a_torn_log_leaves_a_clean_warehouse_with_everything(root: Path, table: str) -> None:
    entry = newest_entry(root, table)
    entry.write_bytes(entry.read_bytes()[:100])
    [problem, *_] = checked(root).problems
    assert (problem.kind, problem.table) == ("torn-log", table)
    carried_out(problem.remedy, root)
    assert checked(root, whole=True).problems == ()
    check_tables(open_warehouse(root), SNAPSHOTS)


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


def test_snapshots_around_a_damaged_one_are_judged_again_without_its_file(tmp_path: Path) -> None:
    made = create_warehouse(tmp_path / "warehouse")
    for hour in range(3):
        store_all([small(taken_at=NOON + timedelta(hours=hour))], made)
    refresh(made)
    file = sorted(Path(made.table("partitions")).rglob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)[1]
    emptied(file)
    report = checked(Path(made.root), whole=True)
    assert {problem.kind for problem in report.problems} == {"damaged-file", "quarantined"}


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
    assert (report.snapshots, report.up_to_date) == (0, len(SNAPSHOTS))
    check_tables(open_warehouse(root), SNAPSHOTS)


def test_what_the_ids_of_a_file_do_not_show_quarantines_its_snapshots_too(root: Path) -> None:
    """A block of zeros in another column is found once the build fails."""
    late = small("eu", NOON + timedelta(hours=40), 3)
    store_all([late, small("us", NOON + timedelta(hours=41), 3)], open_warehouse(root))
    zeros_in_column(newest_file(root, "partitions"), "leader")
    report = refresh(open_warehouse(root))
    assert (report.snapshots, len(report.quarantined)) == (0, 2)
    check_tables(open_warehouse(root), SNAPSHOTS)


def test_markers_that_are_damaged_once_a_follow_has_read_them_are_left_out_of_its_next_batch(root: Path) -> None:
    following = replace(open_warehouse(root), read=FilesRead())
    store_all([small("eu", NOON + timedelta(hours=30), 3)], following)
    assert refresh(following).snapshots == 1
    file = newest_file(root, "snapshots")
    half(file)
    store_all([small("eu", NOON + timedelta(hours=31), 2)], following)
    report = refresh(following)
    assert (report.snapshots, [file.name in why for why in report.quarantined.values()]) == (1, [True])
    assert refresh(following).snapshots == 0


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
