"""UpdateMetadata (key 6), versions 0 to 2: the request by which a controller sent brokers the cluster's metadata (KIP-36).

    header   api key int16, version int16, correlation id int32, client id string
    body     controller id int32, controller epoch int32, partition states, brokers
    state    topic string, partition int32, controller epoch int32, leader int32, leader epoch int32, ISR [int32],
             ZooKeeper version int32, replicas [int32]
    broker   version 0: id int32, host string, port int32
             version 1: id int32, end points [port int32, host string, security protocol int16]
             version 2: as version 1, then the rack: a string, null where the broker has none

Written by hand, for kio begins with the versions that Kafka 4 still had.
"""

from dataclasses import dataclass
from typing import Final

from rackspan.errors import MalformedRequest
from rackspan.kafka_bytes import ByteReader, array, int16, int32, malformed_as, nullable_string, string

_API_KEY: Final = 6
_VERSIONS: Final = range(3)
_END_POINTS_FROM: Final = 1
_RACK_FROM: Final = 2


@dataclass(frozen=True, slots=True)
class UpdateMetadataEndPoint:
    """`protocol` is Kafka's id of a security protocol: 0 PLAINTEXT, 1 SSL."""

    port: int
    host: str
    protocol: int = 0


@dataclass(frozen=True, slots=True)
class UpdateMetadataBroker:
    """A broker's addresses and rack. Version 0 has its first end point alone."""

    id: int
    end_points: tuple[UpdateMetadataEndPoint, ...]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class UpdateMetadataPartition:
    """One partition's state."""

    topic: str
    partition: int
    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    zookeeper_version: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest:
    """One request with the correlation id and client id of its header."""

    correlation_id: int
    client_id: str | None
    controller_id: int
    controller_epoch: int
    partitions: tuple[UpdateMetadataPartition, ...]
    brokers: tuple[UpdateMetadataBroker, ...]


def write_update_metadata(request: UpdateMetadataRequest, version: int) -> bytes:
    """The request's bytes, without the size in front of them. Errors: ValueError for an unknown version."""
    if version not in _VERSIONS:
        raise ValueError(f"UpdateMetadata version {version}: 0 to 2 are written here")
    header = int16(_API_KEY) + int16(version) + int32(request.correlation_id) + nullable_string(request.client_id)
    return b"".join(
        (
            header,
            int32(request.controller_id) + int32(request.controller_epoch),
            array(map(_partition, request.partitions)),
            array(write_broker(broker, version) for broker in request.brokers),
        )
    )


def write_broker(broker: UpdateMetadataBroker, version: int) -> bytes:
    """One broker of the request: in versions 1 and 2 what Kafka's Broker.writeTo wrote."""
    if version < _END_POINTS_FROM:
        first = broker.end_points[0]
        return int32(broker.id) + string(first.host) + int32(first.port)
    rack = nullable_string(broker.rack) if version >= _RACK_FROM else b""
    return int32(broker.id) + array(map(_end_point, broker.end_points)) + rack


def _end_point(point: UpdateMetadataEndPoint) -> bytes:
    return int32(point.port) + string(point.host) + int16(point.protocol)


def _partition(state: UpdateMetadataPartition) -> bytes:
    numbers = (state.partition, state.controller_epoch, state.leader, state.leader_epoch)
    parts = [string(state.topic), *map(int32, numbers), array(map(int32, state.isr))]
    return b"".join([*parts, int32(state.zookeeper_version), array(map(int32, state.replicas))])


@malformed_as(lambda why: MalformedRequest(f"UpdateMetadata: {why}"))
def read_update_metadata(data: bytes) -> UpdateMetadataRequest:
    """The request, of any of the three versions. Errors: MalformedRequest."""
    reader = ByteReader(data)
    key, version = reader.int16(), reader.int16()
    if key != _API_KEY or version not in _VERSIONS:
        raise MalformedRequest(f"API key {key} version {version}: not UpdateMetadata 0 to 2")
    head = (reader.int32(), reader.nullable_string(), reader.int32(), reader.int32())
    partitions = reader.array(lambda: _read_partition(reader))
    brokers = reader.array(lambda: read_broker(reader, version))
    reader.end()
    return UpdateMetadataRequest(*head, tuple(partitions), tuple(brokers))


def read_broker(reader: ByteReader, version: int) -> UpdateMetadataBroker:
    """One broker of the request, as Kafka's Broker.readFrom. Errors: MalformedBytes."""
    if version < _END_POINTS_FROM:
        number, host, port = reader.int32(), reader.string(), reader.int32()
        return UpdateMetadataBroker(number, (UpdateMetadataEndPoint(port, host),))
    number, points = reader.int32(), reader.array(lambda: _read_end_point(reader))
    return UpdateMetadataBroker(number, tuple(points), reader.nullable_string() if version >= _RACK_FROM else None)


def _read_end_point(reader: ByteReader) -> UpdateMetadataEndPoint:
    return UpdateMetadataEndPoint(reader.int32(), reader.string(), reader.int16())


def _read_partition(reader: ByteReader) -> UpdateMetadataPartition:
    topic = reader.string()
    numbers = (reader.int32(), reader.int32(), reader.int32(), reader.int32())
    isr, zookeeper_version, replicas = reader.array(reader.int32), reader.int32(), reader.array(reader.int32)
    return UpdateMetadataPartition(topic, *numbers, tuple(isr), zookeeper_version, tuple(replicas))
