"""Tables that an earlier rackspan made, with fewer columns than this one writes."""

from datetime import date
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.table import TableAlterer

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.append import append, commit
from rackspan.pipeline.delta.replace import joined
from rackspan.pipeline.delta.table import add_columns, create_table, data_files

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


@pytest.mark.parametrize("newest_first", [False, True])
def test_files_of_both_are_joined(evolved: DeltaTable, newest_first: bool) -> None:
    files = sorted(data_files(evolved), key=lambda file: file.least or "", reverse=newest_first)
    commit(evolved, [joined(evolved, files)], {}, removed=files, data_change=False)
    (file,) = data_files(evolved)
    assert file.rows == 2
    assert rows_by_duckdb(evolved) == ROWS


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
