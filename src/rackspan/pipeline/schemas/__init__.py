"""The tables of a warehouse as data: columns, types, grain, and the meaning of each column.

Spark's DDL, docs/tables.md (`python tools/tables.py > docs/tables.md`) and the JSON Schema of `pipeline table` are generated from here. A change of columns or
meaning raises the table's `version`, and the next run makes all of its rows again. LANDING has the snapshots as collected (readings.py: the
values that change all the time), TABLES what Spark derives from them (hours.py: by hour), HISTORY the record of the runs.
Nothing here opens a table.
"""

from collections import ChainMap
from collections.abc import Mapping
from typing import Final, cast

import pyarrow as pa

from rackspan.errors import UsageError
from rackspan.pipeline.schemas.columns import (
    BROKER_IDS,
    CLUSTER_ID,
    GONE,
    KEYS,
    KNOWN_UNTIL,
    LEADER_SURGE,
    RACK,
    RACK_NAMES,
    ROWS_BY_TABLE,
    RUN_ID,
    TIMESTAMP,
    Table,
    TableColumn,
    changes_table,
    content_table,
    ddl,
    landing_table,
    own_columns,
    snapshot_table,
    spark_type,
)
from rackspan.pipeline.schemas.hours import HOURLY
from rackspan.pipeline.schemas.readings import OF_READINGS

__all__ = [
    "BROKERS",
    "CLUSTERS",
    "CONTENT",
    "DERIVED",
    "DRIFT",
    "FINDINGS",
    "GONE",
    "HISTORY",
    "HOURLY",
    "JUDGED",
    "LANDING",
    "NAMES",
    "OF_READINGS",
    "OUTAGE_IMPACT",
    "PARTITIONS",
    "PARTITION_DURABILITY",
    "RACK_NAMES",
    "RUNS",
    "SNAPSHOTS",
    "STORED",
    "TABLES",
    "TOPICS",
    "Table",
    "ddl",
    "own_columns",
    "spark_type",
    "table_named",
]

SNAPSHOTS: Final = landing_table(
    "snapshots",
    "The snapshots that are stored completely. A snapshot's row is committed last, after its rows in the other landing tables.",
    (),
    (
        TableColumn(
            "controllers",
            pa.list_(pa.struct([("id", pa.int32()), ("rack", pa.string()), ("voter", pa.bool_())])),
            "The controllers, each with its rack and whether it votes.",
        ),
        TableColumn(
            "controllers_alive",
            pa.list_(pa.bool_()),
            "Of each of them, in the same order, whether it follows the quorum's leader, null where that is not known; null where it is known of none.",
            True,
        ),
        TableColumn(
            "partial", pa.list_(pa.string()), "In words what could not be read; empty where nothing is missing."
        ),
        TableColumn("topics", pa.int64(), "The number of its topics."),
        TableColumn("partitions", pa.int64(), "The number of its partitions."),
        TableColumn("longest_list", pa.int32(), "The length of its longest list of replicas or ISR."),
        TableColumn(
            "members",
            pa.string(),
            "A hash of brokers, racks, fencing and controllers: equal for equal cluster members.",
        ),
        TableColumn(
            "base_id",
            pa.string(),
            "The snapshot that it builds on, an earlier one of the same cluster and day; null where it is stored whole.",
            True,
        ),
        TableColumn(
            "root_id", pa.string(), "The whole snapshot that its bases end at; null where it is whole itself.", True
        ),
        TableColumn(
            "unchanged",
            pa.bool_(),
            "Whether nothing but sizes differs from the snapshot that it builds on; null where it is stored whole.",
            True,
        ),
        TableColumn(
            "stored_rows",
            ROWS_BY_TABLE,
            "How many rows it has in each of the landing tables, those of readings only if it was stored with one; null in rows of before this column, which are whole.",
            True,
        ),
        KNOWN_UNTIL,
    ),
)

BROKERS: Final = content_table(
    "brokers",
    "The brokers of each snapshot.",
    ("id",),
    (
        TableColumn("id", pa.int32(), "The broker's id."),
        TableColumn("host", pa.string(), "Its host; null where unknown.", True),
        TableColumn("port", pa.int32(), "Its port; null where unknown.", True),
        RACK,
        TableColumn("fenced", pa.bool_(), "Whether the controller has fenced it."),
        TableColumn(
            "cordoned",
            pa.bool_(),
            "Whether all of its log directories are cordoned, so that it gets nothing new; null in rows of before this column.",
            True,
        ),
        TableColumn(
            "failed_log_dirs",
            pa.list_(pa.string()),
            "Its log directories that have failed while it is up; null in rows of before this column.",
            True,
        ),
    ),
)

TOPICS: Final = content_table(
    "topics",
    "The topics of each snapshot.",
    ("name",),
    (
        TableColumn("name", pa.string(), "The topic."),
        TableColumn("topic_id", pa.string(), "Its topic id; null where unknown.", True),
        TableColumn("internal", pa.bool_(), "Whether Kafka itself owns the topic."),
        TableColumn("config", pa.map_(pa.string(), pa.string()), "Effective configs, broker defaults included."),
    ),
)

