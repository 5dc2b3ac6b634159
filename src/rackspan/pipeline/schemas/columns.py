"""What a table is as data: columns, types, grain, and what the columns of many tables mean. The tables are in the other modules."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

GONE: Final = "gone"
"""The column of changes: true for a row that is there no longer, of which only the key has a meaning."""

TIMESTAMP: Final = pa.timestamp("us", "UTC")
RACK_NAMES: Final = pa.list_(pa.string())
LEADER_SURGE: Final = pa.list_(pa.struct([("broker", pa.int32()), ("leaders", pa.int64())]))


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column. `meaning` is a sentence; where `nullable`, it states the meaning of null."""

    name: str
    type: pa.DataType
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `grain` names the columns of which no two rows have the same values; rows are sorted by them."""

    name: str
    meaning: str
    grain: tuple[str, ...]
    columns: tuple[TableColumn, ...]
    version: int = 1
    as_changes: bool = False
    """Whether only rows that differ from those of the snapshot before are stored, with the column GONE. The first snapshot of a
    cluster on each UTC day has all of its rows, so that a day can be read and dropped by itself."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of rows as they are read and written. Every column is nullable here, as Spark writes them."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @property
    def at_each_snapshot(self) -> "Table":
        """The table as readers see it: every row at each snapshot, by its time."""
        if not self.as_changes:
            return self
        columns = tuple(TAKEN_AT if column is VALID_FROM else column for column in self.columns if column.name != GONE)
        grain = tuple(TAKEN_AT.name if name == VALID_FROM.name else name for name in self.grain)
        return replace(self, columns=columns, grain=grain, as_changes=False)

    @property
    def declared(self) -> pa.Schema:
        """The schema as catalogs show it: each column with its meaning as comment, and NOT NULL unless null has a meaning."""
        return pa.schema(
            [
                pa.field(column.name, column.type, column.nullable, {"comment": column.meaning})
                for column in self.columns
            ]
        )


CLUSTER_ID: Final = TableColumn("cluster_id", pa.string(), "The cluster, as Kafka names itself.")
TAKEN_AT: Final = TableColumn("taken_at", TIMESTAMP, "When the snapshot was taken, in UTC.")
VALID_FROM: Final = TableColumn(
    "valid_from",
    TIMESTAMP,
    "Since when the row is true: when the first snapshot that has it was taken, in UTC. It stays true until the next row of its key.",
)
DAY: Final = TableColumn("day", pa.date32(), "The day of that time in UTC; the table is partitioned by it.")
SNAPSHOT_ID: Final = TableColumn(
    "snapshot_id",
    pa.string(),
    "The snapshot: its time, and a hash of its content. Rows belong to a snapshot that is stored completely exactly if `snapshots` has its id.",
)
KNOWN_UNTIL: Final = TableColumn(
    "known_until",
    TIMESTAMP,
    "Until when the snapshot says something, if none follows: three periods of its collector after it was taken, or of the median of the ten distances "
    "between snapshots of the cluster before it, an hour for the first. Made once, when it is stored; null in rows of before this column.",
    True,
)
RUN_ID: Final = TableColumn("run_id", pa.string(), "The run that wrote the row, as in the table `runs`.")
SCHEMA_VERSION: Final = TableColumn(
    "schema_version", pa.int32(), "The version of this table that the row was written by."
)
KEYS: Final = (CLUSTER_ID, TAKEN_AT, DAY, SNAPSHOT_ID)
WRITTEN: Final = (RUN_ID, SCHEMA_VERSION)

HOUR: Final = TableColumn("hour", TIMESTAMP, "The hour, by its start, in UTC.")
HOUR_ID: Final = TableColumn(
    "hour_id",
    pa.string(),
    "The hour, and a hash of the cluster: rows are made and replaced an hour of a cluster at a time.",
)
HOUR_KEYS: Final = (CLUSTER_ID, HOUR, DAY, HOUR_ID)


def snapshot_table(
    name: str, meaning: str, grain: tuple[str, ...], columns: Iterable[TableColumn], version: int
) -> Table:
    """A derived table: first the keys of the snapshot, last the run and the version that wrote the row."""
    return Table(name, meaning, ("cluster_id", "taken_at", *grain), (*KEYS, *columns, *WRITTEN), version=version)


def changes_table(
    name: str, meaning: str, grain: tuple[str, ...], columns: Iterable[TableColumn], version: int
) -> Table:
    """A derived table of which only changes are stored."""
    keys = (CLUSTER_ID, VALID_FROM, DAY, SNAPSHOT_ID)
    return Table(name, meaning, ("cluster_id", "valid_from", *grain), (*keys, *columns, ENDED, *WRITTEN), version, True)


def hourly_table(
    name: str, meaning: str, grain: tuple[str, ...], columns: Iterable[TableColumn], version: int = 1
) -> Table:
    """A derived table of hours, made of all readings or snapshots that concern an hour."""
    return Table(name, meaning, ("cluster_id", "hour", *grain), (*HOUR_KEYS, *columns, *WRITTEN), version)


def landing_table(name: str, meaning: str, grain: tuple[str, ...], columns: Iterable[TableColumn]) -> Table:
    return Table(name, meaning, ("cluster_id", "taken_at", *grain), (*KEYS, *columns))


def content_table(name: str, meaning: str, grain: tuple[str, ...], columns: Iterable[TableColumn]) -> Table:
    """A table of what snapshots hold: all rows of a whole one, and of the others those that differ from the snapshot they build on."""
    stored = "All rows of a snapshot that is stored whole; of another one those that differ from the snapshot `base_id` of `snapshots`."
    return replace(landing_table(name, f"{meaning} {stored}", grain, (*columns, MARK)), as_changes=True)


ENDED: Final = TableColumn(
    GONE,
    pa.bool_(),
    "Whether the row is true no longer, so that only its key has a meaning; null in the first snapshot of a day, which has all rows.",
    True,
)

BROKER_IDS: Final = pa.list_(pa.int32())
ROWS_BY_TABLE: Final = pa.map_(pa.string(), pa.int64())
RACK: Final = TableColumn("rack", pa.string(), "Its `broker.rack`; null for none.", True)

MARK: Final = TableColumn(
    GONE,
    pa.bool_(),
    "Whether the row is there no longer, so that only its key has a meaning; null in a snapshot that is stored whole.",
    True,
)

TOPIC: Final = TableColumn("topic", pa.string(), "The topic.")
PARTITION: Final = TableColumn("partition", pa.int32(), "The partition's id within its topic.")
GROUP_ID: Final = TableColumn("group_id", pa.string(), "The group, by its `group.id`.")


def own_columns(table: Table) -> tuple[TableColumn, ...]:
    """The columns of a derived table without the snapshot's keys and what every run adds."""
    return tuple(column for column in table.columns[len(KEYS) : -len(WRITTEN)] if column is not ENDED)


def ddl(columns: Iterable[TableColumn]) -> str:
    return ", ".join(f"`{column.name}` {spark_type(column.type)}" for column in columns)


_SPARK_TYPES: Final = {
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    TIMESTAMP: "TIMESTAMP",
}


def spark_type(kind: pa.DataType) -> str:
    """The name of an Arrow type in Spark's DDL."""
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{spark_type(kind.key_type)}, {spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {spark_type(field.type)}' for field in kind)}>"
    return _SPARK_TYPES[kind]
