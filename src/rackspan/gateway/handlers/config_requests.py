"""Requests that describe or alter configs: min.insync.racks is taken out, and kept once the cluster has accepted the rest."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from uuid import UUID

from rackspan.errors import ClusterRequestFailed, RackspanError
from rackspan.gateway.core.policies import Entry, Policies, Scope, record
from rackspan.gateway.core.topic_configs import (
    SET,
    ConfigChange,
    RefusedChange,
    change_of,
    describe,
    refused_above,
    without,
)
from rackspan.gateway.net.session import ClientSession
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import (
    AlterConfigsRequestData,
    AlterConfigsResourceResponse,
    AlterConfigsResponseData,
    DescribeConfigsRequestData,
    DescribeConfigsResponseData,
    IncrementalAlterConfigsRequestData,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
    IncrementalAlterConfigsResponseData,
)
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)

CONFIG_TOPIC_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED

_WITH_RACKS: Final = (ConfigResourceType.TOPIC, ConfigResourceType.BROKER)
_TWICE: Final = "Each resource must appear at most once."
_TOPIC_LOOKUPS: Final = 20
_LOOKUP_SECONDS: Final = 0.1

T = TypeVar("T")


def config_topic_refusal(topic: str) -> str:
    """The message for a request that would alter or empty the config topic."""
    return f"{topic} has the values of min.insync.racks and is altered or deleted at the brokers only, not through a gateway"


async def forward(session: ClientSession, header: RequestHeader, body: WireStruct) -> Any:
    """Send the request to the broker with the client's rights, and return the response. Errors: ConnectionError."""
    return await session.call(ApiKey(header.api_key), header.api_version, header.client_id, body)


