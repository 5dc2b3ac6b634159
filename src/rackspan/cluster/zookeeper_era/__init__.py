"""Formats in which brokers of the ZooKeeper era exchanged racks: KIP-36, before KRaft.

Begin with protocol_version.py (which version of Kafka has which format), then registration_json.py and
update_metadata.py. The embedded cluster is a KRaft one. It imports this package only for a broker whose
`inter.broker.protocol.version` was changed, so that the rolling upgrade of KIP-36 ("Compatibility, Deprecation, and
Migration Plan") can be tested: tests/cluster/test_rolling_upgrade.py. UpdateMetadata is never sent: it stands for KIP-36's
"Changes to UpdateMetadata", byte by byte, and its reader and writer are for tests of other tools. docs/kips.md maps each
statement to its test. Pure.
"""

from rackspan.cluster.zookeeper_era.protocol_version import registration_version, update_metadata_version
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
    "registered_rack",
    "registration_version",
    "update_metadata_version",
    "write_broker",
    "write_registration",
    "write_update_metadata",
]
