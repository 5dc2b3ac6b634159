"""The whole conversation with a cluster: what a snapshot cannot be without, then the rest, each answer with its excuse.

An essential answer that fails is an error. Anything else that fails becomes a note: what the snapshot lacks, and which
right or which broker is the reason. All of it happens before one deadline.
"""

from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final, TypeVar

from kafka.errors import AuthorizationError, KafkaError

from rackspan.errors import ClusterUnauthorized
from rackspan.model import Broker
from rackspan.model.ids import TopicPartition
from rackspan.sources.live import requests
from rackspan.sources.live.connection import ClusterConnection, ConnectionSettings
from rackspan.sources.live.error_messages import cause, listed, needs, request_failed
from rackspan.sources.live.responses import ClusterReplies, LogDirs

T = TypeVar("T")

CONFIG_BATCH: Final = 500
"""Topics in one DescribeConfigs: 10,000 topics are 20 requests, and no answer is larger than a few hundred kilobytes."""

_DESCRIBE_CLUSTER: Final = "Describe on Cluster"


def interview(settings: ConnectionSettings, *, sizes: bool = True) -> ClusterReplies:
    """Ask one cluster everything, or all but the sizes of logs, which every broker is asked for. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        return connection.run(_Interview(connection, sizes).whole)


class _Interview:
    """One conversation and the notes it leaves."""

    def __init__(self, connection: ClusterConnection, sizes: bool = True) -> None:
        self._connection = connection
        self._sizes = sizes
        self._notes: list[str] = []
        self._may_describe_cluster = True

    async def whole(self) -> ClusterReplies:
        known = await self._metadata()
        # Log directories are each broker's own to tell, so they are asked beside everything else.
        log_dirs = self._connection.start(
            self._log_dirs, [broker.id for broker in known.brokers] if self._sizes else []
        )
        registered = await self._or((), requests.registered_brokers(self._connection), "which brokers are fenced")
        configs = await self._configs([topic.name for topic in known.topics])
        # Last, since these alone wait for the controller, and a connection answers in order.
        moving = self._connection.start(requests.reassignments, self._connection)
        quorum = await self._or((), requests.quorum(self._connection), "the controller quorum")
        reassignments = await self._or({}, moving, "reassignments under way")
        self._refuse_to_guess(known)
        self._notes += [f"topic {name} could not be described: {error}" for name, error in known.refused.items()]
        return ClusterReplies(
            cluster_id=known.cluster_id,
            brokers=_merged(known.brokers, registered),
            lists_fenced=bool(registered),
            topics=known.topics,
            configs=configs,
            reassignments=reassignments,
            quorum=quorum,
            log_dirs=await log_dirs,
            asked_for_sizes=self._sizes,
            notes=tuple(self._notes),
        )

    async def _metadata(self) -> requests.Metadata:
        try:
            return await requests.metadata(self._connection)
        except KafkaError as error:
            raise request_failed("the cluster's metadata", "Describe on its topics", error) from error

    async def _configs(self, names: Sequence[str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        refused: dict[str, KafkaError] = {}
        for batch in _batches(names, CONFIG_BATCH):
            try:
                answer = await requests.topic_configs(self._connection, batch)
            except KafkaError as error:
                refused.update(dict.fromkeys(batch, error))
            else:
                values.update(answer.values)
                refused.update(answer.refused)
        self._notes += _config_notes(refused)
        return values

    async def _log_dirs(self, broker_ids: Sequence[int]) -> LogDirs:
        asked = {
            broker_id: self._connection.start(requests.log_sizes, self._connection, broker_id)
            for broker_id in broker_ids
        }
        sizes: dict[int, dict[TopicPartition, int]] = {}
        silent: dict[int, str] = {}
        refusing: set[int] = set()
        for broker_id, answer in asked.items():
            try:
                sizes[broker_id] = await answer
            except AuthorizationError:
                refusing.add(broker_id)
            except (KafkaError, OSError) as error:
                silent[broker_id] = cause(error)
        return LogDirs(sizes, silent, frozenset(refusing))

    async def _or(self, otherwise: T, answer: Awaitable[T], lost: str) -> T:
        """The answer, or a note of what is lost without it."""
        try:
            return await answer
        except KafkaError as error:
            refused = _is_refusal(error)
            self._may_describe_cluster &= not refused
            self._notes.append(f"{lost}: unknown, {needs(_DESCRIBE_CLUSTER) if refused else cause(error)}")
            return otherwise

    def _refuse_to_guess(self, known: requests.Metadata) -> None:
        """Kafka hides topics from those who may not see them; where nothing at all is to be seen, say so instead."""
        if not known.topics and not self._may_describe_cluster:
            raise ClusterUnauthorized(
                f"{self._connection.address} shows this user no topic; it needs Describe on Topic (each one, or *) and "
                f"{_DESCRIBE_CLUSTER}: add them with kafka-acls"
            )


def _config_notes(refused: dict[str, KafkaError]) -> Iterator[str]:
    forbidden = [name for name, error in refused.items() if _is_refusal(error)]
    if forbidden:
        right = f"DescribeConfigs on Topic {listed(forbidden)}"
        yield f"min.insync.replicas of {listed(forbidden)}: unknown, {needs(right)}"
    others = [name for name in refused if name not in set(forbidden)]
    if others:
        yield f"min.insync.replicas of {listed(others)}: unknown, {cause(refused[others[0]])}"


def _merged(alive: Sequence[Broker], registered: Sequence[Broker]) -> tuple[Broker, ...]:
    """What is registered says more (fencing); a Kafka that does not tell leaves us those alive."""
    brokers = {broker.id: broker for broker in alive} | {broker.id: broker for broker in registered}
    return tuple(brokers.values())


def _batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (names[start : start + size] for start in range(0, len(names), size))


def _is_refusal(error: Exception) -> bool:
    return isinstance(error, AuthorizationError)
