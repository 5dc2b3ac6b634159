"""What a run says it made its tables of, and by which policies; the rest of `runs` is in test_incremental.py."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rackspan.audit import FleetPolicy, RackPolicy
from rackspan.audit.policy import Survive
from rackspan.errors import InvalidWarehouse, WarehouseBusy
from rackspan.model import UnrackedPolicy
from rackspan.pipeline import Warehouse, create_warehouse, runs, store
from rackspan.pipeline.delta.append import ConcurrentTransactionError, commit, new_files
from rackspan.pipeline.delta.table import create_table
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.policies import policies_document, policy_warnings
from rackspan.pipeline.runs import Run
from rackspan.pipeline.schemas import DERIVED, HOURLY, JUDGED, TABLES
from rackspan.pipeline.warehouse import existing_table
from rackspan.traffic import prices_json
from tests.pipeline.examples import NOON, small
from tests.pipeline.hours.prices import PRICES

PLAIN = RackPolicy()
STRICT = RackPolicy(min_insync_racks=2)
RUN = Run(1, "0000000001-a", "run", NOON, NOON, policies_document(PLAIN), {}, {})


def test_tables_made_by_the_policies_of_the_page_need_no_warning() -> None:
    fleet = FleetPolicy(PLAIN, {"b": STRICT})
    assert policy_warnings(replace(RUN, policy=policies_document(fleet)), fleet, ["a", "b"]) == []


def test_a_warning_names_what_differs_and_the_clusters_that_it_is_about() -> None:
    run = replace(RUN, policy=policies_document(FleetPolicy(PLAIN, {"b": STRICT})))
    line = (
        "the tables were made with min_insync_racks 1, the verdicts on the page with min_insync_racks 2; "
        "give run and report the same policy"
    )
    assert policy_warnings(run, STRICT, ["a", "b", "c"]) == [f"a, c: {line}"]
    assert policy_warnings(run, STRICT, ["a", "c"]) == [line]
    other = RackPolicy(UnrackedPolicy.OWN, 2)
    assert policy_warnings(run, other, ["a", "b"]) == [
        "a: the tables were made with unracked shared, min_insync_racks 1, the verdicts on the page with "
        "unracked own, min_insync_racks 2; give run and report the same policy",
        "b: the tables were made with unracked shared, the verdicts on the page with unracked own; "
        "give run and report the same policy",
    ]


def test_a_warning_says_what_a_default_is() -> None:
    policy = RackPolicy(survive=Survive.BROKER, excluded_brokers=frozenset({4}), require_controllers=True)
    assert policy_warnings(RUN, policy, ["a"]) == [
        "the tables were made with excluded_brokers none, survive rack, require_controllers False, the verdicts on the page "
        "with excluded_brokers [4], survive broker, require_controllers True; give run and report the same policy"
    ]


def changed(first: dict[str, str], second: dict[str, str]) -> set[str]:
    assert first.keys() == second.keys() == DERIVED.keys()
    return {name for name in first if first[name] != second[name]}


def test_tables_of_snapshots_follow_the_policy_and_the_bill_and_advice_the_prices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document, prices = policies_document(PLAIN), prices_json(PRICES)
    plain = runs.made_by(document)
    assert len(set(plain.values())) == len(plain)
    assert changed(plain, runs.made_by(policies_document(STRICT))) == set(TABLES)
    assert changed(plain, runs.made_by(document, prices)) == {"bill", "advice"}
    assert changed(plain, runs.made_by(dict(reversed(document.items())))) == set()
    newer = replace(DERIVED["groups"], version=DERIVED["groups"].version + 1)
    monkeypatch.setitem(DERIVED, "groups", newer)
    assert changed(plain, runs.made_by(document)) == {"groups"}
    assert plain["groups"].startswith(f"{newer.version - 1}-")
    assert "groups" in HOURLY


def test_the_prices_of_a_run_are_those_of_its_bill() -> None:
    assert runs.prices_of(None) is None
    assert runs.prices_of(RUN) is None
    assert runs.prices_of(replace(RUN, prices=prices_json(PRICES))) == PRICES


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def test_a_newer_releases_rows_are_refused_unless_they_are_replaced(warehouse: Warehouse) -> None:
    at = DERIVED["findings"].version
    for version, replaced in ((at, ()), (at - 1, ()), (at + 1, ("findings",))):
        runs.refuse_newer_rows(warehouse, replace(RUN, made_by={"findings": f"{version}-0123"}), replaced)
    runs.refuse_newer_rows(warehouse, None, ())
    with pytest.raises(
        InvalidWarehouse, match=rf"a newer rackspan made the rows of findings \(version {at + 1}; this one makes {at}\)"
    ):
        runs.refuse_newer_rows(warehouse, replace(RUN, made_by={"findings": f"{at + 1}-0123"}), ("drift",))


def test_a_commit_of_somebody_else_right_before_that_of_a_run_ends_it(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delta takes both, since neither removes what the other has read: what the run would put into force is not its own."""
    runs.open_history(warehouse)

    def second(table: DeltaTable, *words: Any, **options: Any) -> None:
        commit(DeltaTable(table.table_uri), [], {"theirs": 1})
        commit(table, *words, **options)

    monkeypatch.setattr(runs, "commit", second)
    table = DERIVED["findings"]
    added = new_files(existing_table(warehouse, table.name), pa.Table.from_pylist([{"day": NOON.date()}], table.schema))
    with pytest.raises(WarehouseBusy, match="another rackspan pipeline run wrote its tables at the same time"):
        runs.committed(warehouse, runs.ReplacedRows(table, RUN.run_id, 0, None, (), ()), added)


