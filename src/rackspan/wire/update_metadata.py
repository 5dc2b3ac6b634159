"""UpdateMetadata (key 6), versions 0 to 2: how a controller of the ZooKeeper era told brokers of each other (KIP-36).

    header   api key int16, version int16, correlation id int32, client id string
    body     controller id int32, controller epoch int32, partition states, brokers
    state    topic string, partition int32, controller epoch int32, leader int32, leader epoch int32, ISR [int32],
             ZooKeeper version int32, replicas [int32]
    broker   version 0: id int32, host string, port int32
             version 1: id int32, end points [port int32, host string, security protocol int16]
             version 2: the same, and the rack: a string, null where there is none

A string is its length as int16 and its bytes in UTF-8, null the length −1 alone; an array its length as int32 and its
items. By hand, for kio begins with the versions that Kafka 4 still knew.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from struct import Struct, error
from typing import Final, TypeVar

from rackspan.errors import MalformedRequest

UPDATE_METADATA: Final = 6
VERSIONS: Final = range(3)
END_POINTS_FROM: Final = 1
RACK_FROM: Final = 2
NO_STRING: Final = -1

_INT16, _INT32 = Struct(">h"), Struct(">i")
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class EndPoint:
    """`protocol` is Kafka's id of a security protocol: 0 PLAINTEXT, 1 SSL."""

    port: int
    host: str
    protocol: int = 0


@dataclass(frozen=True, slots=True)
class WireBroker:
    """A broker as brokers are told of it; version 0 tells the first end point alone."""

    id: int
    end_points: tuple[EndPoint, ...]
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class WirePartition:
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
class UpdateMetadata:
    """One request, its header's correlation id and client id included."""

    correlation_id: int
    client_id: str | None
    controller_id: int
    controller_epoch: int
    partitions: tuple[WirePartition, ...]
    brokers: tuple[WireBroker, ...]


def write_update_metadata(request: UpdateMetadata, version: int) -> bytes:
    """As it travels, its size left out. Errors: ValueError for a version there is not."""
    if version not in VERSIONS:
        raise ValueError(f"UpdateMetadata version {version}: 0 to 2 are written here")
    parts = [_INT16.pack(UPDATE_METADATA), _INT16.pack(version), _INT32.pack(request.correlation_id)]
    parts += [_string(request.client_id), _INT32.pack(request.controller_id), _INT32.pack(request.controller_epoch)]
    parts += [_array(request.partitions, _partition)]
    parts += [_array(request.brokers, lambda broker: write_broker(broker, version))]
    return b"".join(parts)


def write_broker(broker: WireBroker, version: int) -> bytes:
    """One broker of the request: in versions 1 and 2 what Kafka's Broker.writeTo wrote."""
    if version < END_POINTS_FROM:
        first = broker.end_points[0]
        return _INT32.pack(broker.id) + _string(first.host) + _INT32.pack(first.port)
    rack = _string(broker.rack) if version >= RACK_FROM else b""
    return _INT32.pack(broker.id) + _array(broker.end_points, _end_point) + rack


def _end_point(point: EndPoint) -> bytes:
    return _INT32.pack(point.port) + _string(point.host) + _INT16.pack(point.protocol)


def _partition(one: WirePartition) -> bytes:
    numbers = (one.partition, one.controller_epoch, one.leader, one.leader_epoch)
    parts = [_string(one.topic), *map(_INT32.pack, numbers), _array(one.isr, _INT32.pack)]
    return b"".join([*parts, _INT32.pack(one.zookeeper_version), _array(one.replicas, _INT32.pack)])


def _string(text: str | None) -> bytes:
    if text is None:
        return _INT16.pack(NO_STRING)
    data = text.encode()
    return _INT16.pack(len(data)) + data


def _array(items: Iterable[Item], write: Callable[[Item], bytes]) -> bytes:
    written = [write(item) for item in items]
    return _INT32.pack(len(written)) + b"".join(written)


def read_update_metadata(data: bytes) -> UpdateMetadata:
    """The request, of any of the three versions. Errors: MalformedRequest."""
    reader = _Reader(data)
    try:
        return _read(reader)
    except (error, UnicodeDecodeError, IndexError) as cause:
        raise MalformedRequest(f"UpdateMetadata: cut short or wrong at byte {reader.at}: {cause}") from cause


def read_broker(data: bytes, version: int) -> WireBroker:
    """One broker by itself, as Kafka's Broker.readFrom. Errors: struct.error where bytes are missing."""
    return _Reader(data).broker(version)


def _read(reader: "_Reader") -> UpdateMetadata:
    key, version = reader.int16(), reader.int16()
    if key != UPDATE_METADATA or version not in VERSIONS:
        raise MalformedRequest(f"API key {key} version {version}: not UpdateMetadata 0 to 2")
    head = (reader.int32(), reader.string(), reader.int32(), reader.int32())
    partitions, brokers = reader.array(reader.partition), reader.array(lambda: reader.broker(version))
    if reader.at != len(reader.data):
        raise MalformedRequest(f"UpdateMetadata: {len(reader.data) - reader.at} bytes too many")
    return UpdateMetadata(*head, partitions, brokers)


class _Reader:
    """A place in the bytes that moves on as it is read from."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def int16(self) -> int:
        return self._number(_INT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def _number(self, kind: Struct) -> int:
        (value,) = kind.unpack_from(self.data, self.at)
        self.at += kind.size
        return int(value)

    def string(self) -> str | None:
        size = self.int16()
        if size == NO_STRING:
            return None
        if size < 0 or self.at + size > len(self.data):
            raise IndexError(f"a string of {size} bytes")
        text = self.data[self.at : self.at + size].decode()
        self.at += size
        return text

    def array(self, item: Callable[[], Item]) -> tuple[Item, ...]:
        return tuple(item() for _ in range(self.int32()))

    def end_point(self) -> EndPoint:
        return EndPoint(self.int32(), self.string() or "", self.int16())

    def broker(self, version: int) -> WireBroker:
        if version < END_POINTS_FROM:
            number, host, port = self.int32(), self.string() or "", self.int32()
            return WireBroker(number, (EndPoint(port, host),))
        number, points = self.int32(), self.array(self.end_point)
        return WireBroker(number, points, self.string() if version >= RACK_FROM else None)

    def partition(self) -> WirePartition:
        topic = self.string() or ""
        numbers = (self.int32(), self.int32(), self.int32(), self.int32())
        isr, zookeeper_version, replicas = self.array(self.int32), self.int32(), self.array(self.int32)
        return WirePartition(topic, *numbers, isr, zookeeper_version, replicas)
