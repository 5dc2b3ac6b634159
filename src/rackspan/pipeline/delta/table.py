"""Opens and reads one Delta table with delta-rs: its version, its files with their statistics, and rows of chosen files."""

import os
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rackspan.errors import InvalidWarehouse, UnreadableStore, required_module
from rackspan.pipeline.delta.credentials import redacted
from rackspan.pipeline.delta.local_disk import flush_log

if TYPE_CHECKING:
    from deltalake import DeltaTable

PROPERTIES: Final[Mapping[str, str]] = {
    # They decide between collectors at work at the same time; what was stored before is known by its rows. Each checkpoint has them all.
    "delta.setTransactionRetentionDuration": "interval 1 hours",
    # A collector that stores every 30 s makes 2,880 entries a day; `maintain` removes older ones.
    "delta.logRetentionDuration": "interval 7 days",
}
"""The properties of every table. None of them is a table feature, so every Delta reader can read the tables."""

BATCH_ROWS: Final = 65_536

WITHOUT_TLS: Final = "AWS_ALLOW_HTTP=true"
"""delta-rs requires it beside an AWS_ENDPOINT_URL that begins with http://."""


PATIENCE: Final[Mapping[str, str]] = {
    "timeout": "8s",
    "retry_timeout": "6s",
    "backoff_config.max_backoff": "1s",
}
"""For one request to an object store. Retries begin within 6 s, so a failure is known within 15 s, and two of them within 30 s.

delta-rs itself tries for 180 s. Requests are small: a range of a file, an entry of a log, a part of an upload.
"""

OWN_TIMEOUTS: Final = ("AWS_TIMEOUT", "AZURE_TIMEOUT", "GOOGLE_TIMEOUT")
"""What a user sets `timeout` by in the environment. The others of PATIENCE have no such variable in delta-rs."""

READ_BYTES: Final = 4 * 1024 * 1024
"""In one request, of a file that is read whole."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """One data file of a table version. `least` and `most` are the statistics of a key column, None without any."""

    path: str
    day: date | None
    rows: int
    least: str | None
    most: str | None
    size_bytes: int = 0

    def may_hold(self, least: str, most: str) -> bool:
        """Whether the file can have a row whose key is in [least, most]."""
        return (self.most is None or self.most >= least) and (self.least is None or self.least <= most)


def open_table(url: str, version: int | None = None) -> "DeltaTable | None":
    """The table at a URL, None where there is none.

    Errors: InvalidWarehouse, UnreadableStore; MissingRequirement without deltalake.
    """
    deltalake = require_deltalake()
    from deltalake.exceptions import DeltaError, TableNotFoundError

    try:
        opened: DeltaTable = deltalake.DeltaTable(url, version=version, storage_options=storage_options(url))
    except TableNotFoundError:
        return None
    except OSError as error:
        raise unreadable(url, error) from None
    except (DeltaError, ValueError) as error:
        at = "" if version is None else f" at version {version}"
        raise InvalidWarehouse(f"{url}: cannot be read as a Delta table{at}: {one_line(error)}") from None
    _refuse_reader_features(opened)
    return opened


def renewed(table: "DeltaTable") -> "DeltaTable | None":
    """A table opened before, at its newest version: a tenth of the work of opening it again. Errors: InvalidWarehouse, UnreadableStore.

    None where its folder on the local disk is gone, or holds another table by now.
    """
    from deltalake.exceptions import DeltaError

    folder = local_folder(table.table_uri)
    if folder is not None and not (folder / "_delta_log" / f"{table.version():020}.json").is_file():
        return None
    try:
        table.update_incremental()
    except OSError as error:
        raise unreadable(table.table_uri, error) from None
    except DeltaError as error:
        raise InvalidWarehouse(f"{table.table_uri}: cannot be read as a Delta table: {one_line(error)}") from None
    _refuse_reader_features(table)
    return table


def _refuse_reader_features(table: "DeltaTable") -> None:
    """Data files are read as they are: rows that a deletion vector hides would be read, and renamed columns not found."""
    protocol = table.protocol()
    if protocol.min_reader_version > 1:
        features = ", ".join(sorted(protocol.reader_features or ())) or f"reader version {protocol.min_reader_version}"
        raise InvalidWarehouse(
            f"{table.table_uri}: somebody enabled {features}, which rackspan does not read; drop it with alter table ... drop feature"
        )


def create_table(url: str, schema: pa.Schema, description: str = "", *, by_day: bool) -> None:
    """Create the table at a URL where there is none; add columns to one that an earlier rackspan made. Errors: InvalidWarehouse."""
    deltalake = require_deltalake()
    from deltalake.exceptions import DeltaError

    found = open_table(url)
    if found is not None:
        add_columns(found, schema)
        return
    try:
        deltalake.DeltaTable.create(
            url,
            schema,
            mode="ignore",
            partition_by=["day"] if by_day else None,
            description=description,
            configuration=PROPERTIES,
            storage_options=storage_options(url),
        )
    except (DeltaError, OSError) as error:
        # Another process may have created it meanwhile.
        if open_table(url) is None:
            raise InvalidWarehouse(f"{url}: no table can be created: {one_line(error)}") from None


def add_columns(table: "DeltaTable", schema: pa.Schema) -> int:
    """Add the columns of `schema` that the table lacks; in the rows it has they are null. Returns the number of commits, 0 or 1.

    The table object is at the new version afterwards. Errors: InvalidWarehouse.
    """
    from deltalake import PostCommitHookProperties, Schema
    from deltalake.exceptions import DeltaError

    hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    while missing := _missing_columns(table, schema):
        version = table.version()
        try:
            table.alter.add_columns(Schema.from_arrow(pa.schema(missing)).fields, post_commithook_properties=hooks)
        except (DeltaError, OSError) as error:
            table.update_incremental()
            if table.version() == version:
                names = ", ".join(field.name for field in missing)
                raise InvalidWarehouse(f"{table.table_uri}: {names} cannot be added: {one_line(error)}") from None
            # Another process has committed meanwhile, these columns perhaps.
            continue
        folder = local_folder(table.table_uri)
        if folder is not None:
            flush_log(folder)
        return 1
    return 0


def _missing_columns(table: "DeltaTable", schema: pa.Schema) -> list[pa.Field]:
    known = {field.name for field in table.schema().fields}
    return [field.with_nullable(True) for field in schema if field.name not in known]


def require_deltalake() -> Any:
    """The module deltalake. Errors: MissingRequirement."""
    return required_module("deltalake", "the warehouse is made of Delta tables")


def unit_of(names: Collection[str]) -> str:
    """The column of a table's rows that are written and replaced together: those of a snapshot, or of an hour of a cluster."""
    return next((name for name in ("snapshot_id", "hour_id") if name in names), "run_id")