def test_a_table_without_anything_to_replace_gets_no_version(warehouse: Warehouse) -> None:
    """`follow` would make one of each table with every batch, and every reader would load it."""
    runs.open_history(warehouse)
    replaced = runs.ReplacedRows(DERIVED["findings"], RUN.run_id, 0, None, (), ())
    assert runs.committed(warehouse, replaced, ()) == (0, 0)
    assert existing_table(warehouse, "findings").version() == 0


def test_leftovers_are_those_of_runs_after_the_last_one(warehouse: Warehouse) -> None:
    runs.open_history(warehouse)
    folder = Path(warehouse.table("findings"))
    for number in (1, 2, 3):
        (folder / f"{number:010}-abc" / "day=2026-11-20").mkdir(parents=True)
        (folder / f"{number:010}-abc" / "day=2026-11-20" / "part-0.parquet").touch()
    runs.remove_leftovers(warehouse, replace(RUN, number=2))
    assert sorted(entry.name for entry in folder.glob("0*")) == ["0000000001-abc", "0000000002-abc"]
    (folder / "0000000001-abc" / "day=2026-11-20" / "part-0.parquet").unlink()
    runs.remove_empty_folders(folder)
    assert [entry.name for entry in folder.glob("0*")] == ["0000000002-abc"]
    runs.remove_leftovers(warehouse, None)
    assert not list(folder.glob("0*"))


