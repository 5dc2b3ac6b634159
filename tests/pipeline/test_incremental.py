"""Everything a run does around Spark, with a build that needs none (plain_build.py)."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rackspan.audit import ClusterPolicies, FleetPolicy, RackPolicy
from rackspan.audit.policy import Survive
from rackspan.errors import InvalidWarehouse
from rackspan.model import ClusterSnapshot, RackId, UnrackedPolicy
from rackspan.pipeline import Warehouse, create_warehouse, incremental, rows, runs, store
from rackspan.pipeline import warehouse as layout
from rackspan.pipeline.delta.append import NewFile, commit
from rackspan.pipeline.delta.table import DataFile, create_table
from rackspan.pipeline.incremental import RunWork
from rackspan.pipeline.landing import markers
from rackspan.pipeline.landing.read import read_snapshots
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.policies import policies_document, policies_of
from rackspan.pipeline.report.from_warehouse import report_data
from rackspan.pipeline.schemas import DERIVED, TABLES, Table
from rackspan.pipeline.warehouse import FilesRead
from tests.depth import at_depth
from tests.pipeline import expected, plain_build
from tests.pipeline.examples import NOON, generated, small
from tests.pipeline.plain_build import refresh

pytestmark = pytest.mark.slow

STRICT = RackPolicy(min_insync_racks=2)
DAY = timedelta(days=1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def at(hours: float, leader: int = 1, cluster_id: str = "one") -> ClusterSnapshot:
    return small(cluster_id, NOON + timedelta(hours=hours), leader)


def check(warehouse: Warehouse, snapshots: list[ClusterSnapshot], policies: ClusterPolicies = RackPolicy()) -> None:
    """Every table has the rows of these snapshots, each once, in order."""
    for name, table in TABLES.items():
        wanted = expected.ordered(expected.table(name, snapshots, policies), table.grain)
        assert expected.judged_columns(rows(warehouse, name)) == wanted, name


def versions(warehouse: Warehouse) -> dict[str, int]:
    return {name: DeltaTable(warehouse.table(name)).version() for name in TABLES}


def drift(warehouse: Warehouse) -> list[tuple[str, str]]:
    return [(row["taken_at"][:13], row["change"]) for row in rows(warehouse, "drift")]


def test_a_table_holds_every_snapshot_once_sorted_by_the_grain(warehouse: Warehouse) -> None:
    number = 40
    snapshots = generated(number)
    store_all(snapshots, warehouse)
    report = refresh(warehouse, STRICT)
    check(warehouse, snapshots, STRICT)
    assert report.snapshots == number
    assert report.rows.keys() >= TABLES.keys()
    assert report.rows == {name: len(list(rows(warehouse, name, changes=True))) for name in report.rows}
    assert len(list(rows(warehouse, "findings", limit=7))) == 7


def test_a_second_run_finds_nothing_to_do_and_commits_nothing(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    before = versions(warehouse)
    second = refresh(warehouse)
    assert (second.run, second.rows, second.up_to_date) == (None, {}, 1)
    assert versions(warehouse) == before


def test_only_new_snapshots_are_judged_even_within_a_day(warehouse: Warehouse) -> None:
    store_all([at(0), at(1)], warehouse)
    first = refresh(warehouse)
    store(at(2, leader=2), warehouse)
    second = refresh(warehouse)
    assert (second.snapshots, second.remade, second.up_to_date) == (1, 0, 2)
    stored = rows(warehouse, "partition_durability", changes=True)
    assert [(row["partition"], row["run_id"]) for row in stored] == [(0, first.run), (1, first.run), (0, second.run)]
    check(warehouse, [at(0), at(1), at(2, leader=2)])


def test_a_run_that_keeps_what_it_reads_opens_each_file_of_markers_once(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a batch of `follow` would read all rounds of its day again, several times."""
    opened: Counter[str] = Counter()

    def counted(module: Any) -> None:
        read = module.read_files

        def read_files(table: DeltaTable, files: Sequence[DataFile], *more: Any) -> Any:
            opened.update(file.path for file in files)
            return read(table, files, *more)

        monkeypatch.setattr(module, "read_files", read_files)

    counted(markers)
    counted(runs)
    keeping = replace(warehouse, read=FilesRead())
    snapshots = [at(hours, leader) for hours, leader in ((0, 1), (0.5, 2), (1.5, 1), (2.5, 2))]
    for snapshot in snapshots:
        # With a period, for which nobody looks at the snapshots before.
        store_all([snapshot], warehouse, period_seconds=1800.0)
        refresh(keeping)
    check(warehouse, snapshots)
    of_markers = {Path(path).name for path in DeltaTable(warehouse.table("snapshots")).file_uris()}
    of_judged = {Path(path).name for path in DeltaTable(warehouse.table("judged")).file_uris()}
    times = {Path(path).name: count for path, count in opened.items()}
    assert {name: times[name] for name in of_markers} == dict.fromkeys(of_markers, 1)
    assert all(times.get(name, 0) <= 1 for name in of_judged)
    assert keeping.read is not None
    assert keeping.read.snapshots
    assert keeping.read.judged