PARTITIONS: Final = content_table(
    "partitions",
    "The partitions of each snapshot.",
    ("topic", "partition"),
    (
        TableColumn("topic", pa.string(), "The topic."),
        TableColumn("partition", pa.int32(), "The partition's id within its topic."),
        TableColumn("leader", pa.int32(), "The leader's broker id, −1 for none, −2 where it is not known."),
        TableColumn("replicas", BROKER_IDS, "The brokers that hold it, preferred leader first."),
        TableColumn("isr", BROKER_IDS, "The replicas in sync."),
        TableColumn("adding_replicas", BROKER_IDS, "Replicas that a reassignment adds."),
        TableColumn("removing_replicas", BROKER_IDS, "Replicas that a reassignment removes."),
        TableColumn(
            "offline_replicas",
            BROKER_IDS,
            "Replicas in a failed log directory of a broker that is up; null in rows of before this column.",
            True,
        ),
        TableColumn(
            "size_bytes",
            pa.int64(),
            "Size of the largest replica's log when the row was stored; null where unknown. Another size alone is no change.",
            True,
        ),
    ),
)

CONTENT: Final = (BROKERS, TOPICS, PARTITIONS)
"""The tables of what snapshots hold, in which only changes of most are stored."""

STORED: Final = (*CONTENT, *OF_READINGS.values())
"""The tables with rows of snapshots, those of their readings included."""

LANDING: Final[Mapping[str, Table]] = {table.name: table for table in (*STORED, SNAPSHOTS)}
"""In the order in which a snapshot is written: the marker last."""


PARTITION_DURABILITY: Final = changes_table(
    "partition_durability",
    "How durable each partition was: the racks of its replicas and of its ISR, the minimums it has to meet, and its state.",
    ("topic", "partition"),
    (
        TableColumn("topic", pa.string(), "The topic."),
        TableColumn("partition", pa.int32(), "The partition's id within its topic."),
        TableColumn("internal", pa.bool_(), "Whether Kafka itself owns the topic, as it does `__consumer_offsets`."),
        TableColumn("leader", pa.int32(), "The leader's broker id, −1 for none, −2 where it is not known."),
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
            "The racks required: those of the policy, or the topic's own `min.insync.racks` where that is more.",
        ),
        TableColumn(
            "state",
            pa.string(),
            "The worst that holds: `offline` (no leader), `under-min-isr` (fewer in sync than `min.insync.replicas` as "
            "brokers count it), `under-min-racks` (fewer racks in sync than `min.insync.racks`), `one-rack` (no two in-sync replicas are "
            "known to be in different racks, though the cluster has more than one), `ok`.",
        ),
        TableColumn(
            "size_bytes",
            pa.int64(),
            "Size of the largest replica's log when the row was written; null where no broker reported it. Another size alone is no change.",
            True,
        ),
    ),
    version=3,
)

FINDINGS: Final = changes_table(
    "findings",
    "What `rackspan audit` finds in each snapshot, row for row.",
    ("constraint", "topic", "partition", "reason"),
    (
        TableColumn("constraint", pa.string(), "The constraint or goal that is not met, such as `rack-spread`."),
        TableColumn("severity", pa.string(), "`violation` (must be repaired) or `warning` (should be looked at)."),
        TableColumn("topic", pa.string(), "The topic; null where the cluster itself is meant.", True),
        TableColumn("partition", pa.int32(), "The partition; null where a topic or the cluster is meant.", True),
        TableColumn("reason", pa.string(), "Why, with the racks and brokers named."),
        TableColumn("remedy", pa.string(), "What repairs it: a rackspan command or a step that the operator takes."),
    ),
    version=9,
)

OUTAGE_IMPACT: Final = changes_table(
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
            "Whether nothing is offline or under a minimum, and the controllers can decide wherever those of unknown rack are; "
            "null for a topic.",
            True,
        ),
        TableColumn(
            "quorum_holds",
            pa.bool_(),
            "Whether a majority of the controllers is left, those of unknown rack included; null for a topic, and where the "
            "snapshot lists no voters.",
            True,
        ),
        TableColumn(
            "leader_surge",
            LEADER_SURGE,
            "The leaderships each surviving broker takes over, by broker id; null for a topic.",
            True,
        ),
    ),
    version=4,
)

