"""Requests of admin clients that the gateway takes part in: configs, new topics and new partitions.

Each is sent on with what Kafka understands, on the client's connection and with the client's rights; what is ours is done
after the cluster has accepted it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from uuid import UUID

from rackspan.errors import ClusterRequestFailed, RackspanError
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.policies import Entry, Policies, Scope, record
from rackspan.gateway.core.topic_configs import (
    BROKER,
    DELETE,
    SET,
    TOPIC,
    Change,
    RefusedChange,
    change_of,
    describe,
    refused_above,
    without,
)
from rackspan.gateway.handlers import config_topic_requests
from rackspan.gateway.net.exchange import Exchange
from rackspan.gateway.net.session import Session
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader, read_body, read_header, write_response
from rackspan.wire.framing import Piece
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import (
    AlterConfigsRequestData,
    AlterConfigsResourceResponse,
    AlterConfigsResponseData,
    DescribeConfigsRequestData,
    DescribeConfigsResource,
    DescribeConfigsResponseData,
    IncrementalAlterConfigsRequestData,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseData,
)
from rackspan.wire.messages.log_offsets import DeleteRecordsRequestData
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData
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
    DeleteTopicsRequestData,
)

if TYPE_CHECKING:
    from rackspan.gateway.core.placement import Placed, PlacedCounts

log = logging.getLogger(__name__)

NONE: Final = 0
REPLICA_PLACEMENT_FAILED: Final = 1003
UNKNOWN_SERVER_ERROR: Final = -1
UNKNOWN_TOPIC: Final = 3
_LEADER_NOT_AVAILABLE: Final = 5
_ACCEPTED: Final = frozenset({NONE})
_FAILURES: Final = (OSError, TimeoutError, RackspanError)
_TOPIC_LOOKUPS: Final = 20
_LOOKUP_SECONDS: Final = 0.1

Handle = Callable[[Session, RequestHeader, Any], Awaitable[WireStruct]]
T = TypeVar("T")


class Store(Protocol):
    """Where min.insync.racks is kept."""

    topic: str
    topic_id: UUID | None

    async def write(self, key: bytes, value: bytes | None, racks: int) -> None: ...

    @property
    def racks(self) -> int: ...


class AdminHandler:
    """`store` None: min.insync.racks is no config of topics here. `placer` None: Kafka places by itself."""

    def __init__(
        self,
        cluster: UpstreamCluster,
        addresses: Addresses,
        policies: Policies,
        store: Store | None,
        placer: str | None,
        placer_configs: Mapping[str, str],
        *,
        extended_error_codes: bool,
    ) -> None:
        self._cluster = cluster
        self._addresses = addresses
        self._policies = policies
        self._store = store
        self.placer = placer
        self.placer_configs = placer_configs
        self.extended_error_codes = extended_error_codes
        self._rng = Random()
        self.placements = 0
        self.placement_failures = 0
        configs: dict[int, Handle] = {
            ApiKey.INCREMENTAL_ALTER_CONFIGS: self._incremental_alter,
            ApiKey.ALTER_CONFIGS: self._alter,
            ApiKey.DESCRIBE_CONFIGS: self._describe,
            ApiKey.CREATE_TOPICS: self._create_topics,
        }
        if store is not None:
            configs[ApiKey.CREATE_PARTITIONS] = self._create_partitions
            configs[ApiKey.DELETE_TOPICS] = partial(self._delete_topics, store)
            configs[ApiKey.DELETE_RECORDS] = partial(self._delete_records, store)
        placing: dict[int, Handle] = {
            ApiKey.CREATE_TOPICS: self._create_topics,
            ApiKey.CREATE_PARTITIONS: self._create_partitions,
            ApiKey.METADATA: self._metadata,
        }
        self._handles = {**(configs if store is not None else {}), **(placing if placer is not None else {})}

    @property
    def _placement_failed(self) -> int:
        """What clients of Kafka's own codes get in place of REPLICA_PLACEMENT_FAILED (KIP-660, Compatibility)."""
        return REPLICA_PLACEMENT_FAILED if self.extended_error_codes else UNKNOWN_SERVER_ERROR

    def reads_whole(self, api_key: int) -> bool:
        return api_key in self._handles

    def take(self, session: Session, exchange: Exchange, request: memoryview) -> None:
        header = read_header(request)
        body = read_body(request, header)
        if header.api_key == ApiKey.METADATA and not _may_create(body):
            session.forward(exchange)
            return
        session.handle(exchange, self._response(session, header, body))

    async def _response(self, session: Session, header: RequestHeader, body: Any) -> list[Piece]:
        response = await self._handles[header.api_key](session, header, body)
        return [*write_response(header, response)]

    async def _forward(self, session: Session, header: RequestHeader, body: WireStruct) -> Any:
        return await session.call(ApiKey(header.api_key), header.api_version, header.client_id, body)

    # Configs.

    async def _describe(self, session: Session, header: RequestHeader, body: DescribeConfigsRequestData) -> WireStruct:
        response: DescribeConfigsResponseData = await self._forward(session, header, body)
        keys = {(one.resource_type, one.resource_name): one.configuration_keys for one in body.resources}
        for result in response.results:
            describe(
                result,
                keys.get((result.resource_type, result.resource_name)),
                self._policies,
                synonyms=body.include_synonyms,
                documentation=body.include_documentation,
            )
        return response

    async def _incremental_alter(
        self, session: Session, header: RequestHeader, body: IncrementalAlterConfigsRequestData
    ) -> WireStruct:
        split = self._split(body.resources, lambda config: config.config_operation, None)
        response = IncrementalAlterConfigsResponseData()
        if split.forwarded:
            body.resources = split.forwarded
            response = await self._forward(session, header, body)
        if not body.validate_only:
            self._hint_replicas(split.forwarded)
            await self._keep(split.changes, response.responses)
        refused = split.refused(IncrementalAlterConfigsResponseAlterConfigsResourceResponse)
        response.responses = [*response.responses, *refused]
        return response

    async def _alter(self, session: Session, header: RequestHeader, body: AlterConfigsRequestData) -> WireStruct:
        """The older API replaces all configs of a resource: without our key its value is removed."""
        split = self._split(body.resources, lambda _: SET, DELETE)
        response = AlterConfigsResponseData()
        if split.forwarded:
            body.resources = split.forwarded
            response = await self._forward(session, header, body)
        if not body.validate_only:
            await self._keep(split.changes, response.responses)
        response.responses = [*response.responses, *split.refused(AlterConfigsResourceResponse)]
        return response

    def _split(self, resources: Iterable[Any], operation: Callable[[Any], int], absent: int | None) -> "_Split":
        """Take min.insync.racks out of resources that are to be altered.

        `operation` is what a config of ours requires; `absent` what a resource without one requires, None for nothing.
        """
        split = _Split()
        for resource in resources:
            kind, name = resource.resource_type, resource.resource_name
            if self._store is not None and (kind, name) == (TOPIC, self._store.topic):
                split.changes[kind, name] = RefusedChange(
                    config_topic_requests.REFUSED, config_topic_requests.refusal(name)
                )
                continue
            rest, ours = without(resource.configs) if kind in (TOPIC, BROKER) else (resource.configs, [])
            required = operation(ours[0]) if ours else absent
            if required is not None and kind in (TOPIC, BROKER):
                values = [one.value for one in ours] or [None]
                change = self._change(kind, name, required, values)
                split.changes[kind, name] = change
                if isinstance(change, RefusedChange):
                    continue
                resource.configs = rest
            split.forwarded.append(resource)
        return split

    def _change(self, kind: int, name: str, operation: int, values: Sequence[str | None]) -> Change | RefusedChange:
        brokers = self._cluster.all_brokers()
        change = change_of(kind, name, operation, values, brokers, self._policies)
        if self._store is None or isinstance(change, RefusedChange):
            return change
        return refused_above(change, len({broker.rack for broker in brokers}), self._store.racks)

    async def _keep(self, changes: Mapping[tuple[int, str], Change | RefusedChange], responses: Sequence[Any]) -> None:
        """Keep the values of the resources that the cluster accepted."""
        for response in responses:
            change = changes.get((response.resource_type, response.resource_name))
            if not isinstance(change, Change) or response.error_code not in _ACCEPTED:
                continue
            try:
                topic_id = await self._topic_id(change.name) if change.scope is Scope.TOPIC else None
                await self._write(change, topic_id)
            except _FAILURES as error:
                response.error_code = UNKNOWN_SERVER_ERROR
                response.error_message = (
                    f"{MIN_INSYNC_RACKS} may not be kept, the request's other configs were altered: {error}"
                )

    async def _write(self, change: Change, topic_id: UUID | None) -> None:
        if self._store is None:
            return
        known = self._policies.entries.get((change.scope, change.name))
        if change.value is None and known is None:
            return
        for warning in change.warnings:
            log.warning("%s %s: %s", change.scope.value, change.name or "(default)", warning)
        entry = None if change.value is None else Entry(change.value, topic_id)
        racks = self._policies.racks_to_hold(change.scope, change.name, change.value)
        await self._store.write(*record(change.scope, change.name, entry), racks)
        log.info("%s %s: %s=%s", change.scope.value, change.name or "(default)", MIN_INSYNC_RACKS, change.value)

    def _hint_replicas(self, resources: Sequence[Any]) -> None:
        """A new min.insync.replicas counts at once; the next look at the cluster's configs confirms it."""
        for resource in resources:
            for config in resource.configs:
                if (
                    resource.resource_type == TOPIC
                    and config.name == MIN_INSYNC_REPLICAS
                    and str(config.value).isdecimal()
                ):
                    self._policies.learn_min_insync_replicas({resource.resource_name: max(1, int(config.value))})

    async def _topic_id(self, topic: str) -> UUID | None:
        """As the cluster reports it now; None where its version has no topic ids.

        The topic exists, so a broker that reports none is behind. Errors: ClusterRequestFailed where it stays so.
        """
        request = MetadataRequestData(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        for _ in range(_TOPIC_LOOKUPS):
            connection = await self._cluster.any_connection()
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
            (found,) = metadata.topics
            if found.error_code in (NONE, _LEADER_NOT_AVAILABLE):
                self._policies.learn_topic(topic, found.topic_id, asyncio.get_running_loop().time())
                return found.topic_id
            await asyncio.sleep(_LOOKUP_SECONDS)
        raise ClusterRequestFailed(f"the id of topic {topic} is not known: error {found.error_code}; alter it again")

    # The config topic itself.

    async def _delete_topics(
        self, store: Store, session: Session, header: RequestHeader, body: DeleteTopicsRequestData
    ) -> WireStruct:
        forward = partial(self._forward, session, header)
        return await config_topic_requests.delete_topics(body, forward, store.topic, store.topic_id)

    async def _delete_records(
        self, store: Store, session: Session, header: RequestHeader, body: DeleteRecordsRequestData
    ) -> WireStruct:
        return await config_topic_requests.delete_records(body, partial(self._forward, session, header), store.topic)

    # New topics.

    async def _create_topics(
        self, session: Session, header: RequestHeader, body: CreateTopicsRequestData
    ) -> WireStruct:
        changes: dict[str, Change] = {}
        refused: list[CreatableTopicResult] = []
        topics: list[CreatableTopic] = []
        load = _Load(self._cluster)
        for topic in body.topics:
            if self._store is not None:
                rest, ours = without(topic.configs)
                if ours:
                    change = self._change(TOPIC, topic.name, SET, [one.value for one in ours])
                    if isinstance(change, RefusedChange):
                        refused.append(_not_created(topic.name, change.code, change.message))
                        continue
                    changes[topic.name] = change
                    topic.configs = rest
            error = await self._assign(topic, load)
            if error is not None:
                refused.append(_not_created(topic.name, self._placement_failed, error))
                continue
            topics.append(topic)
        response = CreateTopicsResponseData()
        earlier = {topic.name: self._policies.entry_id(topic.name) for topic in topics}
        if topics:
            body.topics = topics
            response = await self._forward(session, header, body)
        for result in response.topics:
            await self._created(result, changes.get(result.name), body, earlier.get(result.name))
        response.topics = [*response.topics, *refused]
        return response

    async def _created(
        self,
        result: CreatableTopicResult,
        change: Change | None,
        body: CreateTopicsRequestData,
        earlier: UUID | None,
    ) -> None:
        if result.error_code != NONE:
            return
        if not body.validate_only:
            requested = (one for one in body.topics if one.name == result.name)
            values = {config.name: config.value for one in requested for config in one.configs}
            replicas = values.get(MIN_INSYNC_REPLICAS)
            try:
                topic_id = result.topic_id or (await self._topic_id(result.name) if change is not None else None)
                self._policies.learn_created(result.name, earlier, topic_id, asyncio.get_running_loop().time())
                # After the id, with which what is known of an earlier topic of that name is dropped.
                if replicas is not None and replicas.strip().isdecimal():
                    self._policies.learn_min_insync_replicas({result.name: max(1, int(replicas))})
                if change is not None:
                    await self._write(change, topic_id)
            except _FAILURES as error:
                result.error_code = UNKNOWN_SERVER_ERROR
                result.error_message = f"the topic was created, and {MIN_INSYNC_RACKS} may not be kept: {error}"
        if change is not None and result.configs:
            configs = CreatableTopicConfigs(name=MIN_INSYNC_RACKS, value=str(change.value), config_source=1)
            result.configs = [*result.configs, configs]

    # Placement.

    async def _assign(self, topic: CreatableTopic, load: "_Load") -> str | None:
        """Fill in the assignment of a new topic that has none. The reason where that fails."""
        try:
            return await self._assign_replicas(topic, load)
        except _FAILURES as error:
            self.placement_failures += 1
            return f"the cluster could not be read to place {topic.name}: {error}"

    async def _assign_replicas(self, topic: CreatableTopic, load: "_Load") -> str | None:
        if self.placer is None or topic.assignments:
            return None
        partitions, factor = topic.num_partitions, topic.replication_factor
        if partitions == -1 or factor == -1:
            defaults = await load.defaults()
            partitions = defaults["num.partitions"] if partitions == -1 else partitions
            factor = defaults["default.replication.factor"] if factor == -1 else factor
        if partitions < 1 or factor < 1:
            # Kafka refuses it, in Kafka's words.
            return None
        configs = {**self.placer_configs, **{one.name: one.value or "" for one in topic.configs}}
        placed = await load.place(self.placer, configs, 0, partitions, factor, self._rng)
        if placed.error is not None:
            self.placement_failures += 1
            return placed.error
        self.placements += 1
        topic.num_partitions = topic.replication_factor = -1
        topic.assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=row)
            for index, row in enumerate(placed.replicas)
        ]
        return None

    async def _create_partitions(
        self, session: Session, header: RequestHeader, body: CreatePartitionsRequestData
    ) -> WireStruct:
        load = _Load(self._cluster)
        refused: list[CreatePartitionsTopicResult] = []
        forwarded: list[CreatePartitionsTopic] = []
        for topic in body.topics:
            if self._store is not None and topic.name == self._store.topic:
                refusal = config_topic_requests.refusal(topic.name)
                refused.append(
                    CreatePartitionsTopicResult(
                        name=topic.name, error_code=config_topic_requests.REFUSED, error_message=refusal
                    )
                )
                continue
            reason = await self._assign_more(topic, load)
            if reason is None:
                forwarded.append(topic)
                continue
            self.placement_failures += 1
            refused.append(
                CreatePartitionsTopicResult(name=topic.name, error_code=self._placement_failed, error_message=reason)
            )
        response = CreatePartitionsResponseData()
        if forwarded:
            body.topics = forwarded
            response = await self._forward(session, header, body)
        response.results = [*response.results, *refused]
        return response

    async def _assign_more(self, topic: CreatePartitionsTopic, load: "_Load") -> str | None:
        """Fill in the assignment of new partitions that have none. The reason where that fails."""
        if self.placer is None or topic.assignments is not None:
            return None
        try:
            rows = await load.rows(topic.name)
            if not rows or topic.count <= len(rows):
                # Kafka refuses it, in Kafka's words.
                return None
            placed = await load.place(
                self.placer, self.placer_configs, len(rows), topic.count - len(rows), len(rows[0]), self._rng
            )
        except _FAILURES as error:
            return f"the cluster could not be read to place new partitions of {topic.name}: {error}"
        if placed.error is None:
            self.placements += 1
            topic.assignments = [CreatePartitionsAssignment(broker_ids=row) for row in placed.replicas]
        return placed.error

    async def _metadata(self, session: Session, header: RequestHeader, body: MetadataRequestData) -> WireStruct:
        """Automatic creation: the topics that are missing are created as by CreateTopics, with the client's rights."""
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
            response: MetadataResponseData = await self._forward(session, header, body)
            return self._readdressed(response)
        response = await self._forward(session, header, body)
        if await self._create_missing(session, header, response):
            response = await self._forward(session, header, body)
        return self._readdressed(response)

    async def _create_missing(self, session: Session, header: RequestHeader, metadata: MetadataResponseData) -> bool:
        missing = [topic.name for topic in metadata.topics if topic.error_code == UNKNOWN_TOPIC and topic.name]
        load = _Load(self._cluster)
        try:
            if not missing or not (await load.defaults())["auto.create.topics.enable"]:
                return False
        except _FAILURES as error:
            log.warning("topics %s are not created automatically: %s", ", ".join(missing), error)
            return False
        topics = []
        for name in missing:
            topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
            reason = await self._assign(topic, load)
            if reason is None:
                topics.append(topic)
            else:
                log.warning("topic %s is not created automatically: %s", name, reason)
        if topics:
            request = CreateTopicsRequestData(topics=topics, timeout=10_000)
            await session.call(ApiKey.CREATE_TOPICS, _CREATE_VERSION, header.client_id, request)
        return bool(topics)

    def _readdressed(self, metadata: MetadataResponseData) -> MetadataResponseData:
        for broker in metadata.brokers:
            broker.host, broker.port = self._addresses.advertised(broker.node_id, broker.host, broker.port)
            broker.rack = self._addresses.rack(broker.node_id, broker.rack)
        return metadata


