"""The landing tables of readings: offsets, sizes of logs, groups and counters, which change all the time."""

from collections.abc import Mapping
from typing import Final

import pyarrow as pa

from rackspan.pipeline.schemas.columns import BROKER_IDS, GROUP_ID, PARTITION, TOPIC, Table, TableColumn, landing_table

READINGS: Final = landing_table(
    "readings",
    "The readings of volatile values, taken with some of the snapshots at a period of their own: `pipeline collect --traffic-every`. "
    "A reading is stored whole, in the six tables below, with the snapshot that has the racks, leaders and replicas of the same time.",
    (),
    (
        TableColumn(
            "period_seconds",
            pa.float64(),
            "The period of its collector: two readings further apart than three of them have a gap between them.",
        ),
        TableColumn(
            "partial", pa.list_(pa.string()), "In words what could not be read; empty where nothing is missing."
        ),
        TableColumn(
            "selectors",
            pa.map_(pa.int32(), pa.string()),
            "By broker id what `replica.selector.class` means there: `leader`, `rack-aware`, `other`. An unread broker is missing.",
        ),
    ),
)

LOGS: Final = landing_table(
    "logs",
    "The log of each partition at each reading.",
    ("topic", "partition"),
    (
        TOPIC,
        PARTITION,
        TableColumn("start_offset", pa.int64(), "The earliest offset, at the leader; null where unknown.", True),
        TableColumn(
            "end_offset", pa.int64(), "The offset of the next record, at the leader; null where unknown.", True
        ),
        TableColumn("replicas", BROKER_IDS, "The brokers that hold it, as in `partitions`."),
        TableColumn(
            "replica_bytes",
            pa.list_(pa.int64()),
            "The size of each of these replicas' logs, in the same order; a null among them where unknown.",
        ),
    ),
)

GROUP_DESCRIPTIONS: Final = landing_table(
    "group_descriptions",
    "The groups of all four kinds at each reading, as their coordinators describe them.",
    ("group_id",),
    (
        GROUP_ID,
        TableColumn("kind", pa.string(), "`classic`, `consumer`, `share` or `streams`."),
        TableColumn("state", pa.string(), "Kafka's own word, such as `Stable`."),
        TableColumn("protocol_type", pa.string(), "Of a classic group, such as `consumer`; empty where there is none."),
        TableColumn("protocol", pa.string(), "The name of its assignor; empty where there is none."),
        TableColumn("error_message", pa.string(), "Kafka's own, about the group; null without one.", True),
        TableColumn(
            "topology",
            pa.list_(
                pa.struct(
                    [
                        ("subtopology", pa.string()),
                        ("sources", pa.list_(pa.string())),
                        ("changelogs", pa.list_(pa.string())),
                    ]
                )
            ),
            "The sub-topologies of a streams group; empty for other kinds.",
        ),
    ),
)

_TASKS: Final = pa.list_(pa.struct([("subtopology", pa.string()), ("partitions", pa.list_(pa.int32()))]))

GROUP_MEMBERS: Final = landing_table(
    "group_members",
    "The members of groups at each reading.",
    ("group_id", "member_id"),
    (
        GROUP_ID,
        TableColumn("member_id", pa.string(), "The member, as its coordinator names it."),
        TableColumn("client_id", pa.string(), "Its `client.id`."),
        TableColumn("host", pa.string(), "Its address as the coordinator reports it."),
        TableColumn("rack", pa.string(), "The `client.rack` that it declared; null for none.", True),
        TableColumn("declares_rack", pa.bool_(), "Whether its protocol has a field for one."),
        TableColumn(
            "topics", pa.list_(pa.string()), "Those it subscribes to by name; null where that is not known.", True
        ),
        TableColumn(
            "assignment",
            pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())])),
            "The partitions that are assigned to it.",
        ),
        TableColumn("process_id", pa.string(), "Of a member of a streams group; null for other kinds.", True),
        TableColumn("active_tasks", _TASKS, "Of a member of a streams group; null for other kinds.", True),
        TableColumn("standby_tasks", _TASKS, "In the same way.", True),
        TableColumn("warmup_tasks", _TASKS, "In the same way.", True),
    ),
)

COMMITTED_OFFSETS: Final = landing_table(
    "committed_offsets",
    "The offsets that groups had committed at each reading. Share groups commit none.",
    ("group_id", "topic", "partition"),
    (
        GROUP_ID,
        TOPIC,
        PARTITION,
        TableColumn("committed_offset", pa.int64(), "The offset of the next record that the group reads."),
    ),
)

GATEWAY_COUNTERS: Final = landing_table(
    "gateway_counters",
    "The bytes that gateways had counted since they started, at each reading: `pipeline collect --counters`.",
    ("gateway", "path", "topic", "client_id", "source_rack", "destination_rack"),
    (
        TableColumn("gateway", pa.string(), "The URL of its metrics."),
        TableColumn("path", pa.string(), "`produce`, `consume` or `follower-fetch`."),
        TOPIC,
        TableColumn("client_id", pa.string(), "The `client.id` that the gateway counts by."),
        TableColumn("source_rack", pa.string(), "The rack that the bytes left; empty where not known."),
        TableColumn("destination_rack", pa.string(), "The rack that they reached; empty where not known."),
        TableColumn("bytes", pa.int64(), "The bytes of records since the gateway started."),
    ),
)

BROKER_COUNTERS: Final = landing_table(
    "broker_counters",
    "The bytes that brokers had sent to consumers since they started, at each reading, by the metrics of their exporters: `pipeline "
    "collect --counters`.",
    ("broker_id", "topic"),
    (
        TableColumn("broker_id", pa.int32(), "The broker."),
        TOPIC,
        TableColumn("bytes_out", pa.int64(), "`BytesOutPerSec` of the topic, as a count."),
    ),
)

OF_READINGS: Final[Mapping[str, Table]] = {
    table.name: table
    for table in (
        READINGS,
        LOGS,
        GROUP_DESCRIPTIONS,
        GROUP_MEMBERS,
        COMMITTED_OFFSETS,
        GATEWAY_COUNTERS,
        BROKER_COUNTERS,
    )
}
"""Each of their rows is stored at each reading."""
