"""Sends all requests of a snapshot: first metadata, which it cannot do without, then the rest.

A failure of metadata is an error. Any other failure becomes a note: what the snapshot lacks, and which right or which
broker is the reason. All of it happens before one deadline.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from rackspan.client import requests
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.errors import FAILURES, cause, is_refusal, listed, needs, request_failed
from rackspan.client.release import release_warnings
from rackspan.client.requests import batches
from rackspan.errors import ClusterUnauthorized
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.model import Broker
from rackspan.sources.live.snapshot_assembly import ClusterResponses, LogDirs
from rackspan.wire.messages.metadata import MetadataResponseData

T = TypeVar("T")

CONFIG_BATCH: Final = 500
"""Topics in one DescribeConfigs: 10,000 topics are 20 requests, and no response is larger than a few hundred kilobytes."""

_DESCRIBE_CLUSTER: Final = "Describe on Cluster"


def read_responses(settings: ConnectionSettings, *, sizes: bool = True) -> ClusterResponses:
    """The responses of one cluster, with or without log sizes, which take a request a broker. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        return responses_of(connection, sizes=sizes)


def responses_of(connection: ClusterConnection, *, sizes: bool) -> ClusterResponses:
    """The same over a connection that others use too. Errors: SourceError, UsageError."""
    return connection.run(_ClusterReader(connection, sizes).read_all)


class _ClusterReader:
    """Sends the requests of one snapshot and collects notes of what failed."""

    def __init__(self, connection: ClusterConnection, sizes: bool = True) -> None:
        self._connection = connection
        self._sizes = sizes
        self._notes: list[str] = []
        self._may_describe_cluster = True

    async def read_all(self) -> ClusterResponses:
        metadata = await self._metadata()
        # Each broker reports only its own log directories, so these requests run beside everything else.
        brokers = requests.live_brokers(metadata)
        topics = tuple(topic for topic in metadata.topics if topic.error_code == ErrorCode.NONE)
        log_dirs = asyncio.create_task(self._log_dirs([broker.id for broker in brokers] if self._sizes else []))
        registered = await self._or_note((), requests.registered_brokers(self._connection), "which brokers are fenced")
        configs = await self._configs([topic.name or "" for topic in topics])
        # Last, since only these wait for the controller, and responses on a connection come in order.
        moving = asyncio.create_task(requests.reassignments(self._connection))
        quorum = await self._or_note((), requests.quorum(self._connection), "the controller quorum")
        reassignments = await self._or_note({}, moving, "reassignments under way")
        self._refuse_if_unauthorized(metadata)
        self._notes += [
            f"topic {topic.name} could not be described: {error_code(topic.error_code).name}"
            for topic in metadata.topics
            if topic.error_code != ErrorCode.NONE
        ]
        return ClusterResponses(
            cluster_id=metadata.cluster_id,
            brokers=_merged(brokers, registered),
            reachable=frozenset(broker.id for broker in brokers),
            lists_fenced=bool(registered),
            topics=topics,
            configs=configs,
            reassignments=reassignments,
            quorum=quorum,
            log_dirs=await log_dirs,
            sizes_requested=self._sizes,
            notes=tuple(self._notes),
            warnings=await release_warnings(self._connection.call),
        )

    async def _metadata(self) -> MetadataResponseData:
        try:
            return await requests.metadata(self._connection)
        except FAILURES as error:
            raise request_failed("the cluster's metadata", "Describe on its topics", error) from error

    async def _configs(self, names: Sequence[str]) -> dict[str, Mapping[str, str]]:
        values: dict[str, Mapping[str, str]] = {}
        refused: dict[str, Exception] = {}
        for batch in batches(names, CONFIG_BATCH):
            try:
                response = await requests.topic_configs(self._connection, batch)
            except FAILURES as error:
                refused.update(dict.fromkeys(batch, error))
            else:
                values.update(response.values)
                refused.update(response.refused)
        self._notes += _config_notes(refused)
        return values

    async def _log_dirs(self, broker_ids: Sequence[int]) -> LogDirs:
        responses = await asyncio.gather(
            *(requests.broker_logs(self._connection, broker_id) for broker_id in broker_ids), return_exceptions=True
        )
        logs: dict[int, requests.BrokerLogs] = {}
        unreachable: dict[int, str] = {}
        unauthorized: set[int] = set()
        for broker_id, response in zip(broker_ids, responses, strict=True):
            if isinstance(response, requests.BrokerLogs):
                logs[broker_id] = response
            elif isinstance(response, Exception) and is_refusal(response):
                unauthorized.add(broker_id)
            elif isinstance(response, FAILURES):
                unreachable[broker_id] = cause(response)
            else:
                raise response
        return LogDirs(
            sizes={broker: read.sizes for broker, read in logs.items()},
            unreachable=unreachable,
            unauthorized=frozenset(unauthorized),
            cordoned=frozenset(broker for broker, read in logs.items() if read.cordoned),
            failed={broker: read.failed for broker, read in logs.items() if read.failed},
            unread={broker: read.unread for broker, read in logs.items() if read.unread},
            usable_bytes={broker: read.usable_bytes for broker, read in logs.items()},
        )

    async def _or_note(self, otherwise: T, response: Awaitable[T], what: str) -> T:
        """The response; where it fails, `otherwise` and a note that `what` is unknown."""
        try:
            return await response
        except FAILURES as error:
            refused = is_refusal(error)
            self._may_describe_cluster &= not refused
            self._notes.append(f"{what}: unknown, {needs(_DESCRIBE_CLUSTER) if refused else cause(error)}")
            return otherwise

    def _refuse_if_unauthorized(self, metadata: MetadataResponseData) -> None:
        """Kafka hides topics from users without Describe. A user who sees none and lacks a right gets an error instead."""
        if not metadata.topics and not self._may_describe_cluster:
            raise ClusterUnauthorized(
                f"{self._connection.address} shows this user no topic; it needs Describe on Topic (each one, or *) and "
                f"{_DESCRIBE_CLUSTER}: add them with kafka-acls"
            )


def _config_notes(refused: Mapping[str, Exception]) -> Iterator[str]:
    forbidden = [name for name, error in refused.items() if is_refusal(error)]
    if forbidden:
        right = f"DescribeConfigs on Topic {listed(forbidden)}"
        yield f"min.insync.replicas of {listed(forbidden)}: unknown, {needs(right)}"
    others = [name for name in refused if name not in set(forbidden)]
    if others:
        yield f"min.insync.replicas of {listed(others)}: unknown, {cause(refused[others[0]])}"


def _merged(alive: Sequence[Broker], registered: Sequence[Broker]) -> tuple[Broker, ...]:
    """The registered brokers, which include fenced ones; from a Kafka that does not list them, the live ones."""
    brokers = {broker.id: broker for broker in alive} | {broker.id: broker for broker in registered}
    return tuple(brokers.values())
