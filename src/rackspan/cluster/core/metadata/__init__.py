"""The cluster's metadata: the controller's records, and the image that results from applying them.

Begin with records.py, then image.py. Controller and brokers apply the same records. An image never changes.
"""

from rackspan.cluster.core.metadata.image import (
    EMPTY_IMAGE,
    BrokerImage,
    MetadataImage,
    TopicImage,
    apply_records,
)
from rackspan.cluster.core.metadata.partition import NO_LEADER, PartitionState
from rackspan.cluster.core.metadata.records import (
    BrokerChanged,
    BrokerRegistered,
    BrokerUnregistered,
    ClientQuotaSet,
    ConfigResource,
    ConfigSet,
    PartitionSet,
    ProducerIdsAllocated,
    QuotaEntity,
    Record,
    ScramCredentialSet,
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
    "ClientQuotaSet",
    "ConfigResource",
    "ConfigSet",
    "MetadataImage",
    "PartitionSet",
    "PartitionState",
    "ProducerIdsAllocated",
    "QuotaEntity",
    "Record",
    "ScramCredentialSet",
    "TopicCreated",
    "TopicDeleted",
    "TopicImage",
    "apply_records",
]