def data_files(table: "DeltaTable") -> list[DataFile]:
    """Every data file of the table's version, from its log alone, with the statistics of its unit.

    Commands list a table at several places, so the list is kept with the table until it is at another version.
    """
    kept, version = vars(table), table.version()
    if kept.get(_LISTED, (None,))[0] != version:
        kept[_LISTED] = version, _data_files(table)
    return list(kept[_LISTED][1])


_LISTED: Final = "_rackspan_data_files"
"""The attribute of a DeltaTable that has its version and the files of it: a DeltaTable is no key of a dict."""


def _data_files(table: "DeltaTable") -> list[DataFile]:
    from deltalake.exceptions import DeltaError

    try:
        actions = pa.table(table.get_add_actions(flatten=True))
    except OSError as error:
        raise unreadable(table.table_uri, error) from None
    except (DeltaError, ValueError, pa.ArrowException) as error:
        raise InvalidWarehouse(f"{table.table_uri}: its log cannot be read: {one_line(error)}") from None
    names = actions.column_names
    key = unit_of([field.name for field in table.schema().fields])
    if len(actions) and ("num_records" not in names or actions.column("num_records").null_count):
        raise InvalidWarehouse(
            f"{table.table_uri}: its log names a data file without its number of rows; rackspan did not write that entry"
        )

    def column(name: str) -> list[Any]:
        values: list[Any] = actions.column(name).to_pylist() if name in names else [None] * len(actions)
        return values

    return [
        DataFile(*values)
        for values in zip(
            column("path"),
            column("partition.day"),
            column("num_records"),
            column(f"min.{key}"),
            column(f"max.{key}"),
            column("size_bytes"),
            strict=True,
        )
    ]


def marked_versions(table: "DeltaTable", mark: str) -> list[int]:
    """The versions whose commits bear a mark as `userMetadata`, as far back as the log goes. Errors: InvalidWarehouse, UnreadableStore."""
    from deltalake.exceptions import DeltaError

    try:
        return [int(entry["version"]) for entry in table.history() if entry.get("userMetadata") == mark]
    except OSError as error:
        raise unreadable(table.table_uri, error) from None
    except (DeltaError, ValueError) as error:
        raise InvalidWarehouse(f"{table.table_uri}: its log cannot be read: {one_line(error)}") from None


