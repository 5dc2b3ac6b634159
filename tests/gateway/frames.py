"""Whole requests and responses with random fields, and the same with random bytes changed."""

from collections.abc import Callable
from random import Random
from struct import pack
from typing import Final

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import OFFERED
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import RequestHeader, read_body, read_header, response_header
from rackspan.wire.compiled import struct_writer
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import MetadataResponseData
from rackspan.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequestData,
    ProduceResponseData,
    TopicProduceData,
    TopicProduceResponse,
)
from rackspan.wire.schema import is_flexible, request_shape, response_shape
from tests.cluster.test_mutated_frames import random_struct

PRODUCE_VERSIONS: Final = range(3, 13)
"""Those that name topics by name."""

_PRODUCE_SHARE: Final = 0.5
_CODES: Final = (0, 0, 0, 0, 46, 3, 6, 19)
_KEYS: Final = [key for key in OFFERED if key != ApiKey.PRODUCE]


def encoded(api_key: ApiKey, version: int, body: WireStruct, *, request: bool) -> bytes:
    parts: list[bytes] = []
    shape = request_shape(api_key, version) if request else response_shape(api_key, version)
    struct_writer(shape)(parts, body)
    return b"".join(parts)


def is_known(api_key: int, version: int) -> bool:
    """Whether wire/ has classes for it: the gateway forwards some versions that it has none for."""
    return api_key in VERSIONS and version in VERSIONS[ApiKey(api_key)]


def whole_request(correlation_id: int, topics: list[str], rng: Random) -> bytes:
    """Half of them Produce requests for these topics, the others of any API. Unframed."""
    if rng.random() < _PRODUCE_SHARE:
        version = rng.choice(PRODUCE_VERSIONS)
        key: int = ApiKey.PRODUCE
        body = encoded(ApiKey.PRODUCE, version, _produce(topics, rng), request=True)
    else:
        key = rng.choice(_KEYS)
        version = rng.choice(OFFERED[key])
        if is_known(key, version):
            body = encoded(ApiKey(key), version, random_struct(request_shape(ApiKey(key), version), rng), request=True)
        else:
            body = rng.randbytes(rng.randrange(40))
    tags = b"\0" if is_known(key, version) and is_flexible(key, version) else b""
    return pack(">hhih", key, version, correlation_id, 4) + b"fuzz" + tags + body


def _produce(topics: list[str], rng: Random) -> ProduceRequestData:
    return ProduceRequestData(
        acks=rng.choice((-1, -1, -1, 1, 0)),
        timeout=1000,
        topic_data=[
            TopicProduceData(
                name=topic,
                partition_data=[
                    PartitionProduceData(index=index, records=memoryview(rng.randbytes(rng.randrange(60))))
                    for index in rng.sample(range(3), rng.choice((1, 1, 2)))
                ],
            )
            for topic in rng.sample(topics, rng.choice((1, 1, 2, 3)))
        ],
    )


def whole_response(request: bytes, rng: Random) -> bytes | None:
    """As a broker could respond, with its addresses; None to a Produce request that expects no response. Unframed.

    Errors: MalformedRequest.
    """
    header = readable_header(request)
    if header is None or not is_known(header.api_key, header.api_version):
        return request[4:8] + rng.randbytes(rng.randrange(60))
    key, version = header.api_key, header.api_version
    if key == ApiKey.PRODUCE:
        body = read_body(request, header)
        if body.acks == 0:
            return None
        data: WireStruct = _produced(body, rng)
    else:
        data = random_struct(response_shape(ApiKey(key), version), rng)
        if isinstance(data, MetadataResponseData):
            for number, broker in enumerate(data.brokers):
                broker.node_id, broker.host = number + 1, "127.0.0.1"
    return response_header(header) + encoded(ApiKey(key), version, data, request=False)


def _produced(request: ProduceRequestData, rng: Random) -> ProduceResponseData:
    return ProduceResponseData(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=one.index, error_code=rng.choice(_CODES))
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def readable_header(request: bytes) -> RequestHeader | None:
    try:
        return read_header(request)
    except MalformedRequest:
        return None


def mutated(frame: bytes, other: bytes, rng: Random) -> bytes:
    """One to three changes: a byte, an end, a gap, a length, the rest of another frame. Unframed."""
    data = bytearray(frame)
    for _ in range(rng.randrange(1, 4)):
        _CHANGES[rng.randrange(len(_CHANGES))](data, rng.randrange(len(data) or 1), other, rng)
    return bytes(data)


def _byte(data: bytearray, at: int, _other: bytes, rng: Random) -> None:
    data[at : at + 1] = bytes([rng.randrange(256)])


def _end(data: bytearray, at: int, _other: bytes, _rng: Random) -> None:
    del data[at:]


def _gap(data: bytearray, at: int, _other: bytes, rng: Random) -> None:
    del data[at : at + rng.randrange(1, 9)]


def _inserted(data: bytearray, at: int, _other: bytes, rng: Random) -> None:
    data[at:at] = rng.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x00", b"\xff" * 10, b"\x80"))


def _spliced(data: bytearray, at: int, other: bytes, rng: Random) -> None:
    data[at:] = other[rng.randrange(len(other) or 1) :]


def _number(data: bytearray, at: int, _other: bytes, rng: Random) -> None:
    data[at : at + 4] = pack(">i", rng.choice((-1, 0, 2**31 - 1, 65_536)))


_CHANGES: Final[tuple[Callable[[bytearray, int, bytes, Random], None], ...]] = (
    _byte,
    _end,
    _gap,
    _inserted,
    _spliced,
    _number,
)


def with_size(frame: bytes, rng: Random, wrong: float) -> tuple[bytes, bool]:
    """The frame with its size in front, and whether that is right: wrong in this share of cases."""
    if rng.random() >= wrong:
        return pack(">i", len(frame)) + frame, True
    return pack(">i", rng.choice((-1, 0, 3, 7, len(frame) - 1, len(frame) + 1, 2**31 - 1))) + frame, False
