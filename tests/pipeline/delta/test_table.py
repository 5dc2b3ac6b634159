"""Tables that an earlier rackspan made, or that others have changed; and what catalogs see of a table."""

import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures
from deltalake.table import TableAlterer

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import create_warehouse
from rackspan.pipeline.delta.append import NewFile, append, commit, statistics, statistics_of_file
from rackspan.pipeline.delta.replace import joined, without_rows
from rackspan.pipeline.delta.table import _groups_with, add_columns, create_table, data_files, open_table, read_files
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.judging.task import judged_rows
from rackspan.pipeline.judging.tasks import judge_tasks
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.schemas import LANDING, PARTITIONS, TABLES
from rackspan.pipeline.table import rows
from tests.pipeline.examples import small

EARLIER = pa.schema([("snapshot_id", pa.string()), ("day", pa.date32())])
LATER = pa.schema([*EARLIER, pa.field("racks", pa.list_(pa.string()), nullable=False)])
DAY = date(2026, 11, 22)


def written(url: str, schema: pa.Schema, **values: object) -> DeltaTable:
    """The table with one more row, as the rackspan of this schema writes it."""
    create_table(url, schema, by_day=True)
    table = DeltaTable(url)
    append(table, pa.Table.from_pylist([{"day": DAY, **values}], schema), {})
    return table


@pytest.fixture
def evolved(tmp_path: Path) -> DeltaTable:
    url = str(tmp_path / "table")
    written(url, EARLIER, snapshot_id="a")
    return written(url, LATER, snapshot_id="b", racks=["r1"])


def rows_by_duckdb(table: DeltaTable) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        connection.register("found", table.to_pyarrow_dataset())
        return connection.execute("select snapshot_id, racks from found order by all").fetchall()


ROWS = [("a", None), ("b", ["r1"])]


def test_a_new_column_is_in_the_table_and_null_in_the_rows_so_far(evolved: DeltaTable) -> None:
    assert rows_by_duckdb(evolved) == ROWS
    assert polars.read_delta(evolved.table_uri).select("snapshot_id", "racks").sort("snapshot_id").rows() == ROWS
    version = evolved.version()
    create_table(evolved.table_uri, LATER, by_day=True)
    assert DeltaTable(evolved.table_uri).version() == version
    assert (evolved.protocol().min_reader_version, evolved.protocol().min_writer_version) == (1, 2)


