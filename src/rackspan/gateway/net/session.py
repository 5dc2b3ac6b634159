"""One client's connection and the broker's connection behind it.

Requests go to the broker in their order, responses come back in theirs: one that is ready waits for those before it. What is
not read whole is forwarded from the buffer in which it was received (requests.py, responses.py).
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import Any, Final

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.core.endpoints import rebootstrap_required
from rackspan.gateway.core.record_bytes import ClientLabels, Topic
from rackspan.gateway.net.byte_flow import Exchange, Pair, Shared
from rackspan.gateway.net.channel import SILENT_SECONDS, Channel
from rackspan.gateway.net.requests import RequestFlow
from rackspan.gateway.net.responses import ResponseFlow
from rackspan.model.ids import NO_BROKER
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header, read_response, write_request
from rackspan.wire.framing import Piece
from rackspan.wire.messages.api_versions import ApiVersionsRequestData
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import MetadataRequestData
from rackspan.wire.messages.produce import TopicProduceData

log = logging.getLogger(__name__)

UNREAD_SECONDS: Final = 2.0
UNTAKEN_SECONDS: Final = 10.0
"""While others wait for memory: how long the broker may take nothing of a request, if the client takes no responses and if it does."""

_SIZE: Final = Struct(">i")
_FIRST_INTERNAL_CORRELATION: Final = -1_000_000

_PROOF_VERSION: Final = 4
"""The version of Metadata: every broker since Kafka 0.11 has it, and an empty array names no topic."""


class ClientSession(Pair):
    """A client's connection with its broker's. `broker` is the one whose listener accepted it; `sessions` has every open one."""

    def __init__(
        self,
        shared: Shared,
        sessions: "set[ClientSession]",
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        upstream: socket.socket,
        broker: int,
    ) -> None:
        super().__init__(shared, loop, Channel(loop, client), Channel(loop, upstream), _peer(client))
        self.broker = broker
        self.host = address_of(client)
        """The client's address."""
        self.principal: str | None = None
        """The principal of its certificate, of those that the gateway maps."""
        self.labels = ClientLabels()
        """As the client has named itself."""
        self._is_named = False
        self._sessions = sessions
        self._requests = RequestFlow(self)
        self._responses = ResponseFlow(self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._internal = _FIRST_INTERNAL_CORRELATION
        self._upstream_ended = False
        self.on_closed: Callable[[], None] = lambda: None
        self._cuts_off = False
        for channel, side in ((self.client, self._requests), (self.upstream, self._responses)):
            channel.on_readable = side.readable
            channel.on_error = self._failed
        self.client.on_drained = self._client_drained
        self.upstream.on_drained = self._requests.resume

    @property
    def is_overdue(self) -> bool:
        """Whether the client sends a request that is read whole too slowly, or nothing more of one that it has begun.

        What is in the socket was sent: a client whose request waits for memory, or behind others, is not silent.
        """
        now, frame = self.time(), self._requests.frame
        if frame is not None and self.shared.frames.is_overdue(frame, now):
            return True
        is_silent = now - self.client.received_at > SILENT_SECONDS and self._requests.is_mid_request
        return is_silent and not self.client.has_unread

    @property
    def is_stuck(self) -> bool:
        """Whether others wait for the memory of its request, which goes no further: its broker or its client takes nothing.

        Called about once a second.
        """
        frame, frames = self._requests.frame, self.shared.frames
        if frame is None or frames.is_waiting(frame) or not (frame.is_whole or frame.unread_since is not None):
            return False
        broker, client = self.upstream.unmoved_seconds(), self.client.unmoved_seconds()
        is_before_broker = frame.is_whole or bool(self.upstream.outgoing)
        is_unread = client > UNREAD_SECONDS and (broker > UNREAD_SECONDS or not is_before_broker)
        return frames.is_wanted and (broker > UNTAKEN_SECONDS or is_unread)

    @property
    def has_sent_request(self) -> bool:
        """Whether the client has sent one whole request since it is connected."""
        requests = self._requests
        return self.client.sent_bytes > 0 or requests.has_taken_one or len(self.exchanges) > requests.is_half_forwarded

    def start(self) -> None:
        self._sessions.add(self)
        self.client.resume_reading()
        self.upstream.resume_reading()

    # Whose records pass, and how many bytes of them.

    def identify(self, exchange: Exchange, request: memoryview) -> None:
        with suppress(MalformedRequest):
            header = read_header(request)
            self.name_client(header.client_id)
            body: ApiVersionsRequestData = read_body(request, header)
            if self._is_of_another_broker(body):
                exchange.on_response = partial(rebootstrap_required, exchange.version)
            if body.client_software_name:
                name, version = body.client_software_name, body.client_software_version
                self.labels = self.labels._replace(software_name=name, software_version=version)

    def _is_of_another_broker(self, request: ApiVersionsRequestData) -> bool:
        """Whether the client takes this listener for that of another broker or cluster (KIP-1242), as it may behind a load balancer.

        A broker before Kafka 4.4 does not check it. One that does also finds that the gateway was led to another broker.
        """
        meant, cluster_id = request.cluster_id, self.shared.cluster_id()
        if meant is None or cluster_id is None or request.node_id == NO_BROKER:
            return False
        return (meant, request.node_id) != (cluster_id, self.broker)

    def name_client(self, client_id: str | None) -> None:
        """The client id of a request, and the rack that [readers] has for it."""
        if not self._is_named or client_id != (self.labels.client_id or None):
            self._is_named, name = True, client_id or ""
            self.labels = self.labels._replace(client_id=name, rack=self.shared.rack_of(self.host, name) or "")

    def locate_client(self, rack: str) -> None:
        """The rack of a fetch; empty if it names none."""
        if rack and rack != self.labels.rack:
            self.labels = self.labels._replace(rack=rack)

    def count_fetched(self, topic: Topic, partition: int, _preferred: int, size_bytes: int) -> None:
        if size_bytes:
            self.shared.record_bytes.add(self.labels, self.broker, topic, partition, size_bytes)

    def count_produced(self, client_id: str | None, topics: Iterable[TopicProduceData]) -> None:
        """The records of a Produce request are forwarded."""
        self.name_client(client_id)
        add = self.shared.record_bytes.add
        for topic in topics:
            name = topic.name if topic.topic_id is None else topic.topic_id.bytes
            for data in topic.partition_data:
                if data.records:
                    add(self.labels, self.broker, name, data.index, len(data.records), produced=True)

    # For what decides about a whole request (Take).

    def forward(self, exchange: Exchange, parts: "Sequence[Piece] | None" = None, *, responds: bool = True) -> None:
        """Send the request to the broker: as it came, or these parts, unframed, in its place."""
        if responds:
            self.exchanges.append(exchange)
            self.awaited.append(exchange)
        self._requests.forward(parts)

    def respond(self, exchange: Exchange, parts: "Sequence[Piece]") -> None:
        """Respond without the broker."""
        self.exchanges.append(exchange)
        self.complete(exchange, parts)

    def handle(self, exchange: Exchange, work: Coroutine[Any, Any, list[Piece]]) -> None:
        """Respond with the result of `work`. Requests behind it wait: a broker handles one of a connection at a time."""
        self.exchanges.append(exchange)
        self._requests.blocked = True
        # Closed if the task is cancelled before it begins.
        self.run(self._handle(exchange, work)).add_done_callback(lambda _: work.close())

    def wait_for(self, ready: "asyncio.Future[None]", then: Callable[[], None]) -> None:
        """Continue with `then` when `ready` is done. Requests behind it wait."""
        self._requests.blocked = True

        def resume(_: object) -> None:
            if not self.closed:
                self._requests.blocked = False
                self.run_guarded(then)
                self._requests.resume()

        ready.add_done_callback(resume)

    def prove(self) -> None:
        """Find out whether the broker serves this client, by a request of the gateway's own on its connection.

        A broker closes the connection of a client that has to log in first, and with it ends the client's.
        """
        self.run(self._proved())

    async def _proved(self) -> None:
        nothing = MetadataRequestData(topics=[], allow_auto_topic_creation=False)
        try:
            await self.call(ApiKey.METADATA, _PROOF_VERSION, None, nothing)
        except (ConnectionError, MalformedRequest) as error:
            log.info("closing the connection of %s: no login, or the broker is gone: %s", self.peer, error)
            self.close()
            return
        self._requests.proven()

    async def call(self, api_key: ApiKey, version: int, client_id: str | None, request: WireStruct) -> Any:
        """A request of the gateway's own with the client's rights, on its connection. Errors: ConnectionError."""
        if self.closed or self._upstream_ended:
            raise ConnectionResetError("the broker closed its connection")
        exchange = Exchange(api_key, version, self._internal, Treatment.WHOLE)
        self._internal -= 1
        exchange.future = self._loop.create_future()
        self.awaited.append(exchange)
        parts = write_request(api_key, version, exchange.correlation_id, client_id, request)
        self.upstream.outgoing.append(framed(parts))
        self.upstream.flush()
        return read_response(api_key, version, await exchange.future)

    # Responses that are ready.

    def send_ready(self) -> None:
        if self.closed:
            return
        exchanges = self.exchanges
        outgoing = self.client.outgoing
        while exchanges and exchanges[0].done:
            exchange = exchanges.popleft()
            if exchange.parts is not None:
                outgoing.append(_SIZE.pack(sum(map(len, exchange.parts))))
                outgoing.extend(exchange.parts)
        if outgoing:
            self.client.flush()
        self._responses.resume()
        self._requests.resume()
        self._end_if_over()

    def _client_drained(self) -> None:
        self._responses.resume()
        self._requests.resume()
        self._end_if_over()

    # The end.

    def drain(self) -> None:
        """Read no further request, and close when every response has left."""
        self.draining = True
        self._requests.resume()
        self._end_if_over()

    def cut_off(self) -> None:
        """Wait no longer for the rest of a request that the client has begun to send: it cannot be acknowledged yet."""
        self._cuts_off = True
        self._end_if_over()

    def upstream_ended(self) -> None:
        """The broker closed its connection. Acknowledgements that were received and not sent yet are sent first."""
        self._upstream_ended = True
        self.upstream.pause_reading()
        for exchange in self.awaited:
            if exchange.future is not None and not exchange.future.done():
                exchange.future.set_exception(ConnectionResetError("the broker closed its connection"))
        self._end_if_over()

    def _end_if_over(self) -> None:
        if self.closed or self.client.outgoing:
            return
        over = not self.exchanges and (self._upstream_ended or (self.draining and self._requests.at_boundary))
        if self._cuts_off and self._requests.is_half_received:
            over = over or len(self.exchanges) == self._requests.is_half_forwarded
        lost = self._upstream_ended and self.exchanges and self.exchanges[0] in self.awaited
        if over or lost:
            self.close()

    def _failed(self, error: OSError) -> None:
        log.debug("connection of %s: %s", self.peer, error)
        # Called inside of a flush, which still uses the channel's queue.
        self._loop.call_soon(self.close)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self.client.close()
        self.upstream.close()
        for task in self._tasks:
            task.cancel()
        for exchange in self.awaited:
            if exchange.future is not None and not exchange.future.done():
                exchange.future.set_exception(ConnectionResetError("the connection is closed"))
                exchange.future.exception()
        self._requests.release()
        self._responses.release()
        for exchange in self.exchanges:
            if exchange.on_dropped is not None:
                exchange.on_dropped()
        self.exchanges.clear()
        self.awaited.clear()
        self._sessions.discard(self)
        self.on_closed()

    def run(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """A task that ends with the connection."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _handle(self, exchange: Exchange, work: Coroutine[Any, Any, list[Piece]]) -> None:
        try:
            parts = await work
        except (ConnectionError, MalformedRequest) as error:
            log.warning("closing the connection of %s: %s", self.peer, error)
            self.close()
            return
        except Exception:
            log.exception("closing the connection of %s: a request failed", self.peer)
            self.close()
            return
        self._requests.blocked = False
        self.complete(exchange, parts)


def framed(parts: list[bytes]) -> bytes:
    body = b"".join(parts)
    return _SIZE.pack(len(body)) + body


def address_of(client: socket.socket) -> str:
    """The client's address without its port."""
    return _peer(client).rpartition(":")[0]


def _peer(client: socket.socket) -> str:
    try:
        name = client.getpeername()
    except OSError:
        return "a client that is gone"
    return f"{name[0]}:{name[1]}"
