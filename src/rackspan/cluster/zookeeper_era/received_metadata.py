"""The metadata that reaches a broker of an older protocol version: brokers in the UpdateMetadata of that version (KIP-36).

"Controller will include version specific broker information in its wire format so that broker with old version can still
interoperate with broker with new version and rack." Brokers of the embedded cluster fetch the metadata log, as under KRaft.
Each registration in it is written and read here in the bytes of the receiver's version, so that versions 0 and 1 lose the rack.
"""

from dataclasses import replace
from typing import TypeVar

from rackspan.acks import rack_bits
from rackspan.cluster.core.messages import FetchMetadataResponse
from rackspan.cluster.core.metadata import BrokerImage, BrokerRegistered, MetadataImage
from rackspan.cluster.zookeeper_era.protocol_version import update_metadata_version
from rackspan.cluster.zookeeper_era.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndPoint,
    UpdateMetadataRequest,
    read_update_metadata,
    write_update_metadata,
)
from rackspan.model import Broker, BrokerId, RackId

RegistrationT = TypeVar("RegistrationT", BrokerImage, BrokerRegistered)


def received_metadata(message: FetchMetadataResponse, protocol_version: str) -> FetchMetadataResponse:
    """The response as a broker of the protocol version can read it."""
    version = update_metadata_version(protocol_version)
    records = tuple(
        _received(record, record.broker, version) if isinstance(record, BrokerRegistered) else record
        for record in message.records
    )
    image = None if message.image is None else _received_image(message.image, version)
    return replace(message, records=records, image=image)


def _received_image(image: MetadataImage, version: int) -> MetadataImage:
    brokers = {broker.id: _received(broker, broker.id, version) for broker in image.brokers.values()}
    racks = rack_bits(Broker(broker.id, broker.rack) for broker in brokers.values())
    return replace(image, brokers=brokers, racks=racks)


def _received(registered: RegistrationT, broker: BrokerId, version: int) -> RegistrationT:
    point = UpdateMetadataEndPoint(registered.port, registered.host)
    sent = UpdateMetadataRequest(0, None, 0, 0, (), (UpdateMetadataBroker(broker, (point,), registered.rack),))
    (received,) = read_update_metadata(write_update_metadata(sent, version)).brokers
    rack = None if received.rack is None else RackId(received.rack)
    return replace(registered, host=received.end_points[0].host, port=received.end_points[0].port, rack=rack)
