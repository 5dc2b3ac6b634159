"""Commits to a Delta table: names new Parquet files, flushed before, and the files they replace.

Constraints: a file is on the disk before a commit names it, and the commit is on the disk before `commit` returns; a transaction
that another writer committed meanwhile makes the commit fail. Pyarrow or Spark writes the files, `local_disk` flushes them,
delta-rs commits; on an object store a finished upload is durable, so nothing is flushed. delta-rs itself flushes nothing.
Source: Delta protocol, "Transaction Identifiers", "Add File and Remove File". Tests: tests/pipeline/delta/test_power_cut.py.
"""

import json
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.local_disk import ACTION_COUNT, flush_file, flush_log
from rackspan.pipeline.delta.table import DataFile, filesystem_of, local_folder, one_line

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

VERSIONS_PER_CHECKPOINT: Final = 50
ROW_GROUP_ROWS: Final = 100_000
STATISTIC_LENGTH_MAX: Final = 32
"""Characters of a text that statistics hold, as those of Spark and of delta-rs do by default."""
LAST_CHARACTER: Final = "\U0010ffff"
"""Greater than every character of a text that was cut off here (Delta protocol, "Per-file Statistics")."""


CONSTRAINT: Final = "delta.constraints."
"""The beginning of the property that holds a CHECK constraint (Delta protocol, "CHECK Constraints")."""


class ConcurrentTransactionError(Exception):
    """Another writer committed the same transaction, so nothing was committed."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file that no version of its table names yet. `path` is below the table; `stats` as in an `add` action."""

    path: str
    day: date | None
    size_bytes: int
    stats: Mapping[str, Any]

    @property
    def rows(self) -> int:
        return int(self.stats["numRecords"])


def append(table: "DeltaTable", rows: pa.Table, transactions: Mapping[str, int], *, run_id: str | None = None) -> None:
    """Commit rows to a table, one file for each value of `day` where the table has that column.

    `transactions` maps application ids to versions. The table object is at the new version afterwards. Errors:
    ConcurrentTransactionError; InvalidWarehouse where nothing can be written.
    """
    commit(table, new_files(table, rows), transactions, run_id=run_id)


def new_files(table: "DeltaTable", rows: pa.Table) -> list[NewFile]:
    """Write rows as data files that no version of the table names yet, one for each day. Errors: InvalidWarehouse."""
    filesystem = filesystem_of(table)
    parts = (
        [(day, rows.filter(pc.equal(rows["day"], day)).drop_columns("day")) for day in _days(rows)]
        if "day" in rows.column_names
        else [(None, rows)]
    )
    added = []
    try:
        for day, part in parts:
            path = new_path(day)
            if day is not None:
                filesystem.create_dir(f"day={day.isoformat()}")
            with filesystem.open_output_stream(path) as out:
                pq.write_table(part, out, compression="zstd", row_group_size=ROW_GROUP_ROWS)
            added.append(NewFile(path, day, filesystem.get_file_info(path).size, statistics(part)))
    except OSError as error:
        raise _not_written(table, error) from None
    return added


def commit(
    table: "DeltaTable",
    added: Sequence[NewFile],
    transactions: Mapping[str, int],
    *,
    removed: Sequence[DataFile] = (),
    run_id: str | None = None,
    data_change: bool = True,
) -> None:
    """Make `added` part of the table and `removed` none of it, in one commit. Errors: as `append`.

    `added` hold rows that the table had already where `data_change` is false, so that streams pass over them.
    """
    from deltalake import CommitProperties, PostCommitHookProperties, Transaction
    from deltalake.exceptions import CommitFailedError, DeltaError

    _refuse_constraints(table)
    folder = local_folder(table.table_uri)
    now_ms = time.time_ns() // 1_000_000
    actions = _actions(added, removed, now_ms, data_change=data_change)
    try:
        if folder is not None:
            for file in added:
                flush_file(folder, file.path)
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=CommitProperties(
                custom_metadata={
                    ACTION_COUNT: str(len(actions) + len(transactions)),
                    **({} if run_id is None else {"userMetadata": run_id}),
                },
                app_transactions=[Transaction(name, version, now_ms) for name, version in transactions.items()],
            ),
            # A checkpoint that a power cut tears must not be the only copy of what it holds: see local_disk.
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except CommitFailedError as error:
        if "oncurrent" in str(error):
            raise ConcurrentTransactionError(str(error)) from None
        raise InvalidWarehouse(f"{table.table_uri}: cannot be written: {one_line(error)}") from None
    except (DeltaError, OSError) as error:
        raise _not_written(table, error) from None
    _make_durable(table, folder)


