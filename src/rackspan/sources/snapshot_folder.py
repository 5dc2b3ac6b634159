"""Reads and writes a snapshot as a folder of Parquet files, for large clusters and for Spark.

The folder holds `cluster.parquet` (one row: version, cluster id, time, controllers, partial), `brokers.parquet`,
`topics.parquet` and `partitions.parquet`, with the JSON's names as columns.
"""

from collections import Counter
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rackspan.disk import to_disk
from rackspan.errors import InvalidSnapshot
from rackspan.model import (
    UNKNOWN_SIZE,
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    Int32s,
    PartitionColumns,
    RackId,
    Topic,
    TopicName,
)
from rackspan.model.partitions import BROKER_LISTS, flattened, padded
from rackspan.model.snapshot import VERSION, ReadSnapshot

BROKER_IDS: Final = pa.list_(pa.int32())

CLUSTER_SCHEMA: Final = pa.schema(
    [
        ("version", pa.int32()),
        ("cluster_id", pa.string()),
        ("taken_at", pa.timestamp("us", "UTC")),
        (
            "controllers",
            pa.list_(
                pa.struct(
                    [
                        ("id", pa.int32()),
                        ("rack", pa.string()),
                        ("voter", pa.bool_()),
                        ("alive", pa.bool_()),
                        ("active", pa.bool_()),
                    ]
                )
            ),
        ),
        ("partial", pa.list_(pa.string())),
    ]
)
BROKER_SCHEMA: Final = pa.schema(
    [
        ("id", pa.int32()),
        ("host", pa.string()),
        ("port", pa.int32()),
        ("rack", pa.string()),
        ("fenced", pa.bool_()),
        ("cordoned", pa.bool_()),
        ("failed_log_dirs", pa.list_(pa.string())),
        ("usable_bytes", pa.int64()),
    ]
)
TOPIC_SCHEMA: Final = pa.schema(
    [
        ("name", pa.string()),
        ("topic_id", pa.string()),
        ("internal", pa.bool_()),
        ("config", pa.map_(pa.string(), pa.string())),
    ]
)
PARTITION_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("leader", pa.int32()),
        *((name, BROKER_IDS) for name in BROKER_LISTS),
        ("size_bytes", pa.int64()),
    ]
)
SCHEMAS: Final = {
    "cluster": CLUSTER_SCHEMA,
    "brokers": BROKER_SCHEMA,
    "topics": TOPIC_SCHEMA,
    "partitions": PARTITION_SCHEMA,
}
REQUIRED: Final = {
    "cluster": ("version",),
    "brokers": ("id",),
    "topics": ("name",),
    "partitions": ("topic", "partition", "leader", "replicas", "isr"),
}


def write_folder(snapshot: ClusterSnapshot, folder: Path) -> None:
    """The four Parquet files, on disk when this returns. The folder must not exist."""
    folder.mkdir(parents=True)
    for name, table in to_tables(snapshot).items():
        file = folder / f"{name}.parquet"
        pq.write_table(table, file, compression="zstd")
        to_disk(file)
    to_disk(folder)


def to_tables(snapshot: ClusterSnapshot) -> dict[str, pa.Table]:
    """The snapshot as Arrow tables, named as the files are."""
    return {
        "cluster": pa.Table.from_pylist(
            [
                {
                    "version": VERSION,
                    "cluster_id": snapshot.cluster_id,
                    "taken_at": snapshot.taken_at,
                    "controllers": [
                        {"id": c.id, "rack": c.rack, "voter": c.voter, "alive": c.alive, "active": c.active}
                        for c in snapshot.controllers
                    ],
                    "partial": list(snapshot.partial),
                }
            ],
            schema=CLUSTER_SCHEMA,
        ),
        "brokers": pa.Table.from_pylist(
            [{name: getattr(broker, name) for name in BROKER_SCHEMA.names} for broker in snapshot.brokers],
            schema=BROKER_SCHEMA,
        ),
        "topics": pa.Table.from_pylist(
            [
                {"name": t.name, "topic_id": t.topic_id, "internal": t.internal, "config": list(t.config.items())}
                for t in snapshot.topics
            ],
            schema=TOPIC_SCHEMA,
        ),
        "partitions": _partition_table(snapshot),
    }


