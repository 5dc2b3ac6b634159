"""What the source requests of a cluster: its brokers' racks, the partitions of topics, their offsets, and records.

The connection is opened at first use. Each call retries on what is retriable (a leader that changes, a broker that restarts)
until `progress_timeout_seconds`, and then raises.
"""

import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar, cast
from uuid import UUID

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.errors import CONNECTION_FAILURES, FAILURES, ErrorResponse, is_refusal, message_of
from rackspan.client.groups import commit_offsets
from rackspan.client.requests import broker_logs, listed_offsets, metadata, topic_id_text
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.kafka_source.options import EARLIEST_OFFSET, LATEST_OFFSET, ClientOptions
from rackspan.kafka_source.records.columns import FetchedAbort
from rackspan.model.ids import NO_BROKER, TopicPartition
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import FetchPartition, FetchRequestData, FetchResponseData, FetchTopic
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponsePartition

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.1
_REQUEST_SECONDS: Final = 30.0
_CONNECT_SECONDS: Final = 15.0

_NO_RIGHT: Final = (
    "the cluster refuses to describe log sizes, which maxBytesPerTrigger needs; allow Describe on the cluster, "
    "or use maxOffsetsPerTrigger"
)

_LAST_FETCH_BY_NAME: Final = 12
"""The version of Fetch; later ones have topic ids (KIP-516, Kafka 3.1)."""


@dataclass(frozen=True, slots=True)
class SourcePartition:
    """A partition as the metadata of the brokers has it."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SourceTopic:
    topic_id: str | None
    """The id in the form of Kafka's tools; None from brokers without topic ids."""
    partitions: Mapping[int, SourcePartition]
    internal: bool = False


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """Topics by name, and the racks of live brokers. `errors` has what is wrong with a topic, as Kafka names it."""

    racks: Mapping[int, str | None]
    topics: Mapping[str, SourceTopic]
    errors: Mapping[str, str]
    refused: frozenset[str] = frozenset()
    """Topics whose error does not pass by itself: a right is missing, or the name is impossible."""

    def partitions(self) -> list[TopicPartition]:
        return sorted(
            TopicPartition(name, number) for name, topic in self.topics.items() for number in topic.partitions
        )

    def topic_ids(self) -> dict[str, str]:
        return {name: topic.topic_id for name, topic in self.topics.items() if topic.topic_id}


@dataclass(frozen=True, slots=True)
class FetchedRecords:
    """One partition of a fetch response. Offsets are -1 if the broker has none to give."""

    error_code: int
    records: bytes
    high_watermark: int
    log_start_offset: int
    aborted: tuple[FetchedAbort, ...]
    by_name: bool = False
    """The broker compared no topic id: it is of Kafka before 3.1."""


