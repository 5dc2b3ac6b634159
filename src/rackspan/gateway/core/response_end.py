"""Walks a Fetch, ShareFetch or ShareAcknowledge response while it passes: finds its end, and rewrites the endpoints there.

Such a response ends with the addresses of new leaders, behind megabytes of records whose size has been sent already. So it
is walked as it passes, records skipped, and its end is replaced by one of the same size: addresses of the gateway, padded
with a tagged field that no client has. If they do not fit, the endpoints are left out: a client then finds the leader by
a Metadata request, as before KIP-951.
"""

from collections.abc import Callable, Generator
from typing import Final, TypeAlias

from rackspan.errors import MalformedBytes, MalformedRequest
from rackspan.gateway.core.apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.record_bytes import Topic
from rackspan.kafka_bytes import NO_TAGS, ByteReader, compact_string, int32, tagged_fields, unsigned_varint
from rackspan.model.ids import NO_BROKER
from rackspan.wire.apis import ApiKey

PADDING_TAG: Final = 10_000
"""A tagged field that no version of Kafka has. Clients skip what they do not recognise (KIP-482)."""

_NODE_ENDPOINTS_TAG: Final = 0

Walk: TypeAlias = Generator[int, memoryview, None]
"""Yields how many bytes it reads next, and is sent them; a negative number of bytes is skipped and sent nothing."""


OnPartition: TypeAlias = Callable[[Topic, int, int, int], None]
"""Called with a topic (its id's bytes, its name before version 13), a partition, the replica to read it from (KIP-392) or
NO_BROKER, and the bytes of its records."""


class EndFinder:
    """Walks one response as its bytes pass. The end begins when the walk is over."""

    __slots__ = ("_kept", "_needed", "_walk")

    def __init__(self, api_key: int, version: int, on_partition: OnPartition | None = None) -> None:
        self._walk = _fetch(version, on_partition) if api_key == ApiKey.FETCH else _WALKS[api_key](version)
        self._needed = next(self._walk)
        self._kept = b""
        """Bytes of a field that were not all there."""

    def feed(self, data: memoryview) -> int | None:
        """Walk over these bytes: how many of them lie before the end, or None if all do and the end is not found yet.

        Errors: MalformedRequest.
        """
        at, size, send = 0, len(data), self._walk.send
        try:
            while True:
                needed = self._needed
                if needed < 0:
                    skipped = min(-needed, size - at)
                    at += skipped
                    if needed + skipped < 0:
                        self._needed = needed + skipped
                        return None
                    self._needed = send(_NOTHING)
                    continue
                missing = needed - len(self._kept)
                if size - at < missing:
                    self._kept += bytes(data[at:])
                    return None
                field = data[at : at + missing]
                if self._kept:
                    field = memoryview(self._kept + bytes(field))
                    self._kept = b""
                at += missing
                self._needed = send(field)
        except StopIteration:
            return at


_NOTHING: Final = memoryview(b"")


def _unsigned_varint() -> Generator[int, memoryview, int]:
    value = shift = 0
    while True:
        byte = (yield 1)[0]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value
        shift += 7
        if shift > 28:
            raise MalformedRequest("a response with a varint that does not end")


def _skip(size: int) -> Walk:
    if size > 0:
        yield -size


def _skip_sized() -> Walk:
    """A compact string, byte string or batch of records."""
    size = yield from _unsigned_varint()
    if size > 1:
        yield 1 - size


def _skip_tags() -> Walk:
    count = yield from _unsigned_varint()
    for _ in range(count):
        yield from _unsigned_varint()
        size = yield from _unsigned_varint()
        yield from _skip(size)


def _fetch(version: int, on_partition: OnPartition | None = None) -> Walk:
    """Versions 4 to 18; from 12 on they are flexible, and from 13 on topics have ids instead of names."""
    flexible = version >= _FLEXIBLE_FETCH
    yield -4  # correlation id
    if flexible:
        yield from _skip_tags()
    yield -10 if version >= _FETCH_SESSIONS else -4  # throttle_time_ms, error_code, session_id
    for _ in range((yield from _length(flexible))):
        topic = yield from _topic(version)
        for _ in range((yield from _length(flexible))):
            partition = int.from_bytes((yield 4))
            # error_code, high_watermark, last_stable_offset, log_start_offset
            yield -26 if version >= _FETCH_LOG_START else -18
            for _ in range((yield from _length(flexible))):
                yield -16  # producer_id, first_offset of an aborted transaction
                if flexible:
                    yield from _skip_tags()
            preferred = int.from_bytes((yield 4), signed=True) if version >= FETCH_WITH_RACK else NO_BROKER
            records_bytes = yield from _length(flexible)
            if on_partition is not None:
                on_partition(topic, partition, preferred, records_bytes)
            yield from _skip(records_bytes)
            if flexible:
                yield from _skip_tags()
        if flexible:
            yield from _skip_tags()


FETCH_WITH_RACK: Final = 11
"""The first version of Fetch with a rack in the request, and a preferred replica in the response."""

_FETCH_LOG_START: Final = 5
_FETCH_SESSIONS: Final = 7
_FLEXIBLE_FETCH: Final = 12
_FETCH_BY_TOPIC_ID: Final = 13


def _topic(version: int) -> Generator[int, memoryview, Topic]:
    if version >= _FETCH_BY_TOPIC_ID:
        return bytes((yield 16))
    size = int.from_bytes((yield 2)) if version < _FLEXIBLE_FETCH else (yield from _length(flexible=True))
    name = bytes((yield size))
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise MalformedRequest(f"a Fetch response with a topic that is not UTF-8: {name[:40]!r}") from None