def from_tables(tables: dict[str, pa.Table]) -> ClusterSnapshot:
    """The inverse of `to_tables`. Errors: InvalidSnapshot, naming the table and column."""
    checked = {name: _conforming(name, tables[name]) for name in SCHEMAS}
    heads = _heads(checked["cluster"])
    if len(heads) != 1:
        raise InvalidSnapshot(f"cluster.parquet: {len(heads)} rows, but a snapshot is one; take it again")
    head = heads[0]
    if head["version"] != VERSION:
        raise InvalidSnapshot(
            f"version is {head['version']}, but this rackspan reads version {VERSION}; take the snapshot again"
        )
    topics = tuple(_topic(row) for row in checked["topics"].to_pylist())
    return ClusterSnapshot(
        cluster_id=head["cluster_id"],
        taken_at=None if head["taken_at"] is None else head["taken_at"].astimezone(UTC),
        controllers=tuple(_controller(row) for row in head["controllers"] or []),
        partial=tuple(_not_null(text, "cluster.parquet", "partial") for text in head["partial"] or ()),
        brokers=tuple(_broker(row) for row in checked["brokers"].to_pylist()),
        topics=topics,
        partitions=_partition_columns(checked["partitions"], topics),
    )


def list_column(array: pa.Array) -> Int32s:
    """A list column as a matrix of broker ids. A null list is an empty one."""
    if array.null_count:
        array = pa.array([row or [] for row in array.to_pylist()], BROKER_IDS)
    return padded(_numpy(array.values, np.int32), _numpy(array.offsets, np.int64))


def read_folder(folder: Path) -> ReadSnapshot:
    """The snapshot in a folder, with a warning for each unknown column. Errors: InvalidSnapshot."""
    try:
        return _read(folder)
    except pa.ArrowException as error:
        words = " ".join(str(error).split())
        raise InvalidSnapshot(f"cannot be read: {words}; take the snapshot again") from None


def _read(folder: Path) -> ReadSnapshot:
    tables, warnings = {}, []
    for name, schema in SCHEMAS.items():
        file = folder / f"{name}.parquet"
        if not file.is_file():
            raise InvalidSnapshot(
                f"{file.name} is missing, so this is not a snapshot folder; take it with rackspan snapshot"
            )
        table = _file_rows(file)
        unknown = [column for column in table.column_names if column not in schema.names]
        warnings += [f"{file.name}: unknown column {column!r} ignored" for column in unknown]
        tables[name] = table
    return ReadSnapshot(from_tables(tables), tuple(warnings))


def read_registration(folder: Path) -> tuple[tuple[Broker, ...], tuple[Controller, ...]]:
    """The brokers (without hosts and ports) and controllers of a Parquet folder. Takes milliseconds, whatever its size.

    Errors: InvalidSnapshot, naming the folder.
    """
    try:
        brokers, cluster = (
            _conforming(name, _file_rows(folder / f"{name}.parquet")) for name in ("brokers", "cluster")
        )
        without_address = [_broker({**row, "host": None, "port": None}) for row in brokers.to_pylist()]
        listed = [
            controller for controllers in cluster.column("controllers").to_pylist() for controller in controllers or ()
        ]
        return tuple(sorted(without_address, key=lambda broker: broker.id)), tuple(map(_controller, listed))
    except InvalidSnapshot as error:
        raise InvalidSnapshot(f"{folder}: {error}") from None


def _file_rows(file: Path) -> pa.Table:
    """The rows of one file alone: a folder above it such as cluster_id=… must not add columns. Errors: InvalidSnapshot."""
    try:
        table = pq.ParquetFile(file).read()
        # Parquet does not guarantee UTF-8 text and valid offsets; the code below requires both.
        table.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        words = " ".join(str(error).split())
        raise InvalidSnapshot(f"{file.name}: cannot be read: {words}; take the snapshot again") from None
    twice = [name for name, times in Counter(table.column_names).items() if times > 1]
    if twice:
        raise InvalidSnapshot(f"{file.name}: column {twice[0]} is there twice; take the snapshot again")
    return table


def _conforming(name: str, table: pa.Table) -> pa.Table:
    """The table with exactly the columns of its schema; absent optional columns become nulls."""
    columns = []
    for field in SCHEMAS[name]:
        if field.name not in table.column_names:
            if field.name in REQUIRED[name]:
                raise InvalidSnapshot(f"{name}.parquet: column {field.name} is missing; take the snapshot again")
            columns.append(pa.nulls(len(table), field.type))
            continue
        column = table.column(field.name)
        if field.name in REQUIRED[name] and column.null_count:
            raise InvalidSnapshot(f"{name}.parquet: column {field.name} holds nulls; take the snapshot again")
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowException:
            raise InvalidSnapshot(
                f"{name}.parquet: column {field.name} is {column.type}, not {field.type}, or out of its range; take the snapshot again"
            ) from None
    return pa.table(columns, schema=SCHEMAS[name])


