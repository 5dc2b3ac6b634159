"""Fetch requests: those of replicas are refused, and those that name no rack get the client's (KIP-392).

A leader believes a replica's fetch: that the replica holds what is before its offset. Brokers do not fetch through a gateway, so who
names a replica here is a client, and its records would be acknowledged as held by a broker that lacks them.
"""

import asyncio
import logging
from functools import partial
from typing import Final
from weakref import WeakSet

from rackspan.gateway.core.reader_racks import ClientName, ReaderRacks, Redirects
from rackspan.gateway.core.record_bytes import Topic
from rackspan.gateway.core.response_end import FETCH_WITH_RACK
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.session import ClientSession
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import NO_BROKER, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header, write_request, write_response
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequestData,
    FetchResponseData,
    FetchResponsePartitionData,
    FetchTopic,
)

log = logging.getLogger(__name__)

CONSUMERS: Final = frozenset({-1, -2})
"""Replica ids of consumers and of debugging tools. Kafka's others are brokers, and -3, a log that is copied to another disk: Kafka 4.4
responds to it with records above the high watermark, in a request of any client. Source: FetchRequest."""

_NO_WATERMARK: Final = -1


class FetchHandler:
    """Every Fetch request of a process. `racks` may be replaced while it runs."""

    def __init__(self, racks: ReaderRacks) -> None:
        self.racks = racks
        self.redirects = Redirects()
        self.written = 0
        """Fetches that got a rack."""
        self.refused = 0
        """Fetches that named a replica."""
        self._named: WeakSet[ClientSession] = WeakSet()
        """Clients that have a line in the log."""
        self._loop = asyncio.get_running_loop()

    def rack_of(self, host: str, client_id: str) -> RackId | None:
        """The rack of a client, None if no rule names one."""
        return self.racks.of(host, client_id)

    def take(self, session: ClientSession, exchange: Exchange, request: memoryview) -> None:
        """Forward a fetch of a consumer, with a rack if it names none. Errors: MalformedRequest."""
        header = read_header(request)
        session.name_client(header.client_id)
        fetch: FetchRequestData = read_body(request, header)
        replica = _replica(fetch)
        if replica not in CONSUMERS:
            self._refuse(session, replica)
            session.respond(exchange, write_response(header, _unauthorized(fetch)))
            return
        session.locate_client(fetch.rack_id)
        host, client_id = session.host, header.client_id or ""
        rack = self.racks.of(host, client_id)
        if rack is None or exchange.version < FETCH_WITH_RACK:
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

    def _refuse(self, session: ClientSession, replica: int) -> None:
        self.refused += 1
        if session not in self._named:
            self._named.add(session)
            log.warning("refused a fetch as replica %d: client=%s; brokers do not fetch here", replica, session.peer)

    def _passed(
        self, session: ClientSession, client: ClientName, topic: Topic, partition: int, replica: int, size_bytes: int
    ) -> None:
        session.count_fetched(topic, partition, replica, size_bytes)
        if replica != NO_BROKER:
            self.redirects.redirected(client, (topic, partition), replica, self._loop.time())


def _replica(fetch: FetchRequestData) -> int:
    """The replica that fetches: a field up to version 14, in a tag from version 15 on (KIP-903)."""
    return fetch.replica_id if fetch.replica_state is None else fetch.replica_state.replica_id


def _unauthorized(fetch: FetchRequestData) -> FetchResponseData:
    """The response of a broker whose authorizer denies CLUSTER_ACTION. Partitions of a session that are not named get one error together."""
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    responses = [
        FetchableTopicResponse(
            topic=topic.topic,
            topic_id=topic.topic_id,
            partitions=[
                FetchResponsePartitionData(
                    partition_index=partition.partition, error_code=refused, high_watermark=_NO_WATERMARK, records=[]
                )
                for partition in topic.partitions
            ],
        )
        for topic in fetch.topics
    ]
    return FetchResponseData(error_code=ErrorCode.NONE if responses else refused, responses=responses)


def _topic_key(topic: FetchTopic) -> Topic:
    return topic.topic if topic.topic_id is None else topic.topic_id.bytes
