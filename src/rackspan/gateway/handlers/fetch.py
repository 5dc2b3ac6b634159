"""Fetch requests that name no rack get the client's, so that brokers send it to an in-sync replica there (KIP-392).

ShareFetch names no rack, and followers' fetches never pass a gateway: both are forwarded as they come.
"""

import asyncio
from typing import Final

from rackspan.gateway.core.reader_racks import ClientName, ReaderRacks, Redirects, TopicKey
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.session import ClientSession
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header, write_request
from rackspan.wire.messages.fetch import FetchRequestData, FetchTopic

_WITH_RACK: Final = 11
"""The first version of Fetch with a rack."""


class FetchHandler:
    """Writes racks into the fetches of a process. `racks` may be replaced while it runs."""

    def __init__(self, racks: ReaderRacks) -> None:
        self.racks = racks
        self.redirects = Redirects()
        self.written = 0
        """Fetches that got a rack."""
        self._loop = asyncio.get_running_loop()

    def take(self, session: ClientSession, exchange: Exchange, request: memoryview) -> None:
        """Forward a fetch, with a rack if it names none. Errors: MalformedRequest."""
        if exchange.version < _WITH_RACK:
            session.forward(exchange)
            return
        header = read_header(request)
        host, client_id = session.host, header.client_id or ""
        rack = self.racks.of(host, client_id)
        if rack is None:
            session.forward(exchange)
            return
        fetch: FetchRequestData = read_body(request, header)
        keys = [(_topic_key(topic), partition.partition) for topic in fetch.topics for partition in topic.partitions]
        may_write = self.redirects.may_write((host, client_id), session.broker, keys, self._loop.time())
        if (fetch.rack_id and not self.racks.replaces) or not may_write:
            session.forward(exchange)
            return
        fetch.rack_id = rack
        self.written += 1
        exchange.on_redirect = lambda topic, partition, replica: self._redirected(
            (host, client_id), (topic, partition), replica
        )
        session.forward(
            exchange, write_request(ApiKey.FETCH, exchange.version, exchange.correlation_id, header.client_id, fetch)
        )

    def _redirected(self, client: ClientName, key: TopicKey, replica: int) -> None:
        self.redirects.redirected(client, key, replica, self._loop.time())


def _topic_key(topic: FetchTopic) -> bytes:
    return topic.topic.encode() if topic.topic_id is None else topic.topic_id.bytes
