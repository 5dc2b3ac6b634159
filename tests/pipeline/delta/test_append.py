"""What is on the disk when a commit names it; cuts at every flush are in test_power_cut.py."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta import append as module
from rackspan.pipeline.delta.append import append
from rackspan.pipeline.delta.table import create_table
from tests.pipeline.delta.test_power_cut import Disk, observed
from tests.pipeline.examples import NOON

ROWS = pa.table({"day": [NOON.date(), NOON.date() + timedelta(days=1)], "name": ["a", "b"]})


@pytest.mark.parametrize("by_day", [True, False])
def test_files_are_on_the_disk_before_a_commit_names_them_and_the_commit_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_day: bool
) -> None:
    folder = tmp_path / "table"
    rows = ROWS if by_day else ROWS.drop_columns("day")
    create_table(str(folder), rows.schema, by_day=by_day)
    table, disk = DeltaTable(folder), Disk(tmp_path)
    write = DeltaTable.create_write_transaction
    named: list[str] = []

    def checked(self: DeltaTable, actions: list[Any], *words: Any, **options: Any) -> None:
        for action in actions:
            file = folder / action.path
            assert disk.content[file] == file.read_bytes()
            for above in (file.parent, folder):
                assert {entry.name for entry in above.iterdir()} <= disk.names[above]
            named.append(action.path)
        write(self, actions, *words, **options)

    monkeypatch.setattr(DeltaTable, "create_write_transaction", checked)
    with observed(disk, monkeypatch, lambda: None):
        append(table, rows, {"somebody": 7})
    assert len(named) == (2 if by_day else 1)
    entry = folder / "_delta_log" / f"{1:020}.json"
    assert disk.content[entry] == entry.read_bytes()
    assert entry.name in disk.names[entry.parent]
    assert (table.version(), table.transaction_version("somebody")) == (1, 7)
    assert sorted(DeltaTable(folder).to_pyarrow_table()["name"].to_pylist()) == ["a", "b"]


@pytest.mark.parametrize("step", ["update_incremental", "create_checkpoint"])
def test_a_store_that_fails_after_a_commit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    create_table(str(tmp_path / "table"), ROWS.schema, by_day=True)
    table = DeltaTable(tmp_path / "table")

    def full(*_words: Any, **_options: Any) -> None:
        raise DeltaError("No space left on device")

    monkeypatch.setattr(module, "VERSIONS_PER_CHECKPOINT", 1)
    monkeypatch.setattr(DeltaTable, step, full)
    with pytest.raises(
        InvalidWarehouse, match=r"table/?: cannot be written: No space left on device; make room or rights$"
    ):
        append(table, ROWS, {})
    monkeypatch.undo()
    assert DeltaTable(tmp_path / "table").to_pyarrow_table().num_rows == len(ROWS)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (CommitFailedError("No rights"), r"table/?: cannot be written: No rights$"),
        (
            DeltaError("No space left on device"),
            r"table/?: cannot be written: No space left on device; make room or rights$",
        ),
        (
            OSError("No space left on device"),
            r"table/?: cannot be written: No space left on device; make room or rights$",
        ),
    ],
)
def test_a_commit_that_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    create_table(str(tmp_path / "table"), ROWS.schema, by_day=True)
    table = DeltaTable(tmp_path / "table")

    def fail(*_words: Any, **_options: Any) -> None:
        raise error

    monkeypatch.setattr(DeltaTable, "create_write_transaction", fail)
    with pytest.raises(InvalidWarehouse, match=line):
        append(table, ROWS, {})
