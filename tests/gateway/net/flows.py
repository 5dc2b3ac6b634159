"""One direction of a client's connection without sockets: what it receives is the test's, and what it sends is kept."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from struct import pack
from types import SimpleNamespace
from typing import Any, cast

from rackspan.gateway.core.record_bytes import RecordBytes, Topic
from rackspan.gateway.net.byte_flow import Exchange, Pair, Shared, Take
from rackspan.gateway.net.channel import NOTHING_YET, Channel
from rackspan.gateway.net.frames import FrameMemory
from rackspan.gateway.net.requests import RequestFlow
from rackspan.wire.apis import ApiKey
from rackspan.wire.framing import Piece
from tests.gateway.core.addresses import renamed


class Link:
    """A channel that receives these in turn, as much as fits, and that sends everything unless its peer is `slow`."""

    def __init__(self) -> None:
        self.receives: list[bytes | OSError] = []
        self.outgoing: deque[Piece] = deque()
        self.sent: list[bytes] = []
        """Each piece that was sent."""
        self.slow = False
        self.reading = True
        self.has_ended_unseen = False
        self.rests = 0
        """How often what TLS has decrypted was looked for."""

    def receive_into(self, buffer: memoryview | bytearray) -> int:
        if not len(buffer):
            return 0
        if not self.receives:
            return NOTHING_YET
        data = self.receives.pop(0)
        if isinstance(data, OSError):
            raise data
        part = data[: len(buffer)]
        buffer[: len(part)] = part
        if len(part) < len(data):
            self.receives.insert(0, data[len(part) :])
        return len(part)

    def flush(self) -> bool:
        if not self.slow:
            self.sent += map(bytes, self.outgoing)
            self.outgoing.clear()
        return not self.outgoing

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def read_rest(self) -> None:
        self.rests += 1


class Ends(Pair):
    """A connection of a client at `near` and its broker at `far`; `reported` is what the directions report."""

    def __init__(
        self, takes: Mapping[int, Take] | None = None, *, max_request_bytes: int = 1000, memory_bytes: int = 10_000
    ) -> None:
        self.near, self.far = Link(), Link()
        self.now = 0.0
        self.reported: list[object] = []
        shared = Shared(
            addresses=renamed(),
            takes=takes or {},
            max_request_bytes=max_request_bytes,
            frames=FrameMemory(memory_bytes),
            record_bytes=RecordBytes(9, 9),
            rack_of=lambda _host, _client_id: None,
        )
        self.soon: list[Callable[[], None]] = []
        """Steps of the event loop's next turn."""
        loop = cast("asyncio.AbstractEventLoop", SimpleNamespace(time=lambda: self.now, call_soon=self.soon.append))
        super().__init__(shared, loop, cast("Channel", self.near), cast("Channel", self.far), "10.0.0.1:5")

    def identify(self, exchange: Exchange, request: memoryview) -> None:
        self.reported.append(("identify", exchange.api_key, bytes(request)))

    def count_fetched(self, topic: Topic, partition: int, _preferred: int, size_bytes: int) -> None:
        self.reported.append(("fetched", topic, partition, size_bytes))

    def prove(self) -> None:
        self.reported.append("prove")

    def send_ready(self) -> None:
        self.reported.append("ready")

    def upstream_ended(self) -> None:
        self.reported.append("upstream ended")

    def close(self) -> None:
        self.closed = True


def framed(frame: bytes) -> bytes:
    """With its size in front."""
    return len(frame).to_bytes(4, "big") + frame


def request(api_key: int, version: int, correlation_id: int, rest: bytes = b"") -> bytes:
    """With its size in front; without a client id."""
    return framed(pack(">hhih", api_key, version, correlation_id, -1) + rest)


def list_groups(correlation_id: int) -> bytes:
    """Forwarded as it comes, 14 bytes."""
    return request(16, 0, correlation_id)


def produce(correlation_id: int, rest: bytes = b"records") -> bytes:
    """Read whole where Produce is decided."""
    return request(0, 9, correlation_id, rest)


class Taking(Ends):
    """Ends where Produce requests are read whole. Each is kept, and `flow.forward(forwards)` called unless they `wait`."""

    def __init__(self, **bounds: int) -> None:
        super().__init__({ApiKey.PRODUCE: self.take}, **bounds)
        self.is_proven = True
        self.flow = RequestFlow(self)
        self.decided: list[tuple[int, bytes]] = []
        self.waits = False
        self.closes = False

    def take(self, session: Any, exchange: Exchange, whole: memoryview) -> None:
        assert session is self
        self.decided.append((exchange.correlation_id, bytes(whole)))
        self.closed = self.closes
        if self.waits:
            self.flow.blocked = True
        else:
            self.flow.forward(None)

    def receive(self, *parts: bytes) -> None:
        """Receive each part by itself, while requests are read."""
        self.near.receives += parts
        for _ in range(100):
            if self.near.receives and self.near.reading and not self.closed:
                self.flow.readable()


def ends(**bounds: int) -> Taking:
    """Ends where nothing is read whole."""
    made = Taking(**bounds)
    made.shared.takes = {}
    return made
