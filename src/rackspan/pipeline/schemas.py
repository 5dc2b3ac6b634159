"""The tables of a warehouse as data: columns, types, grain, and the meaning of each column.

Spark's DDL and docs/tables.md (`python tools/tables.py > docs/tables.md`) are both generated from here. A change of columns or meaning raises the table's `version`, and every day of it is made again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from rackspan.errors import UsageError

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
    looks_back: bool = False
    """Whether a day's rows depend on the last snapshot before that day as well."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the files. Spark writes every column nullable, so all columns are nullable here."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @property
    def ddl(self) -> str:
        """The schema for Spark, as in CREATE TABLE."""
        return ddl(self.columns)


CLUSTER_ID: Final = TableColumn("cluster_id", pa.string(), "The cluster, as Kafka names itself.")
TAKEN_AT: Final = TableColumn("taken_at", TIMESTAMP, "When the snapshot was taken, in UTC.")
SCHEMA_VERSION: Final = TableColumn(
    "schema_version", pa.int32(), "The version of this table that the row was written by."
)


def _table(name: str, meaning: str, grain: tuple[str, ...], columns: Iterable[TableColumn]) -> Table:
    """A table whose first key columns are cluster and time, and whose last column is its version."""
    return Table(name, meaning, ("cluster_id", "taken_at", *grain), (CLUSTER_ID, TAKEN_AT, *columns, SCHEMA_VERSION))


PARTITION_DURABILITY: Final = _table(
    "partition_durability",
    "How durable each partition was: the racks of its replicas and of its ISR, the minimums it has to meet, and its state.",
    ("topic", "partition"),
    (
        TableColumn("topic", pa.string(), "The topic."),
        TableColumn("partition", pa.int32(), "The partition's id within its topic."),
        TableColumn("internal", pa.bool_(), "Whether Kafka itself owns the topic, as it does `__consumer_offsets`."),
        TableColumn("leader", pa.int32(), "The leader's broker id, −1 for none."),
        TableColumn(
            "replication_factor",
            pa.int32(),
            "Replicas of the partition; those that a reassignment is removing are not counted.",
        ),
        TableColumn("isr_size", pa.int32(), "Replicas in sync."),
        TableColumn(
            "replica_racks",
            RACK_NAMES,
            "The distinct racks of the replicas counted, sorted by name. The rack of brokers without `broker.rack` is "
            "the empty string. Brokers the cluster does not list have no known rack and add none.",
        ),
        TableColumn("isr_racks", RACK_NAMES, "The distinct racks of the replicas in sync, in the same way."),
        TableColumn("replica_rack_count", pa.int32(), "How many racks `replica_racks` names."),
        TableColumn("isr_rack_count", pa.int32(), "How many racks `isr_racks` names."),
        TableColumn(
            "min_insync_replicas",
            pa.int32(),
            "The topic's effective `min.insync.replicas`; brokers count it as at most the replicas there are.",
        ),
        TableColumn(
            "min_insync_racks",
            pa.int32(),
            "The racks required: the topic's own `min.insync.racks` where its brokers have that config, the policy's otherwise.",
        ),
        TableColumn(
            "state",
            pa.string(),
            "The worst that holds: `offline` (no leader), `under-min-isr` (fewer in sync than `min.insync.replicas` as "
            "brokers count it), `under-min-racks` (fewer racks in sync than `min.insync.racks`), `one-rack` (no two in-sync replicas are "
            "known to be in different racks, though the cluster has more than one), `ok`.",
        ),
        TableColumn(
            "size_bytes", pa.int64(), "Size of the largest replica's log; null where no broker reported it.", True
        ),
    ),
)

FINDINGS: Final = _table(
    "findings",
    "What `rackspan audit` finds in each snapshot, row for row.",
    ("constraint", "topic", "partition", "reason"),
    (
        TableColumn("constraint", pa.string(), "The constraint or goal that is not met, such as `rack-spread`."),
        TableColumn("severity", pa.string(), "`violation` (must be repaired) or `warning` (should be looked at)."),
        TableColumn("topic", pa.string(), "The topic; null where the cluster itself is meant.", True),
        TableColumn("partition", pa.int32(), "The partition; null where the cluster itself is meant.", True),
        TableColumn("reason", pa.string(), "Why, with the racks and brokers named."),
        TableColumn("remedy", pa.string(), "What repairs it: a rackspan command or a step that the operator takes."),
    ),
)