@pytest.mark.parametrize(("runs_before", "builds"), [(0, 1), (1, 2)])
def test_a_build_that_fails_is_tried_again_only_with_what_an_earlier_batch_has_read(
    warehouse: Warehouse, runs_before: int, builds: int
) -> None:
    keeping, tried = replace(warehouse, read=FilesRead()), 0

    def failing(_work: RunWork, _policies: ClusterPolicies) -> Any:
        nonlocal tried
        tried += 1
        raise InvalidWarehouse("Spark stopped")

    store(at(0), warehouse)
    for _ in range(runs_before):
        refresh(keeping)
        store(at(1, leader=2), warehouse)
    with pytest.raises(InvalidWarehouse, match="Spark stopped"):
        refresh(keeping, build=failing)
    assert tried == builds


def test_of_too_many_rows_that_were_read_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "READ_ROWS_MAX", 10)
    files = [DataFile(f"{number}", NOON.date(), 2, f"{number}", f"{number}~") for number in range(6)]
    read: dict[str, Sequence[Any]] = {file.path: [1, 2] for file in files[:5]}
    assert layout.rows_kept(read, files).keys() == {"0", "1", "2", "3", "4"}
    read["5"] = [1, 2]
    read["of an older version"] = [1, 2]
    assert layout.rows_kept(read, files) is read
    assert read.keys() == {"4", "5"}


def test_another_policy_makes_every_snapshot_anew_and_says_how_many(warehouse: Warehouse) -> None:
    store_all([at(0), at(30)], warehouse)
    refresh(warehouse)
    report = refresh(warehouse, STRICT)
    assert (report.snapshots, report.remade, report.reason) == (0, 2, "another policy")
    check(warehouse, [at(0), at(30)], STRICT)