def _length(flexible: bool) -> Generator[int, memoryview, int]:
    """The length of an array or of bytes; 0 for a null one."""
    if flexible:
        return max(0, (yield from _unsigned_varint()) - 1)
    return max(0, int.from_bytes((yield 4), signed=True))


def _share_fetch(_version: int) -> Walk:
    """Versions 1 and 2."""
    yield -4
    yield from _skip_tags()
    yield -6  # throttle_time_ms, error_code
    yield from _skip_sized()  # error_message
    yield -4  # acquisition_lock_timeout_ms
    topics = yield from _unsigned_varint()
    for _ in range(topics - 1):
        yield -16
        partitions = yield from _unsigned_varint()
        for _ in range(partitions - 1):
            yield -6  # partition_index, error_code
            yield from _skip_sized()
            yield -2  # acknowledge_error_code
            yield from _skip_sized()
            yield -8  # current_leader
            yield from _skip_tags()
            yield from _skip_sized()  # records
            acquired = yield from _unsigned_varint()
            for _ in range(acquired - 1):
                yield -18
                yield from _skip_tags()
            yield from _skip_tags()
        yield from _skip_tags()


def _share_acknowledge(version: int) -> Walk:
    """Versions 1 and 2."""
    yield -4
    yield from _skip_tags()
    yield -6
    yield from _skip_sized()
    if version >= _RENEWED_ACKNOWLEDGEMENTS:
        yield -4  # acquisition_lock_timeout_ms
    topics = yield from _unsigned_varint()
    for _ in range(topics - 1):
        yield -16
        partitions = yield from _unsigned_varint()
        for _ in range(partitions - 1):
            yield -6
            yield from _skip_sized()
            yield -8
            yield from _skip_tags()
            yield from _skip_tags()
        yield from _skip_tags()


_RENEWED_ACKNOWLEDGEMENTS: Final = 2
"""The first version of ShareAcknowledge of KIP-1222."""

_WALKS: Final = {SHARE_FETCH: _share_fetch, SHARE_ACKNOWLEDGE: _share_acknowledge}


def rewritten_end(api_key: int, end: bytes, addresses: Addresses, *, same_size: bool) -> bytes:
    """The end with the gateway's addresses; of the same size, without endpoints if those do not fit.

    Errors: MalformedRequest.
    """
    try:
        before, tags = _with_addresses(api_key, ByteReader(end), addresses)
        if not same_size:
            return before + tagged_fields(tags)
        return _of_size(len(end), before, tags) or _without_endpoints(api_key, len(end), tags)
    except MalformedBytes as error:
        raise MalformedRequest(f"the end of a response of API key {api_key}: {error}") from error


def _with_addresses(api_key: int, reader: ByteReader, addresses: Addresses) -> tuple[bytes, dict[int, bytes]]:
    """The bytes before the tagged fields, and those fields. Fetch has its endpoints in a tagged field, the others before them."""
    if api_key == ApiKey.FETCH:
        tags = reader.tagged_fields()
        if _NODE_ENDPOINTS_TAG in tags:
            tags[_NODE_ENDPOINTS_TAG] = _endpoints(ByteReader(tags[_NODE_ENDPOINTS_TAG]), addresses)
        before = b""
    else:
        before, tags = _endpoints(reader, addresses), reader.tagged_fields()
    reader.end()
    return before, tags


def _without_endpoints(api_key: int, size: int, tags: dict[int, bytes]) -> bytes:
    before = b"" if api_key == ApiKey.FETCH else _NO_ENDPOINTS
    end = _of_size(size, before, {tag: value for tag, value in tags.items() if tag != _NODE_ENDPOINTS_TAG})
    if end is None:
        raise MalformedRequest(f"the end of a response of API key {api_key}: {size} bytes cannot be padded")
    return end


_NO_ENDPOINTS: Final = unsigned_varint(1)
_NULL: Final = unsigned_varint(0)


def _endpoints(reader: ByteReader, addresses: Addresses) -> bytes:
    """The array of endpoints, compact, with the gateway's addresses."""
    count = reader.elements(reader.compact_length())
    parts = [unsigned_varint(count + 1)]
    for _ in range(count):
        broker = reader.int32()
        host, port = addresses.advertised(broker, reader.compact_string(), reader.int32())
        rack = addresses.rack(broker, reader.compact_nullable_string())
        reader.tagged_fields()
        parts += (
            int32(broker),
            compact_string(host),
            int32(port),
            _NULL if rack is None else compact_string(rack),
            NO_TAGS,
        )
    return b"".join(parts)


def _of_size(size: int, before: bytes, tags: dict[int, bytes]) -> bytes | None:
    """`before` and the tagged fields, padded to so many bytes; None if no padding has the size that is left."""
    exact = before + tagged_fields(tags)
    if len(exact) == size:
        return exact
    # A second padding field closes the gaps if a size takes one byte more.
    for more in ((0,), (0, 0), (0, 1)):
        padded = _padded(size, before, tags, more)
        if padded is not None:
            return padded
    return None


def _padded(size: int, before: bytes, tags: dict[int, bytes], fields: tuple[int, ...]) -> bytes | None:
    empty = {PADDING_TAG + number: bytes(length) for number, length in enumerate(fields)}
    left = size - len(before + tagged_fields({**tags, **empty}))
    for length in range(max(0, left - 3), left + 1):
        padded = before + tagged_fields({**tags, **empty, PADDING_TAG: bytes(length)})
        if len(padded) == size:
            return padded
    return None