DRIFT: Final = snapshot_table(
    "drift",
    "The changes between each snapshot and the one before it of the same cluster: what changed, when the change was "
    "first observed, where safety was lost or gained, and which change caused that. The first snapshot of a cluster has "
    "no rows. What a snapshot could not read (`partial`) is unknown: a topic that it does not show is not reported as deleted, nor "
    "as created by the next one.",
    ("change", "topic", "partition", "broker"),
    (
        TableColumn(
            "previous_taken_at",
            TIMESTAMP,
            "When the snapshot before was taken; the change happened between the two.",
        ),
        TableColumn("change", pa.string(), "What happened, one of the words below."),
        TableColumn("topic", pa.string(), "The topic; null for changes of brokers and voters.", True),
        TableColumn("partition", pa.int32(), "The partition; null where a topic as a whole is meant, or none.", True),
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
    version=3,
)

TABLES: Final[Mapping[str, Table]] = {
    table.name: table for table in (PARTITION_DURABILITY, FINDINGS, OUTAGE_IMPACT, DRIFT)
}

DERIVED: Final[Mapping[str, Table]] = ChainMap(cast("dict[str, Table]", HOURLY), cast("dict[str, Table]", TABLES))
"""Every table that a run makes: of snapshots, which it judges, then of hours."""


JUDGED: Final = Table(
    "judged",
    "Which snapshots the derived tables have rows of, whether or not a snapshot gave any.",
    ("cluster_id", "taken_at"),
    (
        *KEYS,
        TableColumn(
            "base_id",
            pa.string(),
            "The snapshot that its rows differ from: the one before it on the same day; null where all of its rows are stored.",
            True,
        ),
        KNOWN_UNTIL,
        RUN_ID,
    ),
)

RUNS: Final = Table(
    "runs",
    "The history of runs. The newest row names the version of each table that readers follow, so that they see all tables of "
    "one run or none.",
    ("run_id",),
    (
        TableColumn("run_id", pa.string(), "The run: its number in the history, and a random part."),
        TableColumn("kind", pa.string(), "What made it: `run`, `follow`, `rebuild` or `maintain`."),
        TableColumn("started_at", TIMESTAMP, "When it started."),
        TableColumn("ended_at", TIMESTAMP, "When its tables were committed."),
        TableColumn("rackspan_version", pa.string(), "The rackspan that ran."),
        TableColumn(
            "policy",
            pa.string(),
            "The rack policy of the verdicts, as JSON; under `clusters`, by id, those of clusters with another one.",
        ),
        TableColumn("prices", pa.string(), "The price file of the bill, as JSON; null where the run had none.", True),
        TableColumn(
            "made_by",
            pa.map_(pa.string(), pa.string()),
            "For each derived table its schema version and a hash of the policies, or of the prices. Another version makes the table again, another policy the rows of its clusters.",
        ),
        TableColumn("versions", pa.map_(pa.string(), pa.int64()), "The Delta version of each table to read."),
        TableColumn("rows", pa.map_(pa.string(), pa.int64()), "The rows that the run wrote, by table."),
        TableColumn("snapshots", pa.int64(), "The snapshots that were judged for the first time."),
        TableColumn("remade", pa.int64(), "The snapshots that were judged again, for `reason`."),
        TableColumn("reason", pa.string(), "Why snapshots were judged again; null where none was.", True),
        TableColumn(
            "quarantined",
            pa.map_(pa.string(), pa.string()),
            "The snapshots that could not be judged because rows of them are lost or damaged, by id, each with the reason; a damaged "
            "file of `snapshots` by its path. They are judged once their files are whole. Null in rows of an earlier rackspan.",
            True,
        ),
    ),
)

CLUSTERS: Final = Table(
    "clusters",
    "The names under which clusters were collected, from the tables of rackspan.toml: a row whenever a cluster gets another one. A cluster "
    "without a name there has no row, and two clusters may have the same name: a cluster that was created again at the same address is another one.",
    ("cluster_id", "since"),
    (
        CLUSTER_ID,
        TableColumn("since", TIMESTAMP, "When the first snapshot under this name was taken, in UTC."),
        TableColumn("name", pa.string(), "The name to show: `name`, or NAME of `[clusters.NAME]`."),
        TableColumn("cluster", pa.string(), "NAME of `[clusters.NAME]`, as `--cluster` takes it."),
    ),
)

NAMES: Final[Mapping[str, Table]] = {CLUSTERS.name: CLUSTERS}
"""Written by `collect` beside the landing tables, and read at its newest version. A warehouse of an earlier rackspan lacks it."""

HISTORY: Final[Mapping[str, Table]] = {table.name: table for table in (JUDGED, RUNS)}


VIEWS: Final = ("current_findings", "risk_by_topic", "racks_survived", "incidents")
"""Queries over these tables, by their function in changes/views.py. They are stored nowhere."""


def table_named(name: str) -> Table:
    """The table of that name. Errors: UsageError with the names of all tables."""
    if name in VIEWS:
        raise UsageError(
            f"table {name!r}: a query and no table; rackspan.pipeline.changes.views.{name} has it in SQL for Spark, DuckDB and Polars, see "
            "docs/how-to/pipeline.md"
        )
    every = {**DERIVED, **LANDING, **HISTORY, **NAMES}
    if name not in every:
        raise UsageError(f"table {name!r}: there is none of that name; choose one of {', '.join(every)}")
    return every[name]
