"""From the broker to the client: responses are forwarded as they come, their addresses rewritten, or read whole."""

from struct import Struct
from typing import Final

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import BEFORE_LOGIN, Treatment
from rackspan.gateway.core.endpoints import metadata_head, with_addresses
from rackspan.gateway.core.response_end import EndFinder, rewritten_end
from rackspan.gateway.net.byte_flow import SIZE_BYTES, ByteFlow, Exchange, Pair

MAX_WHOLE_RESPONSE_BYTES: Final = 64 * 1024 * 1024
"""Size limit of responses that are read whole, and of a Metadata response's array of brokers. Kafka's are far smaller."""

_HEADER: Final = Struct(">ii")
_SIZE: Final = Struct(">i")


class ResponseFlow(ByteFlow):
    """From the broker to the client."""

    __slots__ = ("_end", "_exchange", "_finder", "_observer", "_whole")

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair, pair.upstream, pair.client)
        self._exchange: Exchange | None = None
        """Whose response is passing."""
        self._whole: bytearray | None = None
        """A response, or its beginning, that is read whole, without its size."""
        self._finder: EndFinder | None = None
        self._observer: EndFinder | None = None
        """Walks a response that is forwarded as it comes."""
        self._end: bytearray | None = None

    def _may_read(self) -> bool:
        return not self._sink.outgoing and self._may_pass()

    def _may_pass(self) -> bool:
        return True

    def _pass_on(self, data: memoryview) -> int:
        at, size = 0, len(data)
        while True:
            if self._exchange is None:
                used = self._begin(data[at:]) if at < size else None
                if used is None:
                    return at
                at += used
            else:
                part = data[at : at + self._left]
                if not part:
                    return at
                at += len(part)
                self._left -= len(part)
                self._pass_part(self._exchange, part)
            if self._exchange is not None and self._left == 0:
                self._finish(self._exchange)
            if self._pair.closed:
                return at

    def _begin(self, data: memoryview) -> int | None:
        """Begin the next response: how many bytes were used; None if it has to wait for those before it."""
        missing = _HEADER.size - len(self._header)
        if len(data) < missing:
            self._header += bytes(data)
            if len(self._header) >= SIZE_BYTES and _SIZE.unpack_from(self._header)[0] < SIZE_BYTES:
                # Nothing may come behind it.
                raise MalformedRequest("a response without a correlation id")
            return len(data)
        head = self._header + bytes(data[:missing])
        size, correlation_id = _HEADER.unpack(head)
        pair = self._pair
        if size < SIZE_BYTES or not pair.awaited or pair.awaited[0].correlation_id != correlation_id:
            raise MalformedRequest(f"a response of {size} bytes to a request that was not sent, {correlation_id}")
        exchange = pair.awaited[0]
        whole = exchange.treatment is Treatment.WHOLE
        if not whole and pair.exchanges[0] is not exchange:
            return None
        if whole and size > MAX_WHOLE_RESPONSE_BYTES:
            raise MalformedRequest(f"a response of {size} bytes to API key {exchange.api_key}")
        pair.awaited.popleft()
        pair.is_proven = pair.is_proven or exchange.api_key not in BEFORE_LOGIN
        self._exchange = exchange
        self._left = size
        # The correlation id is the first part of the response; it is passed on here if it was received before.
        kept, used = (head[SIZE_BYTES:], missing) if self._header else (b"", SIZE_BYTES)
        self._header = b""
        self._prepare(exchange, size, is_here=len(data) - used + len(kept) >= size)
        if kept:
            self._left -= len(kept)
            self._pass_part(exchange, memoryview(kept))
        return used

    def _prepare(self, exchange: Exchange, size: int, *, is_here: bool) -> None:
        """Choose what is done with the bytes of a response, all of which have been received if `is_here`."""
        match exchange.treatment:
            case Treatment.STREAM:
                self._pair.client.outgoing.append(_SIZE.pack(size))
                if exchange.on_partition is not None:
                    self._observer = EndFinder(exchange.api_key, exchange.version, exchange.on_partition)
            case Treatment.ENDPOINTS_LAST:
                self._finder = EndFinder(exchange.api_key, exchange.version, exchange.on_partition)
                if is_here:
                    self._whole = bytearray()
                else:
                    self._pair.client.outgoing.append(_SIZE.pack(size))
            case _:
                self._whole = bytearray()

    def _pass_part(self, exchange: Exchange, part: memoryview) -> None:
        if self._finder is not None and self._whole is None:
            self._pass_to_end(self._finder, part)
        elif self._finder is not None:
            self._pass_whole_with_end(exchange, self._finder, part)
        elif self._whole is None:
            if self._observer is not None:
                self._observer.feed(part)
            self._pair.client.outgoing.append(part)
        else:
            self._whole += part
            if exchange.treatment is Treatment.BROKERS_FIRST:
                self._try_head(exchange, self._whole)

    def _try_head(self, exchange: Exchange, received: bytearray) -> None:
        head = metadata_head(exchange.version, bytes(received), self._pair.shared.addresses)
        if head is None:
            if len(received) > MAX_WHOLE_RESPONSE_BYTES:
                raise MalformedRequest("a Metadata response without an end of its brokers")
            return
        size = len(received) + self._left - head.read + len(head.data)
        self._pair.client.outgoing.extend((_SIZE.pack(size), head.data, bytes(received[head.read :])))
        self._whole = None

    def _pass_to_end(self, finder: EndFinder, part: memoryview) -> None:
        """Forward up to the endpoints, keep those."""
        if self._end is not None:
            self._end += part
            return
        before = finder.feed(part)
        if before is None:
            self._pair.client.outgoing.append(part)
            return
        self._pair.client.outgoing.append(part[:before])
        self._end = bytearray(part[before:])

    def _pass_whole_with_end(self, exchange: Exchange, finder: EndFinder, part: memoryview) -> None:
        """All of it is here, so its size may change."""
        outgoing = self._pair.client.outgoing
        if self._whole:
            part = memoryview(bytes(self._whole) + bytes(part))
        if self._left:
            self._whole = bytearray(part)
            return
        before = finder.feed(part)
        if before is None:
            raise MalformedRequest(f"a response to API key {exchange.api_key} that ends too early")
        end = bytes(part[before:])
        if len(end) > 1:
            end = rewritten_end(exchange.api_key, end, self._pair.shared.addresses, same_size=False)
        outgoing.extend((_SIZE.pack(before + len(end)), part[:before], end))
        self._whole = self._finder = None

    def _finish(self, exchange: Exchange) -> None:
        pair = self._pair
        self._exchange = self._observer = None
        if self._finder is not None:
            if self._end is None:
                raise MalformedRequest(f"a response to API key {exchange.api_key} that ends too early")
            end = bytes(self._end)
            if len(end) > 1:
                end = rewritten_end(exchange.api_key, end, pair.shared.addresses, same_size=True)
            pair.client.outgoing.append(end)
            self._finder = self._end = None
        whole, self._whole = self._whole, None
        if exchange.treatment is not Treatment.WHOLE:
            if whole is not None:
                raise MalformedRequest("a Metadata response that ends too early")
            pair.exchanges.popleft()
            pair.send_ready()
            return
        self._finish_whole(exchange, bytes(whole or b""))

    def _finish_whole(self, exchange: Exchange, response: bytes) -> None:
        pair = self._pair
        if exchange.future is not None:
            if not exchange.future.done():
                exchange.future.set_result(response)
        elif exchange.on_response is not None:
            parts = exchange.on_response(response)
            if parts is not None:
                pair.complete(exchange, parts)
        else:
            addresses = pair.shared.addresses
            pair.complete(exchange, with_addresses(exchange.api_key, exchange.version, response, addresses))

    def _ended(self) -> None:
        self._pair.upstream_ended()