_ALLOW_SINCE: Final = 4
_CREATE_VERSION: Final = 5


def _may_create(body: MetadataRequestData) -> bool:
    return bool(body.topics) and body.allow_auto_topic_creation and any(topic.name for topic in body.topics or ())


def _not_created(name: str, code: int, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=code, error_message=message, num_partitions=-1, replication_factor=-1, configs=None
    )


@dataclass(slots=True)
class _Split:
    """Resources that are to be altered: what is forwarded of them, and the change of min.insync.racks of each."""

    changes: dict[tuple[int, str], Change | RefusedChange] = field(default_factory=dict)
    forwarded: list[Any] = field(default_factory=list)

    def refused(self, response: Callable[..., T]) -> list[T]:
        """The responses for what is not forwarded."""
        return [
            response(error_code=change.code, error_message=change.message, resource_type=kind, resource_name=name)
            for (kind, name), change in self.changes.items()
            if isinstance(change, RefusedChange)
        ]


class _Load:
    """What the cluster holds, read once for a request."""

    def __init__(self, cluster: UpstreamCluster) -> None:
        self._cluster = cluster
        self._rows: dict[str, list[tuple[int, ...]]] | None = None
        self._counts: PlacedCounts | None = None
        self._defaults: dict[str, int] | None = None

    async def defaults(self) -> dict[str, int]:
        """num.partitions, default.replication.factor and auto.create.topics.enable of one broker."""
        if self._defaults is None:
            node, connection = await self._cluster.any_broker()
            keys = ["num.partitions", "default.replication.factor", "auto.create.topics.enable"]
            resource = DescribeConfigsResource(resource_type=BROKER, resource_name=str(node), configuration_keys=keys)
            response = await connection.call(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequestData(resources=[resource]))
            (result,) = response.results
            if result.error_code != NONE:
                raise ClusterRequestFailed(
                    f"broker {node}'s num.partitions and default.replication.factor cannot be read: "
                    f"{result.error_message or result.error_code}; grant the gateway's principal DESCRIBE_CONFIGS on the cluster"
                )
            values = {one.name: one.value for one in result.configs}
            self._defaults = {
                "num.partitions": int(values.get("num.partitions") or 1),
                "default.replication.factor": int(values.get("default.replication.factor") or 1),
                "auto.create.topics.enable": int(values.get("auto.create.topics.enable") == "true"),
            }
        return self._defaults

    async def rows(self, topic: str) -> list[tuple[int, ...]]:
        """The replicas of a topic's partitions, in order; empty where there is no such topic."""
        return (await self._all()).get(topic, [])

    async def _all(self) -> dict[str, list[tuple[int, ...]]]:
        if self._rows is None:
            connection = await self._cluster.any_connection()
            request = MetadataRequestData(topics=None, allow_auto_topic_creation=False)
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
            self._rows = {
                topic.name or "": [
                    tuple(one.replica_nodes) for one in sorted(topic.partitions, key=lambda one: one.partition_index)
                ]
                for topic in metadata.topics
            }
        return self._rows

    async def place(
        self, placer: str, configs: Mapping[str, str], start: int, partitions: int, factor: int, rng: Random
    ) -> "Placed":
        # Imported here: placers need NumPy, and few gateways place.
        from rackspan.gateway.core.placement import PlacedCounts, place

        if self._counts is None:
            await self._cluster.refresh()
            self._counts = PlacedCounts(row for rows in (await self._all()).values() for row in rows)
        return place(placer, configs, self._cluster.brokers(), self._counts, start, partitions, factor, rng)
