"""Fetch requests that name no rack get the client's, so that brokers send it to an in-sync replica there (KIP-392).

ShareFetch names no rack, and followers' fetches never pass a gateway: both are forwarded as they come.
"""

import asyncio
from functools import partial

from rackspan.gateway.core.reader_racks import ClientName, ReaderRacks, Redirects
from rackspan.gateway.core.record_bytes import Topic
from rackspan.gateway.core.response_end import FETCH_WITH_RACK
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.session import ClientSession
from rackspan.model.ids import NO_BROKER, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header, write_request
from rackspan.wire.messages.fetch import FetchRequestData, FetchTopic


class FetchHandler:
    """Writes racks into the fetches of a process. `racks` may be replaced while it runs."""

    def __init__(self, racks: ReaderRacks) -> None:
        self.racks = racks
        self.redirects = Redirects()
        self.written = 0
        """Fetches that got a rack."""
        self._loop = asyncio.get_running_loop()

    def rack_of(self, host: str, client_id: str) -> RackId | None:
        """The rack of a client, None if no rule names one."""
        return self.racks.of(host, client_id)

    def take(self, session: ClientSession, exchange: Exchange, request: memoryview) -> None:
        """Forward a fetch, with a rack if it names none. Errors: MalformedRequest."""
        header = read_header(request)
        session.name_client(header.client_id)
        if exchange.version < FETCH_WITH_RACK:
            session.forward(exchange)
            return
        host, client_id = session.host, header.client_id or ""
        rack = self.racks.of(host, client_id)
        fetch: FetchRequestData = read_body(request, header)
        session.locate_client(fetch.rack_id)
        if rack is None:
            session.forward(exchange)
            return
        keys = [(_topic_key(topic), partition.partition) for topic in fetch.topics for partition in topic.partitions]
        may_write = self.redirects.may_write((host, client_id), session.broker, keys, self._loop.time())
        if (fetch.rack_id and not self.racks.replaces) or not may_write:
            session.forward(exchange)
            return
        fetch.rack_id = rack
        session.locate_client(rack)
        self.written += 1
        exchange.on_partition = partial(self._passed, session, (host, client_id))
        session.forward(
            exchange, write_request(ApiKey.FETCH, exchange.version, exchange.correlation_id, header.client_id, fetch)
        )

    def _passed(
        self, session: ClientSession, client: ClientName, topic: Topic, partition: int, replica: int, size_bytes: int
    ) -> None:
        session.count_fetched(topic, partition, replica, size_bytes)
        if replica != NO_BROKER:
            self.redirects.redirected(client, (topic, partition), replica, self._loop.time())


def _topic_key(topic: FetchTopic) -> Topic:
    return topic.topic if topic.topic_id is None else topic.topic_id.bytes
