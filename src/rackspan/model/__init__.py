"""A cluster as values: brokers, racks, partitions in columns, and the snapshot that holds them all.

Begin with snapshot.py, then racks.py (the only place where racks are counted). Pure: it never reads a clock or a file.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.model.broker import Broker, Controller
    from rackspan.model.ids import NO_BROKER, UNNAMED_RACK, BrokerId, RackId, TopicName
    from rackspan.model.partitions import UNKNOWN_SIZE, Partition, PartitionColumns, columns
    from rackspan.model.racks import RackMap, UnrackedPolicy, rack_map
    from rackspan.model.snapshot import ClusterSnapshot
    from rackspan.model.topic import Topic
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "broker": ("Broker", "Controller"),
            "ids": ("NO_BROKER", "UNNAMED_RACK", "BrokerId", "RackId", "TopicName"),
            "partitions": ("UNKNOWN_SIZE", "Partition", "PartitionColumns", "columns"),
            "racks": ("RackMap", "UnrackedPolicy", "rack_map"),
            "snapshot": ("ClusterSnapshot",),
            "topic": ("Topic",),
        },
    )

__all__ = [
    "NO_BROKER",
    "UNKNOWN_SIZE",
    "UNNAMED_RACK",
    "Broker",
    "BrokerId",
    "ClusterSnapshot",
    "Controller",
    "Partition",
    "PartitionColumns",
    "RackId",
    "RackMap",
    "Topic",
    "TopicName",
    "UnrackedPolicy",
    "columns",
    "rack_map",
]