def rows_by_day(files: Iterable[DataFile]) -> Counter[date]:
    """How many rows the files of each day have. Files of a table that is not split by days do not count."""
    counts: Counter[date] = Counter()
    for file in files:
        if file.day is not None:
            counts[file.day] += file.rows
    return counts


def read_files(
    table: "DeltaTable",
    files: Sequence[DataFile],
    schema: pa.Schema,
    ids: Collection[str] | None = None,
    left_out: Sequence[DataFile] = (),
) -> Iterator[pa.RecordBatch]:
    """The columns of `schema` of some data files, row group by row group; only rows of the snapshots `ids`, if given.

    No rows of snapshots that the files `left_out` may hold: a snapshot's rows may be in several files.

    A column that the files do not have yet is null. Errors: InvalidWarehouse, UnreadableStore, naming the file.
    """
    return read_files_at(table.table_uri, files, schema, ids, left_out)


def read_files_at(
    url: str,
    files: Sequence[DataFile],
    schema: pa.Schema,
    ids: Collection[str] | None = None,
    left_out: Sequence[DataFile] = (),
) -> Iterator[pa.RecordBatch]:
    """Read files of the table at a URL, as `read_files` does, without its log. On a local disk it needs pyarrow only."""
    filesystem = filesystem_at(url)
    wanted = None if ids is None else pa.array(sorted(ids), pa.string())
    for file in files:
        try:
            with filesystem.open_input_file(file.path) as opened:
                same_day = [other for other in left_out if other.day == file.day]
                yield from _batches(_parquet(opened, schema), file, schema, wanted, same_day)
        except (OSError, ValueError, pa.ArrowException) as error:
            _refuse_unreadable(filesystem, url, file, error)
            raise InvalidWarehouse(f"{url}: {file.path} cannot be read: {one_line(error)}") from None


def snapshot_counts(table: "DeltaTable", file: DataFile, *, whole: bool = False) -> Counter[str]:
    """How many rows of each snapshot, or hour, a data file has; with `whole`, every column is read.

    Errors: InvalidWarehouse where it is damaged or gone, UnreadableStore where neither is known.
    """
    key = unit_of([field.name for field in table.schema().fields])
    damaged = f"{table.table_uri}: {file.path} is damaged:"
    filesystem = filesystem_of(table)
    try:
        with filesystem.open_input_file(file.path) as opened:
            if file.size_bytes and opened.size() != file.size_bytes:
                raise InvalidWarehouse(f"{damaged} it has {opened.size():,} bytes, its log says {file.size_bytes:,}")
            parquet = pq.ParquetFile(opened, read_dictionary=[key])
            counts: Counter[str] = Counter()
            for batch in parquet.iter_batches(BATCH_ROWS, columns=None if whole else [key]):
                for entry in pc.value_counts(batch.column(key)).to_pylist():
                    counts[entry["values"]] += entry["counts"]
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        _refuse_unreadable(filesystem, table.table_uri, file, error)
        raise InvalidWarehouse(f"{damaged} {one_line(error)}") from None
    if counts.total() != file.rows or not all(file.may_hold(value, value) for value in counts):
        raise InvalidWarehouse(f"{damaged} it has other rows than its log says")
    return counts


def is_damaged(table: "DeltaTable", file: DataFile) -> bool:
    """Whether a data file is gone, has bytes that are no Parquet, or other rows than its log says. Errors: UnreadableStore."""
    try:
        snapshot_counts(table, file, whole=True)
    except InvalidWarehouse:
        return True
    return False


def _refuse_unreadable(filesystem: Any, url: str, file: DataFile, error: Exception) -> None:
    """Distinguish what is damaged from what a store does not give. Errors: UnreadableStore; InvalidWarehouse for a file that is gone.

    Arrow has one kind of error for both. A file is damaged if all of its bytes come, and are wrong; a second look finds it gone.
    """
    if not isinstance(error, OSError):
        return
    try:
        with filesystem.open_input_file(file.path) as opened:
            content = b"".join(iter(lambda: opened.read(READ_BYTES), b""))
    except FileNotFoundError:
        raise InvalidWarehouse(
            f"{url}: {file.path} is gone; somebody removed it, or vacuumed a version that is still read"
        ) from None
    except OSError as again:
        raise unreadable(f"{url}: {file.path}", again) from None
    try:
        pq.ParquetFile(pa.BufferReader(content)).read()
    except (OSError, ValueError, pa.ArrowException):
        return
    raise unreadable(f"{url}: {file.path}", error) from None


