"""Reads and writes headers and bodies: of requests and responses, for a server and for a client.

Two exceptions of Kafka's: the client id of a request header is never compact; the header of an ApiVersions response always
has version 0, so that a client whose version is unknown here can read the error.
"""

from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from rackspan.errors import MalformedRequest
from rackspan.kafka_bytes import NO_TAGS, ByteReader, nullable_string
from rackspan.kafka_bytes.primitives import MAX_ELEMENTS
from rackspan.wire.apis import ApiKey
from rackspan.wire.compiled import element_writer, read_value, skip_tags, struct_reader, struct_writer
from rackspan.wire.framing import Request
from rackspan.wire.kio_schemas import KioIndexError
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.schema import is_flexible, request_shape, response_shape

_HEADER: Final = Struct(">hhih")
_HEADER_START: Final = Struct(">hhi")
_CORRELATION: Final = Struct(">i")

_LEAST_ELEMENT_BYTES: Final = 4
"""Of the arrays that make a response large: ids of brokers. What a client reads is of a broker that it chose."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The header of a request. The body begins at byte `body_at` of the request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_at: int


def peek_header(request: Request) -> tuple[int, int, int]:
    """API key, version and correlation id, which every version has in the same place. Errors: MalformedRequest."""
    if len(request) < _HEADER.size:
        raise MalformedRequest(f"a request of {len(request)} bytes; its header alone takes {_HEADER.size}")
    api_key, version, correlation, _ = _HEADER.unpack_from(request)
    return api_key, version, correlation


def read_header(request: Request) -> RequestHeader:
    """Errors: MalformedRequest, also for an API or version without a schema."""
    api_key, version, correlation = peek_header(request)
    try:
        flexible = is_flexible(api_key, version)
    except KioIndexError as error:
        raise MalformedRequest(f"API key {api_key} version {version}: {error}") from error
    reader = ByteReader(request, _HEADER.size - 2)
    client_id = read_value(ByteReader.nullable_string, reader)
    if flexible:
        read_value(skip_tags, reader)
    return RequestHeader(api_key, version, correlation, client_id, reader.at)


def read_body(request: Request, header: RequestHeader, most_elements: int = MAX_ELEMENTS) -> Any:
    """The request, of its class in messages/, with at most so many elements of all arrays. Errors: MalformedRequest."""
    shape = request_shape(ApiKey(header.api_key), header.api_version)
    reader = ByteReader(request, header.body_at)
    reader.elements_left = most_elements
    return read_value(struct_reader(shape), reader)


def write_response(header: RequestHeader, response: WireStruct) -> list[bytes]:
    """A response's bytes, unframed, as parts: its header first."""
    return [response_header(header), *write_body(ApiKey(header.api_key), header.api_version, response)]


def write_body(api_key: ApiKey, version: int, response: WireStruct) -> list[bytes]:
    """A response's bytes without its header, as parts."""
    parts: list[bytes] = []
    struct_writer(response_shape(api_key, version))(parts, response)
    return parts


def write_element(api_key: ApiKey, version: int, field: str, element: WireStruct) -> bytes:
    """One element of a response's array. Arrays of structs may hold such bytes in place of a struct."""
    parts: list[bytes] = []
    element_writer(response_shape(api_key, version), field)(parts, element)
    return b"".join(parts)


def response_header(header: RequestHeader) -> bytes:
    correlation = _CORRELATION.pack(header.correlation_id)
    return correlation + NO_TAGS if response_has_tags(header.api_key, header.api_version) else correlation


def response_has_tags(api_key: int, version: int) -> bool:
    """Whether tagged fields follow the correlation id in the header of the response."""
    return api_key != ApiKey.API_VERSIONS and is_flexible(api_key, version)


def write_request(
    api_key: ApiKey, version: int, correlation_id: int, client_id: str | None, request: WireStruct
) -> list[bytes]:
    """A request's bytes, unframed, as parts: its header first."""
    header = _HEADER_START.pack(api_key, version, correlation_id) + nullable_string(client_id)
    parts = [header + NO_TAGS if is_flexible(api_key, version) else header]
    struct_writer(request_shape(api_key, version))(parts, request)
    return parts


def read_response(api_key: ApiKey, version: int, response: Request) -> Any:
    """The response, of its class in messages/. `response` is unframed. Errors: MalformedRequest."""
    reader = ByteReader(response, _CORRELATION.size)
    # Metadata of a million partitions has seven million elements.
    reader.elements_left = max(reader.elements_left, len(response) // _LEAST_ELEMENT_BYTES)
    try:
        tags, shape = response_has_tags(api_key, version), response_shape(api_key, version)
    except KioIndexError as error:
        raise MalformedRequest(f"version {version} of {api_key.name} is not known here") from error
    if tags:
        read_value(skip_tags, reader)
    return read_value(struct_reader(shape), reader)