@pytest.mark.slow
def test_a_table_that_cannot_be_used_is_begun_anew_with_what_earlier_attempts_left(warehouse: Warehouse) -> None:
    runs.open_history(warehouse)
    folder = Path(warehouse.table(JUDGED.name))
    (folder.parent / f".{JUDGED.name}.removed-0123").mkdir()
    (folder / "_delta_log" / f"{0:020}.json").write_text('{"protocol": {}}')
    with pytest.raises(InvalidWarehouse, match=r"rackspan pipeline rebuild --warehouse .* makes it again"):
        runs.open_history(warehouse)
    runs.open_history(warehouse, {JUDGED.name})
    assert existing_table(warehouse, JUDGED.name).version() == 0
    assert not list(folder.parent.glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("nullable", [True, False])
def test_a_table_without_a_column_that_every_row_has_now_is_begun_anew(warehouse: Warehouse, nullable: bool) -> None:
    """A nullable one is added to it instead."""
    of = TABLES["partition_durability"]
    lacking = next(column.name for column in of.columns if column.nullable is nullable and column.name != "day")
    schema = pa.schema([field for field in of.declared if field.name != lacking])
    create_table(warehouse.table(of.name), schema, by_day=True)
    opened = runs.open_history(warehouse)
    runs.commit_run(warehouse, opened.runs, replace(RUN, versions={of.name: 0}))
    shutil.rmtree(warehouse.table(of.name))
    create_table(warehouse.table(of.name), schema, by_day=True)
    opened = runs.open_history(warehouse)
    assert opened.lost == (() if nullable else (of.name,))
    assert opened.lines == (() if nullable else (f"table {of.name}: lost, so its rows are made again",))
    names = {field.name for field in existing_table(warehouse, of.name).schema().fields}
    assert names == {column.name for column in of.columns}


@pytest.mark.slow
def test_a_lost_table_that_only_somebody_else_can_delete_is_named_by_one_run_however_often_it_is_tried(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = runs.open_history(warehouse)
    runs.commit_run(warehouse, opened.runs, replace(RUN, versions={"findings": 0, "drift": 0}))
    Path(warehouse.table("findings"), "_delta_log", f"{0:020}.json").write_text('{"protocol": {}}')
    monkeypatch.setattr(Warehouse, "table_folder", lambda _warehouse, _name: None)
    for _ in range(2):
        with pytest.raises(InvalidWarehouse, match=r"table findings cannot be used; delete everything below"):
            runs.open_history(warehouse, {"findings"})
    last = runs.last_run(warehouse)
    assert last is not None
    assert (last.number, last.versions, last.reason) == (2, {"drift": 0}, "lost: findings")


def test_two_runs_that_record_the_same_snapshots_end_one_of_them(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def conflict(*_words: object, **_options: object) -> None:
        raise ConcurrentTransactionError

    store(small(), warehouse)
    stored = read_markers(warehouse).at([NOON])
    judged = runs.open_history(warehouse).judged
    monkeypatch.setattr(runs, "commit", conflict)
    with pytest.raises(WarehouseBusy, match="another rackspan pipeline run wrote its tables at the same time"):
        runs.add_judged(warehouse, judged, stored, (), {stored[0].snapshot_id: None}, RUN.run_id)


@pytest.mark.slow
def test_a_table_of_runs_whose_rows_cannot_be_read_is_begun_anew_where_it_is_rebuilt(warehouse: Warehouse) -> None:
    runs.commit_run(warehouse, runs.open_history(warehouse).runs, RUN)
    for file in Path(warehouse.table("runs")).glob("*.parquet"):
        file.write_bytes(b"")
    with pytest.raises(InvalidWarehouse):
        runs.open_history(warehouse)
    assert runs.open_history(warehouse, {"runs"}).last is None
    assert existing_table(warehouse, "runs").version() == 0


def test_of_two_runs_of_one_number_the_second_is_refused(warehouse: Warehouse) -> None:
    first, second = (runs.open_history(warehouse).runs for _ in range(2))
    runs.commit_run(warehouse, first, RUN)
    with pytest.raises(WarehouseBusy, match="another rackspan pipeline run wrote its tables at the same time"):
        runs.commit_run(warehouse, second, replace(RUN, run_id="0000000001-b"))
    assert runs.last_run(warehouse) == RUN


def test_a_version_that_is_gone_cannot_be_restored(warehouse: Warehouse) -> None:
    findings = runs.open_history(warehouse).derived["findings"]
    with pytest.raises(InvalidWarehouse, match=r": table findings cannot be restored to version 9: "):
        runs.restore(warehouse, findings, DERIVED["findings"], 9)