def unreadable(what: str, error: OSError) -> UnreadableStore:
    """A file or table whose store does not give it."""
    line = one_line(error)
    remedy = "" if WITHOUT_TLS in line else "; look at the store and your rights there, and try again"
    return UnreadableStore(f"{what}: could not be read, so that nothing is known of it: {line}{remedy}")


def filesystem_of(table: "DeltaTable") -> Any:
    """The folder of a table as an Arrow file system, local or on an object store."""
    return filesystem_at(table.table_uri)


def filesystem_at(url: str) -> Any:
    """The folder of the table at a URL as an Arrow file system; on an object store it has the credentials of delta-rs."""
    from pyarrow import fs

    folder = local_folder(url)
    if folder is not None:
        return fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())
    require_deltalake()
    from deltalake.fs import DeltaStorageHandler

    return fs.PyFileSystem(DeltaStorageHandler(url, storage_options(url)))


def storage_options(url: str) -> dict[str, str] | None:
    """How long delta-rs waits for the store of a table, None on a local disk. A time-out of the user's environment takes precedence."""
    if local_folder(url) is not None:
        return None
    own = (os.environ[name] for name in OWN_TIMEOUTS if name in os.environ)
    return {**PATIENCE, "timeout": next(own, PATIENCE["timeout"])}


def local_folder(url: str) -> Path | None:
    """The folder of a local table or warehouse, None on an object store."""
    if "://" not in url:
        return Path(url)
    return Path(unquote(url.removeprefix("file://"))) if url.startswith("file://") else None


def one_line(error: Exception) -> str:
    """The message of an error of delta-rs in one line, without credentials."""
    line = " ".join(redacted(str(error)).replace(" \u21b3 ", ": ").split())[:400] or type(error).__name__
    return f"{line}; set {WITHOUT_TLS} for a store without TLS" if "URL scheme is not allowed" in line else line


def _parquet(opened: Any, schema: pa.Schema) -> pq.ParquetFile:
    return pq.ParquetFile(
        opened, read_dictionary=[field.name for field in schema if pa.types.is_dictionary(field.type)]
    )


def _batches(
    parquet: pq.ParquetFile, file: DataFile, schema: pa.Schema, wanted: pa.Array | None, left_out: Sequence[DataFile]
) -> Iterator[pa.RecordBatch]:
    there = set(parquet.schema_arrow.names)
    names = [name for name in schema.names if name in there]
    key = unit_of(there)
    filtered = (wanted is not None or left_out) and key not in names
    groups = range(parquet.num_row_groups) if wanted is None else _groups_with(parquet, key, wanted.to_pylist())
    columns = [*names, key] if filtered else names
    for batch in parquet.iter_batches(BATCH_ROWS, row_groups=list(groups), columns=columns, use_threads=False):
        batch = _without_views(batch, schema)
        if wanted is not None:
            batch = batch.filter(pc.is_in(batch.column(key).cast(pa.string()), wanted))
        for damaged in left_out:
            identity = batch.column(key)
            inside = pc.and_(
                pc.greater_equal(identity, damaged.least or ""), pc.less_equal(identity, damaged.most or "~")
            )
            batch = batch.filter(pc.invert(inside))
        if len(batch):
            yield pa.record_batch([_column(batch, field, file) for field in schema], schema=schema)


def _without_views(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Strings as `schema` has them: those of a file that delta-rs rewrote are views, which Arrow does not filter."""
    kinds = {field.name: field.type for field in schema}
    cast = pa.schema(
        [
            field.with_type(kinds.get(field.name, pa.string())) if "view" in str(field.type) else field
            for field in batch.schema
        ]
    )
    return batch if cast.equals(batch.schema) else batch.cast(cast)


def _groups_with(parquet: pq.ParquetFile, key: str, wanted: Sequence[str]) -> Iterator[int]:
    """The row groups that may hold rows of some snapshots, whose ids are in order."""
    metadata = parquet.metadata
    paths = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    place = paths.index(key)
    for number in range(metadata.num_row_groups):
        ends = metadata.row_group(number).column(place).statistics
        if ends is None or not ends.has_min_max or bisect_left(wanted, ends.min) < bisect_right(wanted, ends.max):
            yield number


def _column(batch: pa.RecordBatch, field: pa.Field, file: DataFile) -> pa.Array:
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    if field.name == "day":
        return pa.array([file.day] * len(batch), field.type)
    return pa.nulls(len(batch), field.type)
