"""The derived tables of hours: traffic and its bill, groups, what to do, and seconds in states."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from rackspan.pipeline.schemas.columns import (
    GROUP_ID,
    PARTITION,
    RACK_NAMES,
    TIMESTAMP,
    TOPIC,
    Table,
    TableColumn,
    hourly_table,
)

_SOURCE_RACK: Final = TableColumn(
    "source_rack", pa.string(), "The rack that the bytes left; null where not known.", True
)
_DESTINATION_RACK: Final = TableColumn(
    "destination_rack", pa.string(), "The rack that they reached; null where not known.", True
)
_PATH: Final = TableColumn(
    "path", pa.string(), "`produce`, `replicate`, `consume`, `follower-fetch`, `restore` or `reassign`."
)
_READER: Final = TableColumn(
    "group_id", pa.string(), "The group that read or restored them; null on other paths.", True
)
_BASIS: Final = TableColumn(
    "basis",
    pa.string(),
    "`measured` (counted by gateways), `derived` (it follows from bytes in and the racks of both sides), `derived-lower-bound` (brokers counted it: at least "
    "as much passed) or `estimated` (by the assumption).",
)
_READ_AT: Final = TableColumn("read_at", TIMESTAMP, "The last reading of the hour, of which the row is.")

TRAFFIC: Final = hourly_table(
    "traffic",
    "The bytes that passed from rack to rack within each hour, as `rackspan traffic` derives them from each two readings in "
    "succession. What passed between two readings on both sides of the end of an hour is divided by time. Bytes within one rack "
    "have rows too.",
    ("path", "topic", "group_id", "source_rack", "destination_rack", "basis", "assumption"),
    (
        _PATH,
        TOPIC,
        _READER,
        _SOURCE_RACK,
        _DESTINATION_RACK,
        _BASIS,
        TableColumn(
            "assumption",
            pa.string(),
            "What the number rests on, in words; also that bytes are divided evenly over a gap between readings.",
        ),
        TableColumn(
            "bytes", pa.int64(), "The bytes, as far as they are known; null where they are known of no part.", True
        ),
        TableColumn(
            "complete",
            pa.bool_(),
            "Whether they are known of all partitions and of the whole hour that readings cover. A topic created again, a log that was "
            "cut off, or offsets that could not be read leave a part unknown.",
        ),
    ),
    version=3,
)

BILL: Final = hourly_table(
    "bill",
    "What the bytes that crossed racks cost, by the price file of the run. Empty without one.",
    ("path", "topic", "group_id", "basis", "reason"),
    (
        _PATH,
        TOPIC,
        _READER,
        _BASIS,
        TableColumn("bytes", pa.int64(), "The bytes that crossed racks, or may have; null where not known.", True),
        TableColumn(
            "money", pa.float64(), "Their price, both sides together; null where not known, for `reason`.", True
        ),
        TableColumn("currency", pa.string(), "The currency of the price file."),
        TableColumn("reason", pa.string(), "Why the price is not known; null where it is.", True),
    ),
    version=3,
)

GROUPS: Final = hourly_table(
    "groups",
    "The groups of all four kinds at the last reading of each hour.",
    ("group_id",),
    (
        GROUP_ID,
        _READ_AT,
        TableColumn("kind", pa.string(), "`classic`, `consumer`, `share` or `streams`."),
        TableColumn("state", pa.string(), "Kafka's own word, such as `Stable`."),
        TableColumn("protocol", pa.string(), "The name of its assignor; empty where there is none."),
        TableColumn("members", pa.int32(), "Its members."),
        TableColumn("members_without_rack", pa.int32(), "Those of them of whom no rack is known."),
        TableColumn("member_racks", RACK_NAMES, "The distinct racks that members declare, sorted by name."),
        TableColumn("topics", pa.list_(pa.string()), "The topics that it reads or has committed offsets of, sorted."),
        TableColumn("partitions", pa.int32(), "The partitions that are assigned to members."),
        TableColumn(
            "lag",
            pa.int64(),
            "The sum of `group_lag`; null where it has no offsets, or one lag is not known.",
            True,
        ),
    ),
)

GROUP_LAG: Final = hourly_table(
    "group_lag",
    "How far the committed offset of each group was behind the end of each partition.",
    ("group_id", "topic", "partition"),
    (
        GROUP_ID,
        TOPIC,
        PARTITION,
        _READ_AT,
        TableColumn("committed_offset", pa.int64(), "The offset of the next record that the group reads."),
        TableColumn("start_offset", pa.int64(), "The earliest offset; null where unknown.", True),
        TableColumn("end_offset", pa.int64(), "The offset of the next record; null where unknown.", True),
        TableColumn(
            "lag",
            pa.int64(),
            "The records that are left to be read, without those that retention has deleted; null where not known, and where "
            "the committed offset is beyond the end, since the log was cut off or the topic created again.",
            True,
        ),
        TableColumn(
            "expired",
            pa.int64(),
            "The records that retention deleted before the group read them; null where not known.",
            True,
        ),
        TableColumn("lag_max", pa.int64(), "The most lag at a reading of the hour; null where none is known.", True),
    ),
)

CONSUMER_GROUPS: Final = hourly_table(
    "consumer_groups",
    "What each group with members reads across racks now, and would read by other strategies. Share groups gain nothing by them, "
    "and of a streams group `stream_groups` has the assignments.",
    ("group_id", "strategy"),
    (
        GROUP_ID,
        TableColumn(
            "strategy",
            pa.string(),
            "`now`; `follower-fetch` (every member names its rack, and brokers select replicas by rack: KIP-392); `assignment` (the "
            "balanced assignment that has the most partitions in their reader's rack: KIP-881, by KIP-925's method); `both`.",
        ),
        _READ_AT,
        TableColumn("kind", pa.string(), "`classic`, `consumer`, `share` or `streams`."),
        TableColumn("members", pa.int32(), "Its members."),
        TableColumn("partitions", pa.int32(), "The partitions that they read, a partition once for each reader."),
        TableColumn(
            "partitions_across",
            pa.int32(),
            "Those served by a replica in another rack (KIP-392 where brokers select replicas by rack); null where a rack is not known.",
            True,
        ),
        TableColumn("bytes", pa.int64(), "What it read within the hour; null where no part is known.", True),
        TableColumn(
            "bytes_across",
            pa.int64(),
            "What of it crossed racks, or would have; null where it is not known of a part.",
            True,
        ),
    ),
)

STREAM_GROUPS: Final = hourly_table(
    "stream_groups",
    "What the active tasks of each Kafka Streams group with members read across racks, as they run at the last reading of each hour and as "
    "Kafka's assignor would assign them by each strategy (KIP-925), as `rackspan streams audit` finds it. KIP-925 counts a partition as local "
    "if any replica is in the rack, whether or not brokers let clients read from it; bytes go by the replica that serves each partition, with "
    "the `replica.selector.class` that brokers have. Groups of the streams protocol "
    "(KIP-1071) are described by brokers, which look at no racks themselves; of groups of the classic protocol readings have no tasks.",
    ("group_id", "strategy"),
    (
        GROUP_ID,
        TableColumn(
            "strategy",
            pa.string(),
            "`rack.aware.assignment.strategy`: `none`, `min_traffic` or `balance_subtopology`.",
        ),
        _READ_AT,
        TableColumn("kind", pa.string(), "`streams`, or `classic`."),
        TableColumn("clients", pa.int32(), "Its processes; null where not known.", True),
        TableColumn("tasks", pa.int32(), "Its active tasks; null where not known.", True),
        TableColumn(
            "tasks_across_now",
            pa.int32(),
            "Those with a source partition that has no replica in the rack of their process; null where a rack is not known.",
            True,
        ),
        TableColumn("tasks_across_best", pa.int32(), "The same by the strategy.", True),
        TableColumn(
            "tasks_moved", pa.int32(), "The active tasks that would run elsewhere by it; null where not known.", True
        ),
        TableColumn(
            "partitions_across_now",
            pa.int32(),
            "The source partitions of active tasks without a replica in the rack of their process; null where not known.",
            True,
        ),
        TableColumn("partitions_across_best", pa.int32(), "The same by the strategy.", True),
        TableColumn(
            "standby_across_now",
            pa.int32(),
            "The changelog partitions of standby tasks without a replica in the rack of their process; null where not known.",
            True,
        ),
        TableColumn("standby_across_best", pa.int32(), "The same by the strategy.", True),
        TableColumn(
            "cost_now",
            pa.int64(),
            "KIP-925's traffic cost of the active tasks: 10 for each partition across racks of a task with state, 1 of one without; null "
            "where not known.",
            True,
        ),
        TableColumn("cost_best", pa.int64(), "The same by the strategy.", True),
        TableColumn("bytes", pa.int64(), "What active tasks read within the hour; null where no part is known.", True),
        TableColumn(
            "bytes_across_now",
            pa.int64(),
            "What of it crossed racks (KIP-392 where brokers select replicas by rack); null where it is not known of a part.",
            True,
        ),
        TableColumn("bytes_across_best", pa.int64(), "What of it would have by the strategy.", True),
        TableColumn("known", pa.bool_(), "Whether both costs are known."),
        TableColumn(
            "reason",
            pa.string(),
            "Why they are not, or why racks do not count in the strategy's assignment; null where they do.",
            True,
        ),
    ),
    version=2,
)

CLIENT_FINDINGS: Final = hourly_table(
    "client_findings",
    "Why members of groups read across racks, as `rackspan clients` finds it at the last reading of each hour.",
    ("group_id", "cause"),
    (
        GROUP_ID,
        TableColumn("cause", pa.string(), "The cause, such as `no-client-rack`."),
        _READ_AT,
        TableColumn("members", pa.list_(pa.string()), "The members concerned, by id."),
        TableColumn("topics", pa.list_(pa.string()), "The topics that they read because of it."),
        TableColumn("partitions", pa.int32(), "What they read because of it, a partition once for each reader."),
        TableColumn("reason", pa.string(), "Why, in words."),
        TableColumn("remedy", pa.string(), "What removes it: a rackspan command or a step that the operator takes."),
    ),
)

ADVICE: Final = hourly_table(
    "advice",
    "What to do first, as `rackspan advise` ranks it at the last reading of each hour, by the traffic since the reading before: risks, then money.",
    ("rank",),
    (
        TableColumn("rank", pa.int32(), "The place in the order of what to do, from 1."),
        _READ_AT,
        TableColumn("concern", pa.string(), "`risk`, `warning` or `money`."),
        TableColumn("kind", pa.string(), "The constraint that is broken, or the saving."),
        TableColumn("topic", pa.string(), "The topic; null where it is about more than one, or none.", True),
        TableColumn("group_id", pa.string(), "The group; null where it is about more than one, or none.", True),
        TableColumn("reason", pa.string(), "Why, in words."),
        TableColumn(
            "bytes_a_month", pa.int64(), "Bytes less across racks in 30 days at that rate; null of risks.", True
        ),
        TableColumn(
            "money_a_month", pa.float64(), "Their price by the price file of the run; null where not known.", True
        ),
        TableColumn("currency", pa.string(), "The currency of the price file; null without a price.", True),
        TableColumn("command", pa.string(), "What does it: a command, or a step that the operator takes."),
        TableColumn("cost", pa.string(), "What doing it takes; empty where nothing is known."),
        TableColumn("undo", pa.string(), "How to undo it; empty where nothing is to be undone."),
        TableColumn("assumption", pa.string(), "What the bytes of a saving rest on; empty of risks."),
    ),
)

DURABILITY_TIME: Final = hourly_table(
    "durability_time",
    "The seconds of each hour in which a partition was not `ok`, and in which the loss of a rack would not have been survived. An hour has "
    "rows once its cluster has a snapshot after it. A state lasts until the next snapshot, but not beyond `known_until` of its own: what is beyond that is "
    "`unknown`. `known` and `unknown` add up to the seconds of the hour, from the first snapshot of the cluster on. The rest of the seconds "
    "that are `known` a partition was `ok`, or not there.",
    ("topic", "partition", "state", "lost_rack"),
    (
        TableColumn("topic", pa.string(), "The topic; null in rows about the cluster.", True),
        TableColumn(
            "partition", pa.int32(), "The partition's id within its topic; null in rows about the cluster.", True
        ),
        TableColumn(
            "state",
            pa.string(),
            "A state of `partition_durability` other than `ok`; in rows about the cluster `not-survived`, `known` or `unknown`.",
        ),
        TableColumn(
            "lost_rack",
            pa.string(),
            "In rows `not-survived` the rack whose loss would have harmed something; else null.",
            True,
        ),
        TableColumn("seconds", pa.float64(), "The seconds of the hour."),
    ),
    version=2,
)

REFUSALS: Final = hourly_table(
    "refusals",
    "What `min.insync.racks` refused: while a partition is `under-min-racks`, `acks=all` is refused, if brokers or a gateway enforce it, and else "
    "acknowledged by too few racks. One row for each topic and span of an hour; a span that lasts on continues at the start of the next hour. An hour has rows once its cluster has a snapshot after it.",
    ("topic", "since"),
    (
        TOPIC,
        TableColumn(
            "since", TIMESTAMP, "When the first snapshot that has it so was taken, or the start of the hour, in UTC."
        ),
        TableColumn(
            "until", TIMESTAMP, "When it was so no longer, or not known any more, or the end of the hour, in UTC."
        ),
        TableColumn("partitions", pa.int32(), "The most partitions of the topic that refused at a time."),
        TableColumn(
            "racks_missing", RACK_NAMES, "The racks of their replicas without a replica in sync, sorted by name."
        ),
    ),
    version=2,
)

HOURLY: Final[Mapping[str, Table]] = {
    table.name: table
    for table in (
        TRAFFIC,
        BILL,
        GROUPS,
        GROUP_LAG,
        CONSUMER_GROUPS,
        STREAM_GROUPS,
        CLIENT_FINDINGS,
        ADVICE,
        DURABILITY_TIME,
        REFUSALS,
    )
}
"""The derived tables of hours."""

OF_STATES: Final = frozenset({DURABILITY_TIME.name, REFUSALS.name})
"""Those that are made of stored states, once a snapshot after the hour is judged; the others are made of readings."""
