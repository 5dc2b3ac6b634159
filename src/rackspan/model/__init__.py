"""A cluster as values: brokers, racks, partitions in columns, and the snapshot that holds them all.

Begin with snapshot.py, then racks.py (the only place where racks are counted). Pure: it never reads a clock or a file.
Depends on no other package.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.model.broker import RACK_AWARE_SELECTOR, REPLICA_SELECTOR, Broker, Controller
    from rackspan.model.ids import (
        INT32_MAX,
        INT64_MAX,
        NO_BROKER,
        UNNAMED_RACK,
        BrokerId,
        RackId,
        TopicName,
        TopicPartition,
        shown,
    )
    from rackspan.model.partitions import (
        UNKNOWN_SIZE,
        Bools,
        Int32s,
        Int64s,
        Partition,
        PartitionColumns,
        any_in_row,
        columns,
        count_in_row,
        lengths,
        padded_lists,
        unpadded,
    )
    from rackspan.model.racks import (
        NO_RACK,
        RackMap,
        UnrackedPolicy,
        counts_descending,
        distinct_racks,
        even_shares,
        even_spread,
        forcing_value,
        left_without_fullest,
        rack_map,
    )
    from rackspan.model.snapshot import ClusterSnapshot, ReadSnapshot
    from rackspan.model.topic import GATEWAY_CONFIG_TOPIC, MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, TOPIC_NAME_RULE, Topic
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "broker": ("RACK_AWARE_SELECTOR", "REPLICA_SELECTOR", "Broker", "Controller"),
            "ids": (
                "INT32_MAX",
                "INT64_MAX",
                "NO_BROKER",
                "UNNAMED_RACK",
                "BrokerId",
                "RackId",
                "TopicName",
                "TopicPartition",
                "shown",
            ),
            "partitions": (
                "UNKNOWN_SIZE",
                "Bools",
                "Int32s",
                "Int64s",
                "Partition",
                "PartitionColumns",
                "any_in_row",
                "columns",
                "count_in_row",
                "lengths",
                "padded_lists",
                "unpadded",
            ),
            "racks": (
                "NO_RACK",
                "RackMap",
                "UnrackedPolicy",
                "counts_descending",
                "distinct_racks",
                "even_shares",
                "even_spread",
                "forcing_value",
                "left_without_fullest",
                "rack_map",
            ),
            "snapshot": ("ClusterSnapshot", "ReadSnapshot"),
            "topic": ("GATEWAY_CONFIG_TOPIC", "MIN_INSYNC_RACKS", "MIN_INSYNC_REPLICAS", "TOPIC_NAME_RULE", "Topic"),
        },
    )

__all__ = [
    "GATEWAY_CONFIG_TOPIC",
    "INT32_MAX",
    "INT64_MAX",
    "MIN_INSYNC_RACKS",
    "MIN_INSYNC_REPLICAS",
    "NO_BROKER",
    "NO_RACK",
    "RACK_AWARE_SELECTOR",
    "REPLICA_SELECTOR",
    "TOPIC_NAME_RULE",
    "UNKNOWN_SIZE",
    "UNNAMED_RACK",
    "Bools",
    "Broker",
    "BrokerId",
    "ClusterSnapshot",
    "Controller",
    "Int32s",
    "Int64s",
    "Partition",
    "PartitionColumns",
    "RackId",
    "RackMap",
    "ReadSnapshot",
    "Topic",
    "TopicName",
    "TopicPartition",
    "UnrackedPolicy",
    "any_in_row",
    "columns",
    "count_in_row",
    "counts_descending",
    "distinct_racks",
    "even_shares",
    "even_spread",
    "forcing_value",
    "left_without_fullest",
    "lengths",
    "padded_lists",
    "rack_map",
    "shown",
    "unpadded",
]
