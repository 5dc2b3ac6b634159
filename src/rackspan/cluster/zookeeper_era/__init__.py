"""Formats in which brokers of the ZooKeeper era exchanged racks: KIP-36, before KRaft.

Begin with protocol_version.py (which version of Kafka has which format), then registration_json.py and
update_metadata.py. The embedded cluster is a KRaft one. It imports this package only for a broker whose
`inter.broker.protocol.version` was changed, so that the rolling upgrade of KIP-36 ("Compatibility, Deprecation, and
Migration Plan") can be tested: tests/cluster/test_rolling_upgrade.py. Its registration passes through the JSON of its version,
and what it receives of other brokers through the UpdateMetadata of its version (received_metadata.py). docs/kips.md maps
each statement to its test. Pure.
"""

from rackspan.cluster.zookeeper_era.protocol_version import registration_version, update_metadata_version
from rackspan.cluster.zookeeper_era.received_metadata import received_metadata
from rackspan.cluster.zookeeper_era.registration_json import (
    Registration,
    RegistrationReader,
    read_registration,
    registered_rack,
    write_registration,
)
from rackspan.cluster.zookeeper_era.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndPoint,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    read_broker,
    read_update_metadata,
    write_broker,
    write_update_metadata,
)

__all__ = [
    "Registration",
    "RegistrationReader",
    "UpdateMetadataBroker",
    "UpdateMetadataEndPoint",
    "UpdateMetadataPartition",
    "UpdateMetadataRequest",
    "read_broker",
    "read_registration",
    "read_update_metadata",
    "received_metadata",
    "registered_rack",
    "registration_version",
    "update_metadata_version",
    "write_broker",
    "write_registration",
    "write_update_metadata",
]
