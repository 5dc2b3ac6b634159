"""Requests as bytes: framed, and sent over a socket to get the fields of a response that no client shows."""

import socket
from collections.abc import Sequence
from struct import pack
from typing import Any, Final

from kafka.record import MemoryRecordsBuilder

from rackspan.kafka_bytes import ByteReader
from rackspan.kafka_bytes.primitives import NO_TAGS
from rackspan.wire.apis import ApiKey
from rackspan.wire.compiled import read_value, skip_tags, struct_reader, struct_writer
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequestData,
    ProduceResponseData,
    TopicProduceData,
)
from rackspan.wire.schema import is_flexible, request_shape, response_shape
from tests.waiting import WITHIN_SECONDS

_NO_CLIENT_ID: Final = -1


def framed(parts: Sequence[bytes]) -> bytes:
    """One message with its size in front."""
    return b"".join((sum(map(len, parts)).to_bytes(4, "big"), *parts))


def request_frame(api_key: ApiKey, version: int, request: WireStruct) -> bytes:
    parts = [pack(">hhih", api_key, version, 1, _NO_CLIENT_ID), NO_TAGS if is_flexible(api_key, version) else b""]
    struct_writer(request_shape(api_key, version))(parts, request)
    return framed(parts)


def response_to(address: str, api_key: ApiKey, version: int, request: WireStruct) -> Any:
    """The response of HOST:PORT to one request, on a connection of its own."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), WITHIN_SECONDS) as connection:
        connection.sendall(request_frame(api_key, version, request))
        response = _received(connection, int.from_bytes(_received(connection, 4), "big"))
    reader = ByteReader(response, 4)
    if is_flexible(api_key, version):
        skip_tags(reader)
    return read_value(struct_reader(response_shape(api_key, version)), reader)


def produced(
    address: str, topic: str, *, version: int = 9, acks: int = -1, partition: int = 0, timeout_ms: int = 5_000
) -> PartitionProduceResponse:
    """The response for the one partition a record was sent to."""
    data = PartitionProduceData(index=partition, records=memoryview(batch(b"x")))
    request = ProduceRequestData(
        acks=acks, timeout=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    response: ProduceResponseData = response_to(address, ApiKey.PRODUCE, version, request)
    return response.responses[0].partition_responses[0]


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