OUTAGE_IMPACT: Final = _table(
    "outage_impact",
    "What losing each rack would do, as `rackspan outage` computes it: for each snapshot and each loss a row for the "
    "whole cluster, whether or not it is harmed, and a row for each topic that is. The losses are each rack by itself and "
    "no rack at all. The rows for no rack show what is harmed already, which every other loss counts too. Pairs of racks "
    "are left to `rackspan outage --pairs`.",
    ("lost_racks", "topic"),
    (
        TableColumn(
            "lost_racks",
            RACK_NAMES,
            "The racks lost together, sorted by name; none where nothing is lost. The rack of brokers without "
            "`broker.rack` is the empty string.",
        ),
        TableColumn("topic", pa.string(), "The topic; null in the row for the whole cluster.", True),
        TableColumn("internal", pa.bool_(), "Whether Kafka itself owns the topic; null for the whole cluster.", True),
        TableColumn("offline", pa.int64(), "Partitions without a leader."),
        TableColumn(
            "needs_unclean_election",
            pa.int64(),
            "Those of them that only a replica out of sync could lead, losing records.",
        ),
        TableColumn(
            "under_min_isr", pa.int64(), "Partitions online that refuse `acks=all` for want of replicas in sync."
        ),
        TableColumn("under_min_racks", pa.int64(), "Partitions online whose ISR spans fewer racks than required."),
        TableColumn(
            "survived",
            pa.bool_(),
            "Whether nothing is offline or under a minimum, and the controllers can decide; null for a topic.",
            True,
        ),
        TableColumn(
            "quorum_holds",
            pa.bool_(),
            "Whether a majority of the controllers is left; null for a topic, and where the snapshot lists no voters.",
            True,
        ),
        TableColumn(
            "leader_surge",
            LEADER_SURGE,
            "The leaderships each surviving broker takes over, by broker id; null for a topic.",
            True,
        ),
    ),
)

DRIFT: Final = replace(
    _table(
        "drift",
        "The changes between each snapshot and the one before it of the same cluster: what changed, when the change was "
        "first observed, where safety was lost or gained, and which change caused that. The first snapshot of a cluster has "
        "no rows.",
        ("change", "topic", "partition", "broker"),
        (
            TableColumn(
                "previous_taken_at",
                TIMESTAMP,
                "When the snapshot before was taken; the change happened between the two.",
            ),
            TableColumn("change", pa.string(), "What happened, one of the words below."),
            TableColumn("topic", pa.string(), "The topic; null for changes of brokers and voters.", True),
            TableColumn(
                "partition", pa.int32(), "The partition; null where a topic as a whole is meant, or none.", True
            ),
            TableColumn(
                "broker", pa.int32(), "The broker, or the voting controller; null for topics and partitions.", True
            ),
            TableColumn("before", pa.string(), "The value before, as described below; null for none.", True),
            TableColumn("after", pa.string(), "The value after, in the same way.", True),
            TableColumn(
                "cause",
                pa.string(),
                "Only where safety was lost or gained: the `change` in the same snapshot that would have done it alone, of "
                "the same partition, its topic, or the broker `cause_broker`; `several` where none would.",
                True,
            ),
            TableColumn(
                "cause_broker", pa.int32(), "The broker that the cause is about; null where it is about none.", True
            ),
        ),
    ),
    looks_back=True,
)

TABLES: Final[Mapping[str, Table]] = {
    table.name: table for table in (PARTITION_DURABILITY, FINDINGS, OUTAGE_IMPACT, DRIFT)
}


def table_named(name: str) -> Table:
    """The table of that name. Errors: UsageError with the names of all tables."""
    if name not in TABLES:
        raise UsageError(f"table {name!r}: there is none of that name; choose one of {', '.join(TABLES)}")
    return TABLES[name]


def ddl(columns: Iterable[TableColumn]) -> str:
    return ", ".join(f"`{column.name}` {spark_type(column.type)}" for column in columns)


_SPARK_TYPES: Final = {
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    TIMESTAMP: "TIMESTAMP",
}


def spark_type(kind: pa.DataType) -> str:
    """The name of an Arrow type in Spark's DDL."""
    if pa.types.is_list(kind):
        return f"ARRAY<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {spark_type(field.type)}' for field in kind)}>"
    return _SPARK_TYPES[kind]
