"""Commits what a run has written for a table, in place of the rows that it replaces, unless somebody else has committed meanwhile."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from rackspan.pipeline import runs as history
from rackspan.pipeline.delta.append import ConcurrentTransactionError, NewFile, commit
from rackspan.pipeline.delta.replace import without_rows
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.warehouse import Warehouse, existing_table


@dataclass(frozen=True, slots=True)
class ReplacedRows:
    """The rows of one table that a run replaces: those of the units `ids` on `days`, and all of `whole_days`."""

    table: Table
    run_id: str
    version: int
    restored: int | None
    ids: Collection[str]
    days: Collection[date]
    whole_days: frozenset[date] = frozenset()
    skip_damaged: bool = False
    """Whether the rows of a damaged file are made again, but for those of snapshots that are not whole."""


def committed(warehouse: Warehouse, replaced: ReplacedRows, number: int, added: Sequence[NewFile]) -> tuple[int, int]:
    """Commit what the build wrote for a table. Returns the table's version, which is on the disk, and the rows written.

    Errors: InvalidWarehouse where somebody else has committed since the run began.
    """
    table = existing_table(warehouse, replaced.table.name)
    if table.version() != replaced.version:
        raise history.concurrent(warehouse)
    expected = replaced.version
    if replaced.restored is not None:
        expected += history.restore(warehouse, table, replaced.table, replaced.restored, replaced.run_id)
    removed, kept = without_rows(
        table, replaced.ids, replaced.whole_days, replaced.days, skip_damaged=replaced.skip_damaged
    )
    if added or removed:
        try:
            commit(table, [*added, *kept], {history.TRANSACTION: number}, removed=removed, run_id=replaced.run_id)
        except ConcurrentTransactionError:
            raise history.concurrent(warehouse) from None
        expected += 1
    if table.version() != expected:
        raise history.concurrent(warehouse)
    return expected, sum(file.rows for file in added)


def standing(warehouse: Warehouse, past: history.RunHistory, table: Table) -> tuple[int, int | None]:
    """The version a derived table was at when the run began, and the one it has to be restored to if a killed run has left rows there."""
    current, named = past.derived[table.name], 0 if past.last is None else past.last.versions.get(table.name, 0)
    version = int(current.version())
    if version == named or history.same_files(current, warehouse, table, named):
        return version, None
    return version, named
