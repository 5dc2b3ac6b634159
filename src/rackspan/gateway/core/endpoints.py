"""Brokers' addresses in responses, replaced by those of the gateway's listeners.

Only what holds an address is parsed: of a Metadata response the array of brokers at its beginning, which costs by brokers
and not by partitions. Racks are replaced if a rack locator is configured.
"""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from rackspan.errors import MalformedBytes
from rackspan.gateway.core.apis import OFFERED, clipped
from rackspan.kafka_bytes import NO_TAGS, ByteReader, compact_string, int32, string, unsigned_varint
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_response, response_has_tags, write_body
from rackspan.wire.framing import Piece
from rackspan.wire.messages.api_versions import ApiVersion, ApiVersionsResponseData
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.brokers import DescribeClusterResponseData
from rackspan.wire.messages.describe_quorum import DescribeQuorumResponseData
from rackspan.wire.messages.groups import FindCoordinatorResponseData
from rackspan.wire.messages.produce import ProduceResponseData

_CORRELATION_BYTES: Final = 4
_ERROR: Final = Struct(">h")

ENDPOINT_TYPE_BROKERS: Final = 1

_NODES_SINCE: Final = 2
"""The first version of DescribeQuorum whose response has the controllers' addresses."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where clients find each broker, as functions of the broker's id and what a response has of it."""

    advertised: Callable[[int, str, int], tuple[str, int]]
    """From the broker's own host and port to those of its listener, which is opened if it is new."""
    rack: Callable[[int, str | None], str | None]
    """From the registered rack to the one for clients: another one if a rack locator is configured."""


@dataclass(frozen=True, slots=True)
class MetadataHead:
    """The beginning of a Metadata response, written again. `read` is how many bytes of the response it replaces."""

    read: int
    data: bytes


def metadata_head(version: int, response: Piece, addresses: Addresses) -> MetadataHead | None:
    """Rewrite the array of brokers. `response` is unframed and may lack its end; None if it ends too early."""
    reader = ByteReader(response)
    try:
        return _metadata_head(version, reader, addresses)
    except MalformedBytes:
        return None


def _metadata_head(version: int, reader: ByteReader, addresses: Addresses) -> MetadataHead:
    flexible = version >= 9
    reader.skip(_CORRELATION_BYTES)
    if flexible:
        reader.tagged_fields()
    if version >= 3:
        reader.skip(4)  # throttle_time_ms
    kept = reader.at
    count = reader.compact_length() if flexible else reader.int32()
    parts = [unsigned_varint(count + 1) if flexible else int32(count)]
    brokers = [_metadata_broker(version, reader) for _ in range(count)]
    for broker, host, port, rack in brokers:
        host, port = addresses.advertised(broker, host, port)
        parts += (int32(broker), _text(host, flexible), int32(port))
        if version >= 1:
            parts.append(_text(addresses.rack(broker, rack), flexible))
        if flexible:
            parts.append(NO_TAGS)
    return MetadataHead(reader.at, bytes(reader.data[:kept]) + b"".join(parts))


def _metadata_broker(version: int, reader: ByteReader) -> tuple[int, str, int, str | None]:
    flexible = version >= 9
    broker = reader.int32()
    host = reader.compact_string() if flexible else reader.string()
    port = reader.int32()
    rack = None
    if version >= 1:
        rack = reader.compact_nullable_string() if flexible else reader.nullable_string()
    if flexible:
        reader.tagged_fields()
    return broker, host, port, rack


def _text(value: str | None, flexible: bool) -> bytes:
    if value is None:
        return b"\x00" if flexible else b"\xff\xff"
    return compact_string(value) if flexible else string(value)


def with_addresses(api_key: int, version: int, response: Piece, addresses: Addresses) -> list[Piece]:
    """A response of `Treatment.WHOLE`, unframed, with the gateway's addresses. Errors: MalformedRequest."""
    return _WHOLE[api_key](version, memoryview(response), addresses)


def _written(api_key: ApiKey, version: int, response: memoryview, body: WireStruct) -> list[Piece]:
    """The body behind the response's own header."""
    header = _CORRELATION_BYTES + int(response_has_tags(api_key, version))
    return [bytes(response[:header]), *write_body(api_key, version, body)]