def test_an_earlier_rackspan_writes_beside_a_later_one(evolved: DeltaTable) -> None:
    table = written(evolved.table_uri, EARLIER, snapshot_id="c")
    rows = pa.table(table.to_pyarrow_table()).sort_by("snapshot_id").select(["snapshot_id", "racks"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [*ROWS, ("c", None)]


def test_a_checkpoint_has_the_transactions_of_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stored snapshot has one: a table's checkpoints would have all of a week."""
    url, now = str(tmp_path / "table"), time.time_ns()
    create_table(url, EARLIER, by_day=True)
    for minutes in (120, 50):
        then = now - minutes * 60 * 1_000_000_000
        monkeypatch.setattr(time, "time_ns", lambda then=then: then)
        rows = pa.Table.from_pylist([{"snapshot_id": f"{minutes}", "day": DAY}], EARLIER)
        append(DeltaTable(url), rows, {f"{minutes} minutes": 1})
    DeltaTable(url).create_checkpoint()
    read = DeltaTable(url)
    assert (read.transaction_version("120 minutes"), read.transaction_version("50 minutes")) == (None, 1)
    assert read.to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize("newest_first", [False, True])
def test_files_of_both_are_joined(evolved: DeltaTable, newest_first: bool) -> None:
    files = sorted(data_files(evolved), key=lambda file: file.least or "", reverse=newest_first)
    commit(evolved, [joined(evolved, files)], {}, removed=files, data_change=False)
    (file,) = data_files(evolved)
    assert file.rows == 2
    assert rows_by_duckdb(evolved) == ROWS


def test_rows_of_snapshots_that_a_damaged_file_may_hold_are_left_out_of_others_of_its_day(tmp_path: Path) -> None:
    url = str(tmp_path / "table")
    create_table(url, EARLIER, by_day=True)
    table = DeltaTable(url)
    for day, ids in ((DAY, "bd"), (DAY, "abcde"), (DAY.replace(day=23), "bcd")):
        append(table, pa.Table.from_pylist([{"snapshot_id": one, "day": day} for one in ids], EARLIER), {})
    [damaged] = [file for file in data_files(table) if file.rows == 2]
    others = [file for file in data_files(table) if file != damaged]
    read = pa.Table.from_batches(read_files(table, others, EARLIER, left_out=[damaged]))
    found = sorted(zip(read["day"].to_pylist(), read["snapshot_id"].to_pylist(), strict=True))
    assert found == [(DAY, "a"), (DAY, "e"), *((DAY.replace(day=23), one) for one in "bcd")]


def test_processes_that_add_columns_at_once_add_each_once(evolved: DeltaTable) -> None:
    here, there = DeltaTable(evolved.table_uri), DeltaTable(evolved.table_uri)
    size, leader = pa.field("size_bytes", pa.int64()), pa.field("leader", pa.int32())
    assert add_columns(there, pa.schema([*LATER, leader])) == 1
    assert add_columns(here, pa.schema([*LATER, size, leader])) == 1
    names = ["snapshot_id", "day", "racks", "leader", "size_bytes"]
    assert [field.name for field in DeltaTable(evolved.table_uri).schema().fields] == names


def test_a_column_that_cannot_be_added_is_named(evolved: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_words: object, **_options: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(TableAlterer, "add_columns", full)
    with pytest.raises(InvalidWarehouse, match=r"table/?: leader cannot be added: No space left on device$"):
        add_columns(evolved, pa.schema([("leader", pa.int32())]))


def test_a_check_constraint_of_somebody_else_stops_a_write_in_one_line(evolved: DeltaTable) -> None:
    evolved.alter.add_constraint({"not_b": "snapshot_id <> 'z'"})
    refused = pa.Table.from_pylist([{"snapshot_id": "z", "day": DAY, "racks": []}], LATER)
    with pytest.raises(
        InvalidWarehouse, match="somebody added CHECK constraint not_b, which rackspan cannot check"
    ) as caught:
        append(DeltaTable(evolved.table_uri), refused, {})
    assert "\n" not in str(caught.value)
    assert rows_by_duckdb(DeltaTable(evolved.table_uri)) == ROWS


@pytest.mark.parametrize("with_statistics", [True, False])
def test_row_groups_are_skipped_only_where_their_statistics_leave_out_every_id(
    tmp_path: Path, with_statistics: bool
) -> None:
    """Another program may have written a file anew, without statistics."""
    table = written(str(tmp_path / "table"), EARLIER, snapshot_id="a")
    [file] = data_files(table)
    ids = pa.table({"snapshot_id": list("bbddff")})
    pq.write_table(ids, tmp_path / "table" / file.path, row_group_size=2, write_statistics=with_statistics)
    for wanted, groups in (("d", [1]), ("bf", [0, 2]), ("ace", []), ("c", []), ("bdf", [0, 1, 2])):
        parquet = pq.ParquetFile(tmp_path / "table" / file.path)
        found = list(_groups_with(parquet, "snapshot_id", list(wanted)))
        assert found == (groups if with_statistics else [0, 1, 2]), wanted
        read = pa.Table.from_batches(read_files(table, [file], EARLIER, list(wanted)), EARLIER)
        assert read["snapshot_id"].to_pylist() == [one for one in "bbddff" if one in wanted]


def test_a_disk_that_is_full_is_named_and_nothing_is_committed(
    evolved: DeltaTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_words: Any, **_options: Any) -> None:
        raise OSError(28, "No space left on device")

    before = evolved.version()
    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(InvalidWarehouse, match=r"cannot be written: .*No space left on device.*; make room or rights$"):
        append(evolved, evolved.to_pyarrow_table(), {})
    assert DeltaTable(evolved.table_uri).version() == before


def test_a_table_with_deletion_vectors_is_not_read_as_if_nothing_were_deleted(evolved: DeltaTable) -> None:
    evolved.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(InvalidWarehouse, match="somebody enabled deletionVectors, which rackspan does not read"):
        open_table(evolved.table_uri)


VALUES: Mapping[str, tuple[pa.DataType, list[Any]]] = {
    "text": (pa.string(), ["b", "a", "c"]),
    "long": (pa.string(), ["é" * 40, "x" * 33, "z" * 5_000]),
    "some": (pa.string(), [None, "b", "a"]),
    "nothing": (pa.int32(), [None, None, None]),
    "number": (pa.int64(), [-1, 2**40, 0]),
    "money": (pa.float64(), [0.5, None, -2.0]),
    "flag": (pa.bool_(), [True, None, False]),
    "on": (pa.date32(), [date(2026, 11, 22), date(1999, 1, 1), None]),
    "at": (
        pa.timestamp("us", tz="UTC"),
        [datetime(2026, 11, 22, 1, 2, 3, 999_001, UTC), None, datetime(1999, 1, 1, tzinfo=UTC)],
    ),
    "racks": (pa.list_(pa.string()), [["r1"], [], ["r2"]]),
}


def of_footer(rows: pa.Table) -> Mapping[str, Any]:
    out = pa.BufferOutputStream()
    pq.write_table(rows, out, row_group_size=2)
    return statistics_of_file(pq.read_metadata(pa.BufferReader(out.getvalue())))


@pytest.mark.slow
@pytest.mark.parametrize("of_rows", [statistics, of_footer])
def test_a_filter_on_any_column_finds_its_rows(
    tmp_path: Path, of_rows: Callable[[pa.Table], Mapping[str, Any]]
) -> None:
    """delta-rs takes ends that a file's statistics lack for null, so that no row of the file would pass."""
    rows = pa.table({name: pa.array(values, of) for name, (of, values) in VALUES.items()})
    create_table(str(tmp_path / "t"), rows.schema, by_day=False)
    table = DeltaTable(str(tmp_path / "t"))
    pq.write_table(rows, tmp_path / "t" / "a.parquet")
    commit(table, [NewFile("a.parquet", None, (tmp_path / "t" / "a.parquet").stat().st_size, of_rows(rows))], {})
    dataset, frame = table.to_pyarrow_dataset(), polars.scan_delta(table.table_uri)
    for name, (of, values) in VALUES.items():
        for value in values if name != "racks" else []:
            where = pc.field(name).is_null() if value is None else pc.field(name) == pa.scalar(value, of)
            assert dataset.to_table(filter=where)[name].to_pylist() == [value] * values.count(value), (name, value)
            found = frame.filter(polars.col(name).eq_missing(value)).collect()
            assert found[name].to_list() == [value] * values.count(value), (name, value)
    # A file is still left out where no row can pass.
    assert list(dataset.get_fragments(filter=pc.field("some") > "c")) == []
    assert list(dataset.get_fragments(filter=pc.field("number") > 2**40)) == []


def test_catalogs_see_what_columns_mean_and_which_are_never_null(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "w")
    store_all([small()], warehouse)
    table = DeltaTable(warehouse.table("partitions"))
    assert table.metadata().description == PARTITIONS.meaning
    assert {field.name: (field.nullable, field.metadata) for field in table.schema().fields} == {
        column.name: (column.nullable, {"comment": column.meaning}) for column in PARTITIONS.columns
    }
    [file] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert (file["min.topic"], file["max.topic"]) == ("orders", "orders")


@pytest.mark.slow
def test_rows_that_delta_rs_rewrote_are_read(tmp_path: Path) -> None:
    warehouse = create_warehouse(tmp_path / "w")
    store_all([small("a"), small("b")], warehouse)
    markers = read_markers(warehouse)
    stored = [marker for marker in markers.of_days(markers.count_by_day()) if marker.cluster_id == "b"]
    work = {name: TableWork(table, 0, (0,)) for name, table in TABLES.items()}
    for name in LANDING:
        DeltaTable(warehouse.table(name)).delete("cluster_id = 'a'")
    assert {row["cluster_id"] for name in LANDING for row in rows(warehouse, name)} == {"b"}
    tasks = judge_tasks(warehouse, RunWork("r", tuple(stored), work), RackPolicy())
    assert {snapshot.stored.cluster_id for task in tasks for _, snapshot, _ in judged_rows(task)} == {"b"}


@pytest.mark.parametrize("rewritten", ["first", "last"])
@pytest.mark.parametrize("replace", [True, False], ids=["rows replaced", "files joined"])
def test_times_of_a_file_that_spark_rewrote_stay_those_of_a_delta_table(
    tmp_path: Path, rewritten: str, replace: bool
) -> None:
    """Spark writes them as INT96 in its OPTIMIZE and DELETE, which Arrow reads as nanoseconds of no time zone."""
    at = [datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2026, 11, 22, 12, 0, 0, 1, UTC)]
    schema = pa.schema([*EARLIER, ("taken_at", pa.timestamp("us", tz="UTC"))])
    create_table(str(tmp_path / "table"), schema, by_day=True)
    table = DeltaTable(str(tmp_path / "table"))
    for number, name in enumerate(("a", "b")):
        # A third row beside each, so that replacing it leaves the others.
        ids = [name, f"{name}~"]
        append(table, pa.table({"snapshot_id": ids, "day": [DAY] * 2, "taken_at": [at[number]] * 2}, schema=schema), {})
    files = sorted(data_files(table), key=lambda file: file.least or "")
    by_spark = files[0 if rewritten == "first" else 1]
    own = pq.read_table(tmp_path / "table" / by_spark.path, partitioning=None)
    path = by_spark.path.replace("part-", "spark-")
    pq.write_table(own, tmp_path / "table" / path, use_deprecated_int96_timestamps=True, store_schema=False)
    size = (tmp_path / "table" / path).stat().st_size
    commit(table, [NewFile(path, DAY, size, statistics(own))], {}, removed=[by_spark], data_change=False)

    files = sorted(data_files(table), key=lambda file: file.least or "")
    removed, added = without_rows(table, ["a~", "b~"], (), [DAY]) if replace else (files, [joined(table, files)])
    commit(table, added, {}, removed=removed, data_change=False)
    written_types = {
        pq.read_schema(tmp_path / "table" / file.path).field("taken_at").type for file in data_files(table)
    }
    assert written_types == {pa.timestamp("us", tz="UTC")}
    found = polars.read_delta(str(tmp_path / "table")).sort("snapshot_id").select("snapshot_id", "taken_at").rows()
    assert found == [("a", at[0]), ("b", at[1])] if replace else found[::2] == [("a", at[0]), ("b", at[1])]


def test_a_table_that_cannot_be_created_is_named_unless_somebody_else_has_created_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = DeltaTable.create

    def fail(url: str, *words: Any, **options: Any) -> None:
        if url.endswith("raced"):
            create(url, *words, **options)
        raise OSError("no rights")

    monkeypatch.setattr(DeltaTable, "create", fail)
    with pytest.raises(InvalidWarehouse, match=r"/alone: no table can be created: no rights$"):
        create_table(str(tmp_path / "alone"), EARLIER, by_day=True)
    create_table(str(tmp_path / "raced"), EARLIER, by_day=True)
    assert open_table(str(tmp_path / "raced")) is not None


def test_the_log_of_a_version_is_listed_once(evolved: DeltaTable, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, get_add_actions = list[int](), DeltaTable.get_add_actions

    def counted(table: DeltaTable, flatten: bool = False) -> Any:
        listed.append(table.version())
        return get_add_actions(table, flatten)

    monkeypatch.setattr(DeltaTable, "get_add_actions", counted)
    first, version = data_files(evolved), evolved.version()
    first.clear()
    assert len(data_files(evolved)) == 2
    other = DeltaTable(evolved.table_uri)
    commit(other, [], {}, removed=data_files(other))
    assert len(data_files(evolved)) == 2
    evolved.update_incremental()
    assert data_files(evolved) == data_files(other) == []
    assert listed == [version, version, version + 1, version + 1]


def test_an_entry_without_the_number_of_rows_is_refused(evolved: DeltaTable, tmp_path: Path) -> None:
    """Other programs may leave it out; how many rows a table has would be unknown."""
    entry = max((tmp_path / "table" / "_delta_log").glob("*.json"))
    entry.write_text(entry.read_text().replace('\\"numRecords\\": 1, ', ""))
    with pytest.raises(
        InvalidWarehouse, match="names a data file without its number of rows; rackspan did not write that"
    ):
        data_files(DeltaTable(evolved.table_uri))


def test_a_file_that_is_torn_is_named_by_what_replaces_or_joins_it(evolved: DeltaTable, tmp_path: Path) -> None:
    first, second = data_files(evolved)
    (tmp_path / "table" / second.path).write_bytes(b"PAR1")
    with pytest.raises(InvalidWarehouse, match=rf": {second.path} cannot be compacted: "):
        joined(evolved, [first, second])
    with pytest.raises(InvalidWarehouse, match=rf": {second.path} cannot be replaced: "):
        without_rows(evolved, ["a", "b"], (), [DAY])