def _partition_table(snapshot: ClusterSnapshot) -> pa.Table:
    rows = snapshot.partitions
    names = pa.DictionaryArray.from_arrays(
        pa.array(rows.topic), pa.array([topic.name for topic in snapshot.topics], pa.string())
    )
    size_bytes = pa.array(rows.size_bytes, mask=rows.size_bytes == UNKNOWN_SIZE)
    return pa.table(
        [
            names.cast(pa.string()),
            pa.array(rows.partition),
            pa.array(rows.leader),
            *(_list_array(getattr(rows, name)) for name in BROKER_LISTS),
            size_bytes,
        ],
        schema=PARTITION_SCHEMA,
    )


def _list_array(matrix: Int32s) -> Any:
    values, offsets = flattened(matrix)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))


def _partition_columns(table: pa.Table, topics: tuple[Topic, ...]) -> PartitionColumns:
    encoded = table.column("topic").combine_chunks().dictionary_encode()
    code_of = {topic.name: code for code, topic in enumerate(topics)}
    names = encoded.dictionary.to_pylist()
    for name in names:
        if name not in code_of:
            raise InvalidSnapshot(
                f"partitions.parquet: topic {name!r} is not in topics.parquet; take the snapshot again"
            )
    codes = np.array([code_of[name] for name in names], dtype=np.int32)
    lists = {name: _ids(table, name) for name in BROKER_LISTS}
    return PartitionColumns(
        topic=codes[_numpy(encoded.indices, np.int32)],
        partition=_numpy(table.column("partition"), np.int32),
        leader=_numpy(table.column("leader"), np.int32),
        size_bytes=_numpy(table.column("size_bytes"), np.int64, null=UNKNOWN_SIZE),
        **lists,
    )


def _ids(table: pa.Table, name: str) -> Int32s:
    column = table.column(name).combine_chunks()
    values = column.flatten()
    if values.null_count or bool((_numpy(values, np.int32) < 0).any()):
        raise InvalidSnapshot(f"partitions.parquet: {name} names something that is not a broker id; fix it in the file")
    return list_column(column)


def _heads(table: pa.Table) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except (OverflowError, ValueError):
        raise InvalidSnapshot("cluster.parquet: taken_at is beyond the years 1 to 9999; fix it in the file") from None
    return rows


def _not_null(value: Any, file: str, column: str) -> Any:
    """A value inside a list, where null has no meaning. Errors: InvalidSnapshot."""
    if value is None:
        raise InvalidSnapshot(f"{file}: {column} holds a null inside a row; take the snapshot again")
    return value


def _controller(row: dict[str, Any] | None) -> Controller:
    controller = _not_null(row, "cluster.parquet", "controllers")
    controller_id = BrokerId(_not_null(controller["id"], "cluster.parquet", "controllers"))
    return Controller(
        controller_id,
        _rack(controller["rack"]),
        controller["voter"] is not False,
        controller.get("alive"),
        controller.get("active"),
    )


def _topic(row: dict[str, Any]) -> Topic:
    pairs = [(key, _not_null(value, "topics.parquet", "config")) for key, value in row["config"] or []]
    config = dict(pairs)
    if len(config) < len(pairs):
        raise InvalidSnapshot(f"topics.parquet: config of {row['name']} names a key twice; take the snapshot again")
    return Topic(TopicName(row["name"]), row["topic_id"], bool(row["internal"]), config)


def _broker(row: dict[str, Any]) -> Broker:
    return Broker(
        BrokerId(row["id"]),
        _rack(row["rack"]),
        bool(row["fenced"]),
        row["host"],
        row["port"],
        bool(row["cordoned"]),
        tuple(_not_null(path, "brokers.parquet", "failed_log_dirs") for path in row["failed_log_dirs"] or ()),
        row["usable_bytes"],
    )


def _rack(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)


def _numpy(array: Any, dtype: Any, null: int = 0) -> Any:
    """Whole numbers straight from Arrow's memory, nulls as `null`.

    Arrow's own to_numpy(), fill_null() and scalars import pandas, which takes longer than reading a million partitions.
    """
    whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if not len(whole):
        return np.empty(0, dtype=dtype)
    validity, data = whole.buffers()
    own = slice(whole.offset, whole.offset + len(whole))
    values = np.frombuffer(data, dtype=np.dtype(f"i{whole.type.bit_width // 8}"))[own].astype(dtype, copy=False)
    if not whole.null_count:
        return values
    valid = np.unpackbits(np.frombuffer(validity, dtype=np.uint8), bitorder="little")[own]
    return np.where(valid == 1, values, dtype(null))
