"""Requests that create topics and partitions: replicas from the placer, and min.insync.racks of new topics.

A Metadata request that creates topics automatically is one of them.
"""

import asyncio
import logging
from typing import Final
from uuid import UUID

from rackspan.errors import RackspanError
from rackspan.gateway.backend import Backend
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.topic_configs import KAFKAS_OWN, SET, ConfigChange, RefusedChange, without
from rackspan.gateway.handlers.cluster_load import ClusterLoad
from rackspan.gateway.handlers.config_requests import (
    CONFIG_TOPIC_REFUSED,
    ConfigRequests,
    config_topic_refusal,
    forward,
)
from rackspan.gateway.net.session import ClientSession
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS
from rackspan.placement.cluster_placer import PlacementRefusal
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData
from rackspan.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsAssignment,
    CreatePartitionsRequestData,
    CreatePartitionsResponseData,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
    CreateTopicsRequestData,
    CreateTopicsResponseData,
)

log = logging.getLogger(__name__)

_ALLOW_SINCE: Final = 4
"""The version of Metadata from which a request may decline automatic creation."""

_CREATE_VERSION: Final = 5


class TopicRequests:
    """Requests for new topics and partitions.

    `configs` None: min.insync.racks is no config of topics here, and there is no `config_topic`.
    """

    def __init__(
        self,
        backend: Backend,
        addresses: Addresses,
        configs: ConfigRequests | None,
        config_topic: str | None,
    ) -> None:
        self._backend = backend
        self._policies = backend.policies
        self._addresses = addresses
        self._configs = configs
        self._config_topic = config_topic
        self.placements = 0
        self.placement_failures = 0

    async def create_topics(
        self, session: ClientSession, header: RequestHeader, body: CreateTopicsRequestData
    ) -> WireStruct:
        changes: dict[str, ConfigChange] = {}
        refused: list[CreatableTopicResult] = []
        topics: list[CreatableTopic] = []
        load = ClusterLoad(self._backend.cluster)
        for topic in body.topics:
            if self._configs is not None:
                rest, own = without(topic.configs)
                if own:
                    values = [config.value for config in own]
                    change = self._configs.change(ConfigResourceType.TOPIC, topic.name, SET, values)
                    if isinstance(change, RefusedChange):
                        refused.append(_not_created(topic.name, change.code, change.message))
                        continue
                    changes[topic.name] = change
                    topic.configs = rest
            refusal = await self._assign(topic, load)
            if refusal is not None:
                refused.append(_not_created(topic.name, self._code(refusal), refusal.message))
                continue
            topics.append(topic)
        response = CreateTopicsResponseData()
        earlier = {topic.name: self._policies.entry_id(topic.name) for topic in topics}
        if topics:
            body.topics = topics
            response = await forward(session, header, body)
        # Side by side: a value is kept when every gateway acts on it.
        await asyncio.gather(
            *(
                self._created(result, changes.get(result.name), body, earlier.get(result.name))
                for result in response.topics
            )
        )
        response.topics = [*response.topics, *refused]
        return response

    async def _created(
        self,
        result: CreatableTopicResult,
        change: ConfigChange | None,
        body: CreateTopicsRequestData,
        earlier: UUID | None,
    ) -> None:
        if result.error_code != ErrorCode.NONE:
            return
        if not body.validate_only:
            requested = (topic for topic in body.topics if topic.name == result.name)
            values = {config.name: config.value for topic in requested for config in topic.configs}
            replicas = values.get(MIN_INSYNC_REPLICAS)
            try:
                configs = self._configs if change is not None else None
                topic_id = result.topic_id or (None if configs is None else await configs.topic_id(result.name))
                self._policies.record_created(result.name, earlier, topic_id, asyncio.get_running_loop().time())
                # After the id, with which what is known of an earlier topic of that name is dropped.
                if replicas is not None and replicas.strip().isdecimal():
                    self._policies.record_min_insync_replicas({result.name: max(1, int(replicas))})
                if configs is not None and change is not None:
                    await configs.write(change, topic_id)
            except (OSError, RackspanError) as error:
                result.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
                result.error_message = f"the topic was created, and {MIN_INSYNC_RACKS} may not be kept: {error}"
        if change is not None and result.configs:
            created = CreatableTopicConfigs(name=MIN_INSYNC_RACKS, value=str(change.value), config_source=1)
            result.configs = [*result.configs, created]

    def _code(self, refusal: PlacementRefusal) -> ErrorCode:
        return refusal.code if self._backend.config.extended_error_codes else refusal.code.for_every_client

    async def _assign(
        self, topic: CreatableTopic, load: ClusterLoad, *, automatic: bool = False
    ) -> PlacementRefusal | None:
        """Fill in the assignment of a new topic that has none. Returns the reason if that fails."""
        if self._backend.placer is None or topic.assignments:
            return None
        partitions, factor = topic.num_partitions, topic.replication_factor
        try:
            if partitions == -1 or factor == -1:
                defaults = await load.defaults()
                partitions = defaults["num.partitions"] if partitions == -1 else partitions
                factor = defaults["default.replication.factor"] if factor == -1 else factor
            if partitions < 1 or factor < 1:
                # Kafka refuses it, in Kafka's words.
                return None
            placed = await load.place(self._backend.placer, 0, partitions, factor, automatic=automatic)
        except (OSError, RackspanError) as error:
            placed = _unreadable(f"place {topic.name}", error)
        if isinstance(placed, PlacementRefusal):
            self.placement_failures += 1
            return placed
        self.placements += 1
        topic.num_partitions = topic.replication_factor = -1
        topic.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=row) for index, row in enumerate(placed)
        ]
        return None

    async def create_partitions(
        self, session: ClientSession, header: RequestHeader, body: CreatePartitionsRequestData
    ) -> WireStruct:
        load = ClusterLoad(self._backend.cluster)
        refused: list[CreatePartitionsTopicResult] = []
        forwarded: list[CreatePartitionsTopic] = []
        for topic in body.topics:
            if topic.name == self._config_topic:
                refusal = config_topic_refusal(topic.name)
                refused.append(
                    CreatePartitionsTopicResult(name=topic.name, error_code=CONFIG_TOPIC_REFUSED, error_message=refusal)
                )
                continue
            reason = await self._assign_more(topic, load)
            if reason is None:
                forwarded.append(topic)
                continue
            refused.append(
                CreatePartitionsTopicResult(
                    name=topic.name, error_code=self._code(reason), error_message=reason.message
                )
            )
        response = CreatePartitionsResponseData()
        if forwarded:
            body.topics = forwarded
            response = await forward(session, header, body)
        response.results = [*response.results, *refused]
        return response

    async def _assign_more(self, topic: CreatePartitionsTopic, load: ClusterLoad) -> PlacementRefusal | None:
        """Fill in the assignment of new partitions that have none. Returns the reason if that fails."""
        if self._backend.placer is None or topic.assignments is not None:
            return None
        try:
            rows = await load.rows(topic.name)
            if not rows or topic.count <= len(rows):
                # Kafka refuses it, in Kafka's words.
                return None
            placed = await load.place(self._backend.placer, len(rows), topic.count - len(rows), len(rows[0]))
        except (OSError, RackspanError) as error:
            placed = _unreadable(f"place new partitions of {topic.name}", error)
        if isinstance(placed, PlacementRefusal):
            self.placement_failures += 1
            return placed
        self.placements += 1
        topic.assignments = [CreatePartitionsAssignment(broker_ids=row) for row in placed]
        return None

    async def metadata(self, session: ClientSession, header: RequestHeader, body: MetadataRequestData) -> WireStruct:
        """Automatic creation: the topics that are missing are created as by CreateTopics, with the client's rights.

        Kafka's own are left to Kafka, which creates them when a coordinator is looked for.
        """
        body.allow_auto_topic_creation = False
        if header.api_version < _ALLOW_SINCE:
            # Older requests cannot decline automatic creation. The topic is created before Kafka sees the name.
            known: MetadataResponseData = await session.call(
                ApiKey.METADATA,
                _ALLOW_SINCE,
                header.client_id,
                MetadataRequestData(topics=body.topics, allow_auto_topic_creation=False),
            )
            await self._create_missing(session, header, known)
            response: MetadataResponseData = await forward(session, header, body)
            return self._readdressed(response)
        response = await forward(session, header, body)
        if await self._create_missing(session, header, response):
            response = await forward(session, header, body)
        return self._readdressed(response)

    async def _create_missing(
        self, session: ClientSession, header: RequestHeader, metadata: MetadataResponseData
    ) -> bool:
        missing = [
            topic.name
            for topic in metadata.topics
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name and topic.name not in KAFKAS_OWN
        ]
        load = ClusterLoad(self._backend.cluster)
        try:
            if not missing or not (await load.defaults())["auto.create.topics.enable"]:
                return False
        except (OSError, RackspanError) as error:
            log.warning("topics %s are not created automatically: %s", ", ".join(missing), error)
            return False
        topics = []
        for name in missing:
            topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
            refusal = await self._assign(topic, load, automatic=True)
            if refusal is None:
                topics.append(topic)
            else:
                log.warning("topic %s is not created automatically: %s", name, refusal.message)
        if topics:
            request = CreateTopicsRequestData(topics=topics, timeout=10_000)
            await session.call(ApiKey.CREATE_TOPICS, _CREATE_VERSION, header.client_id, request)
        return bool(topics)

    def _readdressed(self, metadata: MetadataResponseData) -> MetadataResponseData:
        for broker in metadata.brokers:
            broker.host, broker.port = self._addresses.advertised(broker.node_id, broker.host, broker.port)
            broker.rack = self._addresses.rack(broker.node_id, broker.rack)
        return metadata


def _unreadable(purpose: str, error: Exception) -> PlacementRefusal:
    message = f"the cluster could not be read to {purpose}: {error}"
    return PlacementRefusal(ErrorCode.REPLICA_PLACEMENT_FAILED, message)


def _not_created(name: str, code: int, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)