class SourceCluster:
    """A connection to the cluster, opened at first use. Not for several threads."""

    def __init__(self, client: ClientOptions, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._sleep = sleep
        self._connection: ClusterConnection | None = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "SourceCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- topics

    def metadata(self, topics: Iterable[str] | None) -> SourceMetadata:
        """Metadata of the named topics, or of all. Errors: ClusterUnreachable, ClusterUnauthorized."""
        names = None if topics is None else sorted(set(topics))

        return _metadata(self._retried(metadata, names, _REQUEST_SECONDS))

    def matching(self, pattern: str) -> SourceMetadata:
        """Metadata of all topics in whose name the regular expression is found, internal ones apart.

        Source: SubscribePatternStrategy of Spark 3.4 and newer. Kafka's own consumer matches whole names.
        """
        found = self.metadata(None)
        topics = {
            name: topic for name, topic in found.topics.items() if not topic.internal and re.search(pattern, name)
        }
        return SourceMetadata(found.racks, topics, {})

    # -- offsets

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], *, committed: bool | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset at or after each timestamp (ms; -2 for the earliest, -1 for the end), -1 if there is none.

        The end is the last stable offset for read_committed, or `committed`, else the high watermark. Errors: ClusterRequestFailed for a
        partition that there is not; ClusterUnreachable.
        """
        found: dict[TopicPartition, int] = {}
        isolation = int(self._client.read_committed if committed is None else committed)
        deadline = time.monotonic() + self._client.progress_timeout_seconds
        while missing := {partition: at for partition, at in timestamps.items() if partition not in found}:
            known = self.metadata({partition.topic for partition in missing})
            problems = self._offsets_from_leaders(known, missing, found, isolation)
            if problems and time.monotonic() > deadline:
                partition, problem = next(iter(problems.items()))
                raise ClusterRequestFailed(f"the offsets of {partition} cannot be read: {problem}")
            if problems:
                self._sleep(_PAUSE_SECONDS)
        return found

    def bytes_per_offset(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, float]:
        """The average of each partition's log as its leader stores it; 1 if the leader has no size to give.

        Errors: ClusterUnauthorized without the right to describe the cluster; ClusterUnreachable.
        """
        wanted = set(partitions)
        known = self.metadata({partition.topic for partition in wanted})
        leaders = {_leader(known, partition) for partition in wanted} - {NO_BROKER}
        sizes: dict[TopicPartition, int] = {}
        for leader in sorted(leaders):
            led = {partition for partition in wanted if _leader(known, partition) == leader}
            logs = self._retried(broker_logs, leader)
            sizes |= {partition: size for partition, size in logs.sizes.items() if partition in led}
        first = self.offsets(dict.fromkeys(sizes, EARLIEST_OFFSET))
        end = self.offsets(dict.fromkeys(sizes, LATEST_OFFSET))
        averages = {partition: size / max(1, end[partition] - first[partition]) for partition, size in sizes.items()}
        return {**dict.fromkeys(wanted, 1.0), **averages}

    def _offsets_from_leaders(
        self,
        known: SourceMetadata,
        wanted: Mapping[TopicPartition, int],
        found: dict[TopicPartition, int],
        isolation: int,
    ) -> dict[TopicPartition, str]:
        problems: dict[TopicPartition, str] = {}
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in wanted:
            leader = _leader(known, partition)
            if leader == NO_BROKER:
                problems[partition] = known.errors.get(partition.topic, "it has no leader")
            else:
                by_leader.setdefault(leader, []).append(partition)
        for leader, partitions in by_leader.items():
            try:
                problems |= self._offsets_from(
                    leader, {partition: wanted[partition] for partition in partitions}, found, isolation
                )
            except CONNECTION_FAILURES as error:
                problems |= dict.fromkeys(partitions, f"broker {leader}: {error}")
        return problems

    def _offsets_from(
        self, leader: int, wanted: Mapping[TopicPartition, int], found: dict[TopicPartition, int], isolation: int
    ) -> dict[TopicPartition, str]:
        connection = self._open()
        listed = connection.run(partial(listed_offsets, isolation=isolation), connection, leader, wanted)
        found.update(listed.offsets)
        for partition, error in listed.refused.items():
            if not error.is_retriable:
                raise ClusterRequestFailed(f"the offsets of {partition} cannot be read: {error_name(error)}")
        return {partition: error_name(error) for partition, error in listed.refused.items()}

    def commit(self, group_id: str, offsets: Mapping[TopicPartition, int]) -> str | None:
        """Commit offsets to a group without members, by one attempt. Returns why they are not committed, None if they are."""
        try:
            connection = self._open()
            connection.run(commit_offsets, connection, group_id, offsets)
        except FAILURES as error:
            return message_of(error)
        return None

    # -- records

    def fetch(
        self, broker: int, topic_id: str | None, at: TopicPartition, offset: int, most_bytes: int
    ) -> Callable[[], FetchedRecords]:
        """Start a fetch of one partition from a broker, of about `most_bytes`; the returned function waits for it.

        Errors, of both: those of client.errors.CONNECTION_FAILURES.
        """
        client = self._client
        required = FetchPartition(partition=at.partition, fetch_offset=offset, partition_max_bytes=most_bytes)
        request = FetchRequestData(
            max_wait=client.fetch_wait_ms,
            min_bytes=1,
            max_bytes=most_bytes,
            isolation_level=int(client.read_committed),
            topics=[FetchTopic(topic=at.topic, topic_id=_uuid(topic_id), partitions=[required])],
            # Left empty: the source chooses the replica itself, and works where brokers have no replica.selector.class.
            rack_id="",
        )
        # A later version without an id would name no topic.
        most = None if topic_id else _LAST_FETCH_BY_NAME
        connection = self._open()

        async def fetched() -> FetchedRecords:
            return _fetched(await connection.call(ApiKey.FETCH, request, _REQUEST_SECONDS, broker=broker, most=most))

        return connection.submit(fetched)

    # -- the connection

    def _retried(self, request: Callable[..., Awaitable[T]], *arguments: object) -> T:
        deadline = time.monotonic() + self._client.progress_timeout_seconds
        while True:
            try:
                connection = self._open()
                return connection.run(request, connection, *arguments)
            except (*CONNECTION_FAILURES, ErrorResponse) as error:
                if is_refusal(error):
                    raise ClusterUnauthorized(_NO_RIGHT) from None
                if isinstance(error, ErrorResponse) and not error.code.is_retriable:
                    raise
                if time.monotonic() > deadline:
                    if isinstance(error, ClusterUnreachable):
                        raise
                    raise ClusterUnreachable(f"{self._client.bootstrap_servers}: {error}") from None
            self._sleep(_PAUSE_SECONDS)

    def _open(self) -> ClusterConnection:
        """The connection, with its whole timeout before it."""
        if self._connection is None:
            settings = ConnectionSettings(self._client.bootstrap_servers, self._client.properties, _CONNECT_SECONDS)
            self._connection = ClusterConnection(settings).__enter__()
        self._connection.renew_deadline()
        return self._connection


def error_name(code: int) -> str:
    return f"{error_code(code).name} ({code})"


def _leader(known: SourceMetadata, partition: TopicPartition) -> int:
    topic = known.topics.get(partition.topic)
    row = topic.partitions.get(partition.partition) if topic else None
    return row.leader if row else NO_BROKER


def _metadata(response: MetadataResponseData) -> SourceMetadata:
    topics, errors, refused = {}, {}, set()
    for topic in response.topics:
        name = topic.name or ""
        if topic.error_code != ErrorCode.NONE:
            errors[name] = error_name(topic.error_code)
            if not error_code(topic.error_code).is_retriable:
                refused.add(name)
            continue
        partitions = {row.partition_index: _partition(row) for row in topic.partitions}
        topics[name] = SourceTopic(topic_id_text(topic.topic_id), partitions, topic.is_internal)
    return SourceMetadata(
        {broker.node_id: broker.rack for broker in response.brokers}, topics, errors, frozenset(refused)
    )


def _partition(row: MetadataResponsePartition) -> SourcePartition:
    return SourcePartition(row.leader_id, tuple(row.replica_nodes), tuple(row.isr_nodes))


def _uuid(topic_id: str | None) -> UUID | None:
    return UUID(bytes=urlsafe_b64decode(topic_id + "==")) if topic_id else None


def _fetched(response: FetchResponseData) -> FetchedRecords:
    if response.error_code != ErrorCode.NONE:
        return FetchedRecords(response.error_code, b"", -1, -1, ())
    (topic,) = response.responses
    (row,) = topic.partitions
    return FetchedRecords(
        error_code=row.error_code,
        records=bytes(cast("memoryview", row.records or b"")),
        high_watermark=row.high_watermark,
        log_start_offset=row.log_start_offset,
        aborted=tuple(
            FetchedAbort(aborted.producer_id, aborted.first_offset) for aborted in row.aborted_transactions or ()
        ),
        by_name=bool(topic.topic),
    )
