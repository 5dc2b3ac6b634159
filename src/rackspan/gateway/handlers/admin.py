"""Requests of admin clients that the gateway takes part in: configs, new topics and new partitions.

Each is forwarded with what Kafka understands, on the client's connection and with the client's rights; what concerns min.insync.racks is
done after the cluster has accepted it.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from rackspan.gateway.backend import Backend
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.topic_configs import KAFKAS_OWN
from rackspan.gateway.handlers.config_requests import (
    CONFIG_TOPIC_REFUSED,
    ConfigRequests,
    config_topic_refusal,
    forward,
)
from rackspan.gateway.handlers.topic_requests import TopicRequests
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.session import ClientSession
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader, read_body, read_header, write_response
from rackspan.wire.framing import Piece
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.log_offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequestData,
    DeleteRecordsResponseData,
    DeleteRecordsTopicResult,
)
from rackspan.wire.messages.metadata import MetadataRequestData
from rackspan.wire.messages.topics import DeletableTopicResult, DeleteTopicsRequestData, DeleteTopicsResponseData

Handle = Callable[[ClientSession, RequestHeader, Any], Awaitable[WireStruct]]


class AdminHandler:
    """Handles the requests of `api_keys`. `store` None: min.insync.racks is no config here. Without a placer Kafka places by itself."""

    def __init__(self, backend: Backend, addresses: Addresses, store: ConfigTopic | None) -> None:
        configs = None if store is None else ConfigRequests(backend.cluster, backend.policies, store)
        topics = self.topics = TopicRequests(backend, addresses, configs, None if store is None else store.topic)
        self._handles: dict[int, Handle] = {}
        if configs is not None and store is not None:
            self._handles |= {
                ApiKey.INCREMENTAL_ALTER_CONFIGS: configs.incremental_alter,
                ApiKey.ALTER_CONFIGS: configs.alter,
                ApiKey.DESCRIBE_CONFIGS: configs.describe,
                ApiKey.CREATE_TOPICS: topics.create_topics,
                ApiKey.CREATE_PARTITIONS: topics.create_partitions,
                ApiKey.DELETE_TOPICS: partial(_delete_topics, store),
                ApiKey.DELETE_RECORDS: partial(_delete_records, store),
            }
        if backend.placer is not None:
            self._handles |= {
                ApiKey.CREATE_TOPICS: topics.create_topics,
                ApiKey.CREATE_PARTITIONS: topics.create_partitions,
                ApiKey.METADATA: topics.metadata,
            }

    @property
    def api_keys(self) -> frozenset[int]:
        return frozenset(self._handles)

    def take(self, session: ClientSession, exchange: Exchange, request: memoryview) -> None:
        """Respond to a request later. Errors: MalformedRequest."""
        header = read_header(request)
        body = read_body(request, header)
        if header.api_key == ApiKey.METADATA and not _may_create(body):
            session.forward(exchange)
            return
        session.handle(exchange, self._response(session, header, body))

    async def _response(self, session: ClientSession, header: RequestHeader, body: Any) -> list[Piece]:
        response = await self._handles[header.api_key](session, header, body)
        return [*write_response(header, response)]


def _may_create(body: MetadataRequestData) -> bool:
    return body.allow_auto_topic_creation and any(
        topic.name and topic.name not in KAFKAS_OWN for topic in body.topics or ()
    )


async def _delete_topics(
    store: ConfigTopic, session: ClientSession, header: RequestHeader, body: DeleteTopicsRequestData
) -> WireStruct:
    """DeleteTopics, by names or by ids, without the config topic: else every gateway that starts later would require no racks.

    An administrator of the topic uses the brokers.
    """
    topic, topic_id = store.topic, store.topic_id
    names = [name for name in body.topic_names if name != topic]
    states = [
        state for state in body.topics if state.name != topic and (state.topic_id is None or state.topic_id != topic_id)
    ]
    kept = len(body.topic_names) + len(body.topics) - len(names) - len(states)
    response = DeleteTopicsResponseData()
    if names or states or not kept:
        body.topic_names, body.topics = names, states
        response = await forward(session, header, body)
    refused = DeletableTopicResult(
        name=topic, topic_id=topic_id, error_code=CONFIG_TOPIC_REFUSED, error_message=config_topic_refusal(topic)
    )
    response.responses = [*response.responses, *[refused] * kept]
    return response


async def _delete_records(
    store: ConfigTopic, session: ClientSession, header: RequestHeader, body: DeleteRecordsRequestData
) -> WireStruct:
    """DeleteRecords without the config topic, in the same way."""
    kept = [requested for requested in body.topics if requested.name == store.topic]
    response = DeleteRecordsResponseData()
    if len(kept) < len(body.topics) or not kept:
        body.topics = [requested for requested in body.topics if requested.name != store.topic]
        response = await forward(session, header, body)
    refused = [
        DeleteRecordsTopicResult(
            name=store.topic,
            partitions=[
                DeleteRecordsPartitionResult(
                    partition_index=partition.partition_index, low_watermark=-1, error_code=CONFIG_TOPIC_REFUSED
                )
                for partition in requested.partitions
            ],
        )
        for requested in kept
    ]
    response.topics = [*response.topics, *refused]
    return response