class ConfigRequests:
    """Requests for configs of topics and brokers. `store` keeps min.insync.racks."""

    def __init__(self, cluster: UpstreamCluster, policies: Policies, store: ConfigTopic) -> None:
        self._cluster = cluster
        self._policies = policies
        self._store = store

    async def describe(
        self, session: ClientSession, header: RequestHeader, body: DescribeConfigsRequestData
    ) -> WireStruct:
        response: DescribeConfigsResponseData = await forward(session, header, body)
        keys = {
            (resource.resource_type, resource.resource_name): resource.configuration_keys for resource in body.resources
        }
        for result in response.results:
            describe(
                result,
                keys.get((result.resource_type, result.resource_name)),
                self._policies,
                synonyms=body.include_synonyms,
                documentation=body.include_documentation,
            )
        return response

    async def incremental_alter(
        self, session: ClientSession, header: RequestHeader, body: IncrementalAlterConfigsRequestData
    ) -> WireStruct:
        split = self._split(body.resources, lambda config: config.config_operation)
        response = IncrementalAlterConfigsResponseData()
        if split.forwarded:
            body.resources = split.forwarded
            response = await forward(session, header, body)
        if not body.validate_only:
            accepted = {
                (result.resource_type, result.resource_name)
                for result in response.responses
                if result.error_code == ErrorCode.NONE
            }
            await self._keep(split.changes, response.responses)
            # After the ids, with which what is known of earlier topics of these names is dropped.
            self._hint_replicas(split.forwarded, accepted)
        refused = split.refused(IncrementalAlterConfigsResponseAlterConfigsResourceResponse)
        response.responses = [*response.responses, *refused]
        return response

    async def alter(self, session: ClientSession, header: RequestHeader, body: AlterConfigsRequestData) -> WireStruct:
        """AlterConfigs replaces all configs of a resource. One that does not name min.insync.racks keeps its value: see `docs/kips.md`."""
        split = self._split(body.resources, lambda _: SET)
        response = AlterConfigsResponseData()
        if split.forwarded:
            body.resources = split.forwarded
            response = await forward(session, header, body)
        if not body.validate_only:
            await self._keep(split.changes, response.responses)
        response.responses = [*response.responses, *split.refused(AlterConfigsResourceResponse)]
        return response

    def _split(self, resources: Sequence[Any], operation: Callable[[Any], int]) -> "_Split":
        """Take min.insync.racks out of resources that are to be altered; `operation` gives the operation of that config."""
        split = _Split(Counter((resource.resource_type, resource.resource_name) for resource in resources))
        for resource in resources:
            kind, name = resource.resource_type, resource.resource_name
            if split.times[kind, name] > 1:
                # As Kafka does. One of them alone could be accepted, and its value not be kept.
                split.changes[kind, name] = RefusedChange(ErrorCode.INVALID_REQUEST, _TWICE)
                continue
            if (kind, name) == (ConfigResourceType.TOPIC, self._store.topic):
                split.changes[kind, name] = RefusedChange(CONFIG_TOPIC_REFUSED, config_topic_refusal(name))
                continue
            rest, own = without(resource.configs)
            if own and kind in _WITH_RACKS:
                change = self.change(kind, name, operation(own[0]), [config.value for config in own])
                split.changes[kind, name] = change
                if isinstance(change, RefusedChange):
                    continue
                resource.configs = rest
            split.forwarded.append(resource)
        return split

    def change(
        self, kind: int, name: str, operation: int, values: Sequence[str | None]
    ) -> ConfigChange | RefusedChange:
        brokers = self._cluster.all_brokers()
        change = change_of(kind, name, operation, values, brokers, self._policies)
        if isinstance(change, RefusedChange):
            return change
        return refused_above(change, len({broker.rack for broker in brokers}), self._store.racks)

    async def _keep(
        self, changes: Mapping[tuple[int, str], ConfigChange | RefusedChange], responses: Sequence[Any]
    ) -> None:
        """Keep the values of the resources that the cluster accepted, side by side: each waits until every gateway acts on it."""

        async def keep(response: Any) -> None:
            change = changes.get((response.resource_type, response.resource_name))
            if not isinstance(change, ConfigChange) or response.error_code != ErrorCode.NONE:
                return
            try:
                # The record that removes a value has no id.
                has_id = change.scope is Scope.TOPIC and change.value is not None
                topic_id = await self.topic_id(change.name) if has_id else None
                await self.write(change, topic_id)
            except (OSError, RackspanError) as error:
                response.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
                response.error_message = (
                    f"{MIN_INSYNC_RACKS} may not be kept, the request's other configs were altered: {error}"
                )

        await asyncio.gather(*map(keep, responses))

    async def write(self, change: ConfigChange, topic_id: UUID | None) -> None:
        before, after = self._policies.largest_change(change.scope, change.name, change.value)
        for warning in change.warnings:
            log.warning("%s %s: %s", change.scope.value, change.name or "(default)", warning)
        entry = None if change.value is None else Entry(change.value, topic_id)
        racks, needed, is_written = 0, self._racks_to_hold(change), False
        try:
            # What is replayed with the record may make it a raise, as of a topic whose lower value is removed while the default is raised elsewhere.
            while needed > racks:
                racks = needed
                await self._store.write(*record(change.scope, change.name, entry), racks)
                needed = self._racks_to_hold(change)
            is_written = True
        finally:
            # A record whose write fails, or whose client leaves, may be committed all the same.
            if after < before:
                place = f"{change.scope.value} {change.name or '(default)'}"
                self._policies.record_lowered(place, before, after, is_certain=is_written)
        if after >= before:
            log.info("%s %s: %s=%s", change.scope.value, change.name or "(default)", MIN_INSYNC_RACKS, change.value)

    def _racks_to_hold(self, change: ConfigChange) -> int:
        return self._policies.racks_to_hold(change.scope, change.name, change.value)

    def _hint_replicas(self, resources: Sequence[Any], accepted: Collection[tuple[int, str]]) -> None:
        """A new min.insync.replicas that the cluster accepted counts at once; the next read of its configs confirms it."""
        for resource in resources:
            if (resource.resource_type, resource.resource_name) not in accepted:
                continue
            for config in resource.configs:
                if (
                    resource.resource_type == ConfigResourceType.TOPIC
                    and (config.name, config.config_operation) == (MIN_INSYNC_REPLICAS, SET)
                    and str(config.value).isdecimal()
                ):
                    self._policies.record_min_insync_replicas({resource.resource_name: max(1, int(config.value))})

    async def topic_id(self, topic: str) -> UUID | None:
        """The id that the cluster reports now; None if its version has no topic ids.

        The topic exists, so a broker that does not report it is behind. Errors: ClusterRequestFailed if it stays so.
        """
        request = MetadataRequestData(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        for _ in range(_TOPIC_LOOKUPS):
            connection = await self._cluster.any_connection()
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
            (found,) = metadata.topics
            if found.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE):
                self._policies.record_topic(topic, found.topic_id, asyncio.get_running_loop().time())
                return found.topic_id
            await asyncio.sleep(_LOOKUP_SECONDS)
        raise ClusterRequestFailed(f"the id of topic {topic} is not known: error {found.error_code}; alter it again")


@dataclass(slots=True)
class _Split:
    """Resources that are to be altered: what is forwarded of them, and the change of min.insync.racks of each.

    `times`: how often the request names each.
    """

    times: Counter[tuple[int, str]]
    changes: dict[tuple[int, str], ConfigChange | RefusedChange] = field(default_factory=dict)
    forwarded: list[Any] = field(default_factory=list)

    def refused(self, response: Callable[..., T]) -> list[T]:
        """The responses for what is not forwarded."""
        return [
            response(error_code=change.code, error_message=change.message, resource_type=kind, resource_name=name)
            for (kind, name), change in self.changes.items()
            if isinstance(change, RefusedChange)
            for _ in range(self.times[kind, name])
        ]
