"""Kafka's protocol by hand, through kafka-python's message classes: exact versions, exact error codes, no retries."""

import importlib
import socket
import time
from collections.abc import Mapping, Sequence
from struct import pack, unpack
from typing import Any, Final, TypeAlias

from kafka.protocol.api_message import ApiMessage
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from tests.waiting import WITHIN_SECONDS

Body: TypeAlias = dict[str, Any]
Records: TypeAlias = list[Any]

CORRELATION: Final = 7


def _messages() -> Mapping[str, type[ApiMessage]]:
    found: dict[str, type[ApiMessage]] = {}
    for package in ("admin", "consumer", "metadata", "producer"):
        module = importlib.import_module(f"kafka.protocol.{package}")
        found |= {name: one for name, one in vars(module).items() if name.endswith(("Request", "Response"))}
    return found


MESSAGES: Final = _messages()


def send(address: str, api: str, version: int, body: Mapping[str, Any]) -> Body:
    """One request on a connection of its own, and its response as plain values. An response that never comes is {}."""
    request = _built(MESSAGES[f"{api}Request"]._struct, body, MESSAGES[f"{api}Request"], version)
    request.with_header(CORRELATION, "conformance")
    with connected(address) as link:
        link.sendall(request.encode(version=version, header=True, framed=True))
        if not request.expect_response():
            return {}
        response = MESSAGES[f"{api}Response"].decode(received(link), version=version, header=True)
    decoded: Body = response.to_dict(json=False)
    return decoded


def send_raw(address: str, request: bytes) -> bytes | None:
    """A request in bytes that the test made, size left out. None where the broker hung up without a word."""
    with connected(address) as link:
        link.sendall(pack(">i", len(request)) + request)
        try:
            return received(link)
        except ConnectionError:
            return None


def connected(address: str) -> socket.socket:
    host, port = address.split(":")
    return socket.create_connection((host, int(port)), timeout=WITHIN_SECONDS)


def received(link: socket.socket) -> bytes:
    (size,) = unpack(">i", _exactly(link, 4))
    return _exactly(link, size)


def _exactly(link: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = link.recv(size - len(parts))
        if not part:
            raise ConnectionError("the broker hung up")
        parts += part
    return parts


def _built(shape: Any, body: Mapping[str, Any], made: Any, version: int) -> Any:
    unknown = body.keys() - {field.name for field in shape.fields.values()}
    assert not unknown, f"{made.__name__} has no {unknown}"
    values = {
        field.name: _value(field, body[field.name], version) for field in shape.fields.values() if field.name in body
    }
    return made(version=version, **values)


def _value(field: Any, value: Any, version: int) -> Any:
    if value is not None and field.is_struct_array():
        return [_built(field, one, field.data_class, version) for one in value]
    if value is not None and field.is_struct():
        return _built(field, value, field.data_class, version)
    return value


def batch(
    *values: bytes | None,
    keys: Sequence[bytes | None] = (),
    headers: Sequence[tuple[str, bytes]] = (),
    times: Sequence[int] = (),
    compression: int = 0,
    producer: tuple[int, int] = (-1, -1),
    sequence: int = -1,
    transactional: bool = False,
) -> bytes:
    """A record batch, version 2. `producer` is id and epoch; `times` are ms, now by default."""
    builder = DefaultRecordBatchBuilder(2, compression, transactional, *producer, sequence, 1 << 24)
    for index, value in enumerate(values):
        timestamp_ms = times[index] if times else int(time.time() * 1000)
        builder.append(index, timestamp_ms, keys[index] if keys else None, value, list(headers))
    return bytes(builder.build())


def records(data: bytes | None) -> Records:
    """Of the batches of a fetch, the ones of data: [offset, value] each. A control batch shows as [offset, "control"]."""
    found: Records = []
    for one in batches(data):
        found += [[record.offset, "control" if one.is_control_batch else _text(record.value)] for record in one]
    return found


def batches(data: bytes | None) -> list[Any]:
    source = MemoryRecords(bytes(data or b""))
    found = []
    while source.has_next():
        found.append(source.next_batch())
    return found


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode() if len(value) < 40 else f"{len(value)} bytes"
