"""One request over a socket and its answer as plain values: for what no client shows."""

import socket
from struct import pack
from typing import Any, Final

from kafka.record import MemoryRecordsBuilder

from rackspan.wire.codec import is_flexible
from rackspan.wire.reading import Cursor, read_value, skip_tags, struct_reader
from rackspan.wire.schema import request_shape, response_shape
from rackspan.wire.writing import NO_TAGS, struct_writer

PRODUCE: Final = 0
_NO_CLIENT_ID: Final = -1


def asked(address: str, api_key: int, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """HOST:PORT answers one request on a connection of its own."""
    flexible = is_flexible(api_key, version)
    parts = [pack(">hhih", api_key, version, 1, _NO_CLIENT_ID), NO_TAGS if flexible else b""]
    struct_writer(request_shape(api_key, version))(parts, body)
    request = b"".join(parts)
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(pack(">i", len(request)) + request)
        answer = _received(connection, int.from_bytes(_received(connection, 4), "big"))
    cursor = Cursor(answer, 4)
    if flexible:
        skip_tags(cursor)
    values: dict[str, Any] = read_value(struct_reader(response_shape(api_key, version)), cursor)
    return values


def produced(
    address: str, topic: str, *, version: int = 9, acks: int = -1, partition: int = 0, timeout_ms: int = 5_000
) -> dict[str, Any]:
    """What the answer says of the one partition a record was sent to."""
    data = {"index": partition, "records": [batch(b"x")]}
    body = {
        "transactional_id": None,
        "acks": acks,
        "timeout": timeout_ms,
        "topic_data": [{"name": topic, "partition_data": [data]}],
    }
    answer: dict[str, Any] = asked(address, PRODUCE, version, body)["responses"][0]["partition_responses"][0]
    return answer


def batch(value: bytes) -> bytes:
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=100_000)
    builder.append(timestamp=None, key=None, value=value)
    builder.close()
    return bytes(builder.buffer())


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        assert more, "the connection was closed"
        data += more
    return data