def test_another_version_of_a_table_makes_that_table_alone_anew(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    before = versions(warehouse)
    hashes = runs.made_by

    def made_by(document: Mapping[str, Any], prices: str | None = None) -> dict[str, str]:
        return {**hashes(document, prices), "findings": "1-judged in another way"}

    for module in ("runs", "policies"):
        monkeypatch.setattr(f"rackspan.pipeline.{module}.made_by", made_by)
    report = refresh(warehouse)
    assert (report.remade, report.reason, set(report.rows)) == (1, "another version of findings", {"findings"})
    after = versions(warehouse)
    assert {name for name in TABLES if after[name] != before[name]} == {"findings"}
    check(warehouse, [small()])


def test_an_older_rackspan_does_not_judge_again_what_a_newer_one_has_judged(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(small(), warehouse)
    newer = replace(TABLES["findings"], version=TABLES["findings"].version + 1)
    with monkeypatch.context() as later:
        later.setitem(cast("dict[str, Table]", TABLES), "findings", newer)
        refresh(warehouse)
    store(at(1), warehouse)
    before = versions(warehouse)
    with pytest.raises(
        InvalidWarehouse,
        match=rf"a newer rackspan made the rows of findings \(version {newer.version}; .* rebuild findings",
    ):
        refresh(warehouse)
    assert versions(warehouse) == before
    assert refresh(warehouse, rebuild={"findings"}).reason == "a rebuild of findings"
    check(warehouse, [small(), at(1)])


def test_another_policy_of_one_cluster_makes_its_rows_alone_anew(warehouse: Warehouse) -> None:
    one, two = [at(0), at(25)], [at(0, cluster_id="two"), at(1, cluster_id="two"), at(25, cluster_id="two")]
    store_all([*one, *two], warehouse)
    refresh(warehouse)
    run_ids = run_of_each(warehouse)
    policies = FleetPolicy(by_cluster={"two": STRICT})
    report = refresh(warehouse, policies)
    assert (report.remade, report.reason, report.up_to_date) == (3, "another policy of two", 2)
    check(warehouse, [*one, *two], policies)
    remade = {cluster for (cluster, _), run in run_of_each(warehouse).items() if run not in run_ids.values()}
    assert remade == {"two"}
    assert refresh(warehouse, policies).run is None


def test_one_policy_for_a_cluster_is_the_same_whether_it_is_general_or_the_clusters_own(warehouse: Warehouse) -> None:
    store(at(0), warehouse)
    refresh(warehouse, STRICT)
    assert refresh(warehouse, FleetPolicy(RackPolicy(), {"one": STRICT})).run is None
    assert refresh(warehouse, FleetPolicy(STRICT, {"another": RackPolicy()})).run is None
    assert refresh(warehouse, FleetPolicy(STRICT, {"one": RackPolicy()})).reason == "another policy of one"


def test_a_new_snapshot_beside_a_cluster_of_another_policy_corrects_the_one_after_it(warehouse: Warehouse) -> None:
    """A day of both clusters is replaced in part: rows of the other cluster stay, but for the drift that a late one changes."""
    stored = [at(0), at(2), at(0, cluster_id="two"), at(1, cluster_id="two")]
    store_all(stored, warehouse)
    refresh(warehouse)
    late = at(1, leader=2)
    store(late, warehouse)
    policies = FleetPolicy(by_cluster={"two": STRICT})
    report = refresh(warehouse, policies)
    assert (report.snapshots, report.remade, report.corrected) == (1, 2, 1)
    check(warehouse, [*stored, late], policies)


def run_of_each(warehouse: Warehouse) -> dict[tuple[str, str], str]:
    """The run that made the rows of each snapshot."""
    return {(row["cluster_id"], row["taken_at"]): row["run_id"] for row in rows(warehouse, "partition_durability")}


def test_another_release_alone_makes_nothing_anew(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    monkeypatch.setattr("rackspan.__version__", "99.0.0")
    assert refresh(warehouse).run is None


def test_a_late_snapshot_is_judged_and_corrects_the_drift_of_the_one_after_it_alone(warehouse: Warehouse) -> None:
    snapshots = [at(0), at(2), at(24), at(48)]
    store_all(snapshots, warehouse)
    refresh(warehouse)
    assert drift(warehouse) == []
    before = versions(warehouse)
    late = at(1, leader=2)
    store(late, warehouse)
    assert refresh(warehouse).rows["drift"] == 2
    assert drift(warehouse) == [("2026-11-20T13", "leader-moved"), ("2026-11-20T14", "leader-moved")]
    assert versions(warehouse)["findings"] == before["findings"] + 1
    check(warehouse, [*snapshots, late])
    last = at(30, leader=3)
    store(last, warehouse)
    refresh(warehouse)
    check(warehouse, [*snapshots, late, last])


@pytest.mark.parametrize("seed", range(at_depth(test=1, soak=40)))
def test_snapshots_in_any_order_give_the_tables_of_their_order_in_time(tmp_path: Path, seed: int) -> None:
    warehouse = create_warehouse(tmp_path / "warehouse")
    snapshots = [at(7 * hour, 1 + hour % 3, cluster) for hour in range(9) for cluster in ("a", "b")]
    Random(seed).shuffle(snapshots)
    for start in range(0, len(snapshots), 5):
        store_all(snapshots[start : start + 5], warehouse)
        refresh(warehouse)
    check(warehouse, snapshots)


def test_a_snapshot_is_compared_with_the_last_one_before_it_however_long_ago(warehouse: Warehouse) -> None:
    for snapshot in (at(0), at(24 * 9, 2)):
        store(snapshot, warehouse)
        refresh(warehouse)
    [row] = rows(warehouse, "drift")
    assert (row["change"], row["before"], row["after"]) == ("leader-moved", "1", "2")
    assert row["previous_taken_at"] == "2026-11-20T12:00:00Z"


def test_clusters_of_one_warehouse_are_not_compared_with_each_other(warehouse: Warehouse) -> None:
    store_all([small(cluster, NOON + n * DAY, 1 + n % 2) for n, cluster in enumerate(("a", "b", "c"))], warehouse)
    refresh(warehouse)
    assert drift(warehouse) == []
    store(small("b", NOON + 2 * DAY, leader=1), warehouse)
    refresh(warehouse)
    assert [row["cluster_id"] for row in rows(warehouse, "drift")] == ["b"]


def test_a_duplicate_makes_nothing_anew(warehouse: Warehouse) -> None:
    store_all([at(0), at(1, 2)], warehouse)
    refresh(warehouse)
    assert not store(at(0), warehouse).new
    assert refresh(warehouse).run is None


class KilledError(Exception):
    """Stands for SIGKILL; test_killed.py sends real ones."""


def test_a_run_that_dies_between_two_tables_is_invisible_to_readers_and_taken_back_by_the_next_run(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(at(0), warehouse)
    refresh(warehouse)
    store(at(1, 2), warehouse)
    before = versions(warehouse)
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(runs, "commit", failing_at(3, commit))
            with pytest.raises(KilledError):
                refresh(warehouse)
        assert sum(versions(warehouse)[name] != before[name] for name in TABLES) == 2
        check(warehouse, [at(0)])
    refresh(warehouse)
    check(warehouse, [at(0), at(1, 2)])


def test_a_table_of_an_earlier_rackspan_gets_its_new_column_although_a_killed_run_is_taken_back(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version that is restored is one without the column."""

    def earlier(url: str, schema: pa.Schema, _description: str, *, by_day: bool) -> None:
        lacking = [field for field in schema if field.name != "isr_racks"]
        create_table(url, pa.schema(lacking), by_day=by_day)

    store(at(0), warehouse)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "create_table", earlier)
        refresh(warehouse)
        store(at(1, 2), warehouse)
        patch.setattr(runs, "commit", failing_at(3, commit))
        with pytest.raises(KilledError):
            refresh(warehouse)
    assert "isr_racks" not in columns(warehouse, "partition_durability")
    refresh(warehouse)
    assert columns(warehouse, "partition_durability") == TABLES["partition_durability"].schema.names
    check(warehouse, [at(0), at(1, 2)])


def test_a_table_that_no_run_names_yet_is_taken_back_to_its_beginning(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release adds a table, and its first run dies after that table's commit."""
    store(at(0), warehouse)
    refresh(warehouse)
    last = runs.last_run(warehouse)
    assert last is not None
    versions = {name: version for name, version in last.versions.items() if name != "drift"}
    made_by = {name: made for name, made in last.made_by.items() if name != "drift"}
    earlier = replace(last, number=2, run_id="0000000002-a", versions=versions, made_by=made_by)
    runs.commit_run(warehouse, DeltaTable(warehouse.table("runs")), earlier)
    store(at(24, 2), warehouse)
    with monkeypatch.context() as patch:
        patch.setattr(runs, "add_judged", failing_at(1, runs.add_judged))
        with pytest.raises(KilledError):
            refresh(warehouse)
    refresh(warehouse)
    check(warehouse, [at(0), at(24, 2)])


def columns(warehouse: Warehouse, name: str) -> list[str]:
    names = [field.name for field in DeltaTable(warehouse.table(name)).schema().fields]
    return sorted(names, key=TABLES[name].schema.names.index)


def failing_at(call: int, function: Callable[..., Any]) -> Callable[..., Any]:
    calls = count(1)

    def failing(*words: Any, **options: Any) -> Any:
        if next(calls) == call:
            raise KilledError
        return function(*words, **options)

    return failing


def test_what_a_failed_build_wrote_is_part_of_no_table_and_removed_by_the_next_run(warehouse: Warehouse) -> None:
    def half(work: RunWork, policies: ClusterPolicies) -> dict[str, list[NewFile]]:
        read = read_snapshots(warehouse, work.snapshots)
        for one in list(work.tables.values())[:2]:
            plain_build.write(warehouse, work, one, policies, read)
        raise InvalidWarehouse("Spark stopped")

    store(at(0), warehouse)
    refresh(warehouse)
    store(at(1, 2), warehouse)
    before = versions(warehouse)
    with pytest.raises(InvalidWarehouse, match="Spark stopped"):
        refresh(warehouse, RackPolicy(), half)
    folder = Path(warehouse.table("partition_durability"))
    assert len(list(folder.glob("0000000002-*"))) == 1
    assert versions(warehouse) == before
    check(warehouse, [at(0)])
    report = refresh(warehouse)
    assert [one.name for one in folder.glob("0000000002-*")] == [report.run]
    check(warehouse, [at(0), at(1, 2)])


@pytest.mark.parametrize("when", ["while it is made", "right before its first commit"])
def test_a_run_that_meets_another_ones_commits_counts_for_nothing(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """On an object store there is no lock, so the commits themselves have to show it."""
    mine = plain_build.build_for(warehouse)
    pending = [True]

    def other() -> None:
        if pending:
            pending.clear()
            refresh(warehouse)

    def with_another(work: RunWork, policies: ClusterPolicies) -> Mapping[str, Sequence[NewFile]]:
        files = mine(work, policies)
        if when == "while it is made":
            other()
        return files

    def committed(*words: Any, **options: Any) -> None:
        other()
        return commit(*words, **options)

    monkeypatch.setattr(incremental, "only_run", lambda _warehouse: nullcontext())
    monkeypatch.setattr(runs, "remove_leftovers", lambda _warehouse, _last: None)
    monkeypatch.setattr(runs, "commit", committed)
    store(at(0), warehouse)
    with pytest.raises(InvalidWarehouse, match=r"another rackspan pipeline run wrote its tables at the same time"):
        refresh(warehouse, RackPolicy(), with_another)
    check(warehouse, [at(0)])
    assert len(list(rows(warehouse, "runs"))) == 1
    store(at(1), warehouse)
    refresh(warehouse)
    check(warehouse, [at(0), at(1)])


def test_an_empty_warehouse_has_nothing_to_do(warehouse: Warehouse) -> None:
    assert refresh(warehouse).run is None
    with pytest.raises(InvalidWarehouse, match=r"has no table findings yet; run rackspan pipeline run"):
        rows(warehouse, "findings")


def test_a_cluster_without_topics_counts_as_judged_although_it_has_no_rows(warehouse: Warehouse) -> None:
    [empty] = [one for one in generated(1) if not len(one.partitions)]
    store(empty, warehouse)
    assert refresh(warehouse).snapshots == 1
    assert list(rows(warehouse, "partition_durability")) == []
    assert refresh(warehouse).run is None


def test_the_history_of_runs_is_a_table(warehouse: Warehouse) -> None:
    store(at(0), warehouse)
    refresh(warehouse)
    refresh(warehouse, STRICT)
    first, second = rows(warehouse, "runs")
    assert [first["snapshots"], first["remade"], first["reason"]] == [1, 0, None]
    assert [second["snapshots"], second["remade"], second["reason"]] == [0, 1, "another policy"]
    assert second["versions"].keys() == {*DERIVED, "judged"}
    assert [row["run_id"] for row in rows(warehouse, "judged")] == [first["run_id"]]


def test_a_table_that_is_gone_or_torn_is_named_in_one_line(warehouse: Warehouse) -> None:
    store(small(), warehouse)
    refresh(warehouse)
    folder = Path(warehouse.table("findings"))
    file = next(folder.rglob("part-*.parquet"))
    content = file.read_bytes()
    file.write_bytes(content[:10])
    for read in (
        lambda: list(rows(warehouse, "findings")),
        lambda: list(rows(warehouse, "findings", at=NOON)),
        lambda: report_data(warehouse, RackPolicy()),
    ):
        with pytest.raises(InvalidWarehouse, match=rf"{file.name} cannot be read.*; rackspan pipeline check --whole "):
            read()
    file.unlink()
    with pytest.raises(InvalidWarehouse, match=rf"{file.name} is gone"):
        list(rows(warehouse, "findings"))
    shutil.rmtree(folder)
    with pytest.raises(InvalidWarehouse, match=r"its table findings is gone; put it back, or remove"):
        list(rows(warehouse, "findings"))


def test_the_policies_of_a_run_are_read_from_its_row_again() -> None:
    own = RackPolicy(
        UnrackedPolicy.OWN,
        2,
        {"orders": 3},
        {101: RackId("a")},
        frozenset({4, 5}),
        Survive.BROKER,
        {"audit": Survive.NONE},
        {"orders": (RackId("b"), RackId("a"))},
        True,
        frozenset({RackId("rack1"), RackId("r1")}),
        "rackspan.toml",
    )
    assert len(fields(RackPolicy)) == 11, "give the new one a value that is not its default"
    for policies in (
        RackPolicy(),
        own,
        FleetPolicy(RackPolicy(), {"one": own}),
        FleetPolicy(own, {"one": RackPolicy()}),
    ):
        document = policies_document(policies)
        read = policies_of(json.loads(json.dumps(document)))
        assert {cluster: read.of_cluster(cluster) for cluster in ("one", "two")} == {
            cluster: policies.of_cluster(cluster) for cluster in ("one", "two")
        }


def test_equal_policies_are_stored_as_equal_text(monkeypatch: pytest.MonkeyPatch) -> None:
    stored: list[pa.Table] = []
    monkeypatch.setattr(runs, "append", lambda _table, row, *_, **_named: stored.append(row))
    for topics in ({"audit": 2, "orders": 3}, {"orders": 3, "audit": 2}):
        document = policies_document(RackPolicy(topic_min_insync_racks=topics))
        run = runs.Run(1, "0000000001-a", "run", NOON, NOON, document, {}, {})
        runs.commit_run(Warehouse("unused"), cast("DeltaTable", None), run)
    assert stored[0] == stored[1]