def _make_durable(table: "DeltaTable", folder: Path | None) -> None:
    """Flush the log of a committed version, load it, and write its checkpoint if one is due. Errors: InvalidWarehouse."""
    from deltalake.exceptions import DeltaError

    try:
        if folder is not None:
            flush_log(folder)
        table.update_incremental()
        if table.version() % VERSIONS_PER_CHECKPOINT == 0:
            table.create_checkpoint()
            if folder is not None:
                flush_log(folder)
    except (DeltaError, OSError) as error:
        raise _not_written(table, error) from None


def _actions(
    added: Sequence[NewFile], removed: Sequence[DataFile], now_ms: int, *, data_change: bool
) -> "list[AddAction | RemoveAction]":
    from deltalake.transaction import AddAction, RemoveAction

    return [
        *(
            AddAction(file.path, file.size_bytes, _values(file.day), now_ms, data_change, json.dumps(file.stats))
            for file in added
        ),
        *(RemoveAction(file.path, data_change, now_ms, None, _values(file.day)) for file in removed),
    ]


def _refuse_constraints(table: "DeltaTable") -> None:
    """A CHECK constraint binds every writer, and is an SQL expression, which nothing here evaluates."""
    names = sorted(key.removeprefix(CONSTRAINT) for key in table.metadata().configuration if key.startswith(CONSTRAINT))
    if names:
        raise InvalidWarehouse(
            f"{table.table_uri}: somebody added CHECK constraint {', '.join(names)}, which rackspan cannot check; "
            f"drop it (alter table ... drop constraint {names[0]}), or check a view instead"
        )


def new_path(day: date | None) -> str:
    """A path below the table that no file has."""
    return f"{'' if day is None else f'day={day.isoformat()}/'}part-{secrets.token_hex(16)}.parquet"


def _values(day: date | None) -> dict[str, str | None]:
    return {} if day is None else {"day": day.isoformat()}


def _not_written(table: "DeltaTable", error: Exception) -> InvalidWarehouse:
    return InvalidWarehouse(f"{table.table_uri}: cannot be written: {one_line(error)}; make room or rights")


def statistics(part: pa.Table) -> dict[str, Any]:
    """The statistics of a data file by which readers skip it (Delta protocol, "Per-file Statistics"), of every plain column.

    A column without any must not be: delta-rs takes unknown ends for null, and a filter of a dataset then skips the whole file.
    """
    stats = _no_statistics(len(part))
    for field in part.schema:
        if not pa.types.is_nested(field.type):
            column = part.column(field.name)
            ends = pc.min_max(column).as_py()
            _add_statistics(stats, field.name, column.null_count, ends["min"], ends["max"])
    return stats


def statistics_of_file(metadata: pq.FileMetaData) -> dict[str, Any]:
    """The same of a Parquet file that is written, from its footer alone."""
    stats = _no_statistics(metadata.num_rows)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for place in range(metadata.num_columns if groups else 0):
        name = metadata.schema.column(place).path
        if "." in name:
            continue  # Inside a list, a map or a struct.
        chunks = [group.column(place) for group in groups if group.num_rows]
        found = [chunk.statistics for chunk in chunks]
        with_ends = [column for column in found if column.has_min_max]
        least = min((column.min for column in with_ends), default=None)
        most = max((column.max for column in with_ends), default=None)
        nulls = sum(column.null_count for column in found)
        if any(
            not column.has_min_max and column.null_count < chunk.num_values
            for column, chunk in zip(found, chunks, strict=True)
        ):
            # A text of more than 4 kB, of which a footer has no ends.
            least, most = "", LAST_CHARACTER
        _add_statistics(stats, name, nulls, least, most)
    return stats


def _no_statistics(rows: int) -> dict[str, Any]:
    return {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": {}}


def _add_statistics(stats: dict[str, Any], name: str, nulls: int, least: Any, most: Any) -> None:
    stats["nullCount"][name] = nulls
    if least is None:
        return
    if isinstance(least, datetime):
        # Statistics have milliseconds; a maximum that is cut off would hide rows.
        least, most = _millis(least), _millis(most + timedelta(microseconds=999))
    elif isinstance(least, date):
        least, most = least.isoformat(), most.isoformat()
    elif isinstance(least, str):
        least = least[:STATISTIC_LENGTH_MAX]
        most = most if len(most) <= STATISTIC_LENGTH_MAX else most[:STATISTIC_LENGTH_MAX] + LAST_CHARACTER
    stats["minValues"][name], stats["maxValues"][name] = least, most


def _days(rows: pa.Table) -> Iterable[date]:
    days: list[date] = pc.unique(rows["day"]).to_pylist()
    return sorted(days)


def _millis(at: datetime) -> str:
    at = at.astimezone(UTC)
    return f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}.{at.microsecond // 1000:03}Z"
