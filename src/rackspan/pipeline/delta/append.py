"""Appends to a Delta table: writes one Parquet file a day, flushes it, and only then commits the names of the files.

Constraints: a file is on the disk before a commit names it, and the commit is on the disk before `append` returns; a transaction
that another writer committed meanwhile makes the commit fail. Method: pyarrow writes the files, `local_disk` flushes them,
delta-rs commits; on an object store a finished upload is durable, so nothing is flushed. delta-rs itself flushes nothing.
Source: Delta protocol, "Transaction Identifiers" and "Add File". Tests: tests/pipeline/delta/test_power_cut.py.
"""

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.delta.local_disk import flush_file, flush_log
from rackspan.pipeline.delta.table import filesystem_of, local_folder, one_line

if TYPE_CHECKING:
    from deltalake import DeltaTable

VERSIONS_PER_CHECKPOINT: Final = 50
ROW_GROUP_ROWS: Final = 100_000
WITH_STATISTICS: Final = ("snapshot_id", "cluster_id", "run_id")
STATISTIC_LENGTH_MAX: Final = 32
"""Longer values would have to be cut, which other engines expect to be done in ways of their own."""


class ConcurrentTransactionError(Exception):
    """Another writer committed the same transaction, so nothing was committed."""


def append(table: "DeltaTable", rows: pa.Table, transactions: Mapping[str, int], *, run_id: str | None = None) -> None:
    """Commit rows to a table, one file for each value of `day` where the table has that column.

    `transactions` maps application ids to versions. The table object is at the new version afterwards. Errors:
    ConcurrentTransactionError; InvalidWarehouse where nothing can be written.
    """
    from deltalake import CommitProperties, PostCommitHookProperties, Transaction
    from deltalake.exceptions import CommitFailedError, DeltaError
    from deltalake.transaction import AddAction, RemoveAction

    filesystem = filesystem_of(table)
    folder = local_folder(table.table_uri)
    now = time.time_ns() // 1_000_000
    by_day = "day" in rows.column_names
    parts = (
        [(day, rows.filter(pc.equal(rows["day"], day)).drop_columns("day")) for day in _days(rows)]
        if by_day
        else [(None, rows)]
    )
    try:
        actions: list[AddAction | RemoveAction] = []
        for day, part in parts:
            path = f"{'' if day is None else f'day={day.isoformat()}/'}part-{secrets.token_hex(16)}.parquet"
            if day is not None:
                filesystem.create_dir(f"day={day.isoformat()}")
            with filesystem.open_output_stream(path) as out:
                pq.write_table(part, out, compression="zstd", row_group_size=ROW_GROUP_ROWS)
            if folder is not None:
                flush_file(folder, path)
            size = filesystem.get_file_info(path).size
            values = {} if day is None else {"day": day.isoformat()}
            actions.append(AddAction(path, size, values, now, True, json.dumps(statistics(part))))
        table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            ["day"] if by_day else None,
            commit_properties=CommitProperties(
                custom_metadata=None if run_id is None else {"userMetadata": run_id},
                app_transactions=[Transaction(name, version, now) for name, version in transactions.items()],
            ),
            # A checkpoint that a power cut tears must not be the only copy of what it holds: see local_disk.
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
    except CommitFailedError as error:
        if "oncurrent transaction" in str(error):
            raise ConcurrentTransactionError(str(error)) from None
        raise InvalidWarehouse(f"{table.table_uri}: cannot be written: {one_line(error)}") from None
    except (DeltaError, OSError) as error:
        raise InvalidWarehouse(
            f"{table.table_uri}: cannot be written: {one_line(error)}; make room or rights"
        ) from None
    if folder is not None:
        flush_log(folder)
    table.update_incremental()
    if table.version() % VERSIONS_PER_CHECKPOINT == 0:
        table.create_checkpoint()
        if folder is not None:
            flush_log(folder)


def statistics(part: pa.Table) -> dict[str, Any]:
    """The statistics of a data file by which readers skip it (Delta protocol, "Per-file Statistics")."""
    stats: dict[str, Any] = {"numRecords": len(part), "minValues": {}, "maxValues": {}, "nullCount": {}}
    for name in (*WITH_STATISTICS, "taken_at"):
        if name not in part.column_names or part[name].null_count or not len(part):
            continue
        ends = pc.min_max(part[name]).as_py()
        least, most = ends["min"], ends["max"]
        if isinstance(least, datetime):
            # Statistics have milliseconds; a maximum that is cut off would hide rows.
            least, most = _millis(least), _millis(most + timedelta(microseconds=999))
        elif max(len(least.encode()), len(most.encode())) > STATISTIC_LENGTH_MAX:
            continue
        stats["minValues"][name], stats["maxValues"][name], stats["nullCount"][name] = least, most, 0
    return stats


def _days(rows: pa.Table) -> Iterable[date]:
    days: list[date] = pc.unique(rows["day"]).to_pylist()
    return sorted(days)


def _millis(at: datetime) -> str:
    at = at.astimezone(UTC)
    return f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}.{at.microsecond // 1000:03}Z"