def _find_coordinator(version: int, response: memoryview, addresses: Addresses) -> list[Piece]:
    found: FindCoordinatorResponseData = read_response(ApiKey.FIND_COORDINATOR, version, response)
    coordinators: list[Any] = [*found.coordinators, found]  # Before version 4 the response itself is the coordinator.
    for coordinator in coordinators:
        if coordinator.node_id >= 0 and coordinator.host:
            coordinator.host, coordinator.port = addresses.advertised(
                coordinator.node_id, coordinator.host, coordinator.port
            )
    return _written(ApiKey.FIND_COORDINATOR, version, response, found)


def _describe_cluster(version: int, response: memoryview, addresses: Addresses) -> list[Piece]:
    described: DescribeClusterResponseData = read_response(ApiKey.DESCRIBE_CLUSTER, version, response)
    if described.endpoint_type == ENDPOINT_TYPE_BROKERS:
        for broker in described.brokers:
            broker.host, broker.port = addresses.advertised(broker.broker_id, broker.host, broker.port)
            broker.rack = addresses.rack(broker.broker_id, broker.rack)
    return _written(ApiKey.DESCRIBE_CLUSTER, version, response, described)


def _describe_quorum(version: int, response: memoryview, _addresses: Addresses) -> list[Piece]:
    """Without the controllers' addresses: there is no listener for a controller."""
    if version < _NODES_SINCE:
        return [response]
    described: DescribeQuorumResponseData = read_response(ApiKey.DESCRIBE_QUORUM, version, response)
    described.nodes = ()
    return _written(ApiKey.DESCRIBE_QUORUM, version, response, described)


def _produce(version: int, response: memoryview, addresses: Addresses) -> list[Piece]:
    if version < 10:
        return [response]
    produced: ProduceResponseData = read_response(ApiKey.PRODUCE, version, response)
    if not produced.node_endpoints:
        return [response]
    set_endpoints(produced, addresses)
    return _written(ApiKey.PRODUCE, version, response, produced)


def set_endpoints(produced: ProduceResponseData, addresses: Addresses) -> None:
    """Replace the addresses of new leaders (KIP-951)."""
    for leader in produced.node_endpoints:
        leader.host, leader.port = addresses.advertised(leader.node_id, leader.host, leader.port)
        leader.rack = addresses.rack(leader.node_id, leader.rack)


def _api_versions(version: int, response: memoryview, _addresses: Addresses) -> list[Piece]:
    (error,) = _ERROR.unpack_from(response, _CORRELATION_BYTES) if len(response) > _CORRELATION_BYTES + 1 else (0,)
    # To a version that the broker lacks it responds with version 0.
    readable = 0 if error == ErrorCode.UNSUPPORTED_VERSION else version
    known = OFFERED[ApiKey.API_VERSIONS]
    if readable >= known.stop:
        # Known to client and broker, not here: the client falls back to a version of the range (KIP-511).
        api = ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=known.start, max_version=known.stop - 1)
        refused = ApiVersionsResponseData(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[api])
        return _written(ApiKey.API_VERSIONS, 0, response, refused)
    offered: ApiVersionsResponseData = read_response(ApiKey.API_VERSIONS, readable, response)
    offered.api_keys = clipped(offered.api_keys)
    return _written(ApiKey.API_VERSIONS, readable, response, offered)


def rebootstrap_required(version: int, response: Piece) -> list[Piece]:
    """An ApiVersions response, unframed, in place of the broker's: the client has connected to another broker than it meant (KIP-1242)."""
    refused = ApiVersionsResponseData(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    return _written(ApiKey.API_VERSIONS, version, memoryview(response), refused)


_WHOLE: Final[dict[int, Callable[[int, memoryview, Addresses], list[Piece]]]] = {
    ApiKey.FIND_COORDINATOR: _find_coordinator,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_QUORUM: _describe_quorum,
    ApiKey.PRODUCE: _produce,
    ApiKey.API_VERSIONS: _api_versions,
}
