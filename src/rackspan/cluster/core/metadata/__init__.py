"""The controller's metadata: what it records, and the image that controller and brokers fold from the same records.

Begin with records.py, then image.py. An image is a value; whoever holds one may keep it.
"""

from rackspan.cluster.core.metadata.image import (
    EMPTY_IMAGE,
    BrokerImage,
    MetadataImage,
    TopicImage,
    folded,
)
from rackspan.cluster.core.metadata.partition import NO_LEADER, PartitionState
from rackspan.cluster.core.metadata.records import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    ConfigResource,
    ConfigSet,
    PartitionSet,
    ProducerIdsAllocated,
    Record,
    ResourceType,
    TopicCreated,
    TopicDeleted,
)

__all__ = [
    "EMPTY_IMAGE",
    "NO_LEADER",
    "BrokerChanged",
    "BrokerImage",
    "BrokerRegistered",
    "BrokerUnregistered",
    "ConfigResource",
    "ConfigSet",
    "MetadataImage",
    "PartitionSet",
    "PartitionState",
    "ProducerIdsAllocated",
    "Record",
    "ResourceType",
    "TopicCreated",
    "TopicDeleted",
    "TopicImage",
    "folded",
]
