"""One function for each Kafka request of a snapshot; each returns a value of model/, or the response itself.

Errors of all of them: those of errors.FAILURES.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar
from uuid import UUID

from rackspan.client.cluster import ClusterConnection
from rackspan.client.connection import UnsupportedVersion, first
from rackspan.client.errors import ErrorResponse, error_response, raise_for, request_failed
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, Broker, BrokerId, RackId, TopicPartition
from rackspan.model.topic import DISKLESS, FOLLOWER_REPLICAS, LEADER_REPLICAS, UNCLEAN_LEADER_ELECTION
from rackspan.plan.execution.observed import InFlight
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.brokers import (
    DescribableLogDirTopic,
    DescribeClusterBroker,
    DescribeClusterRequestData,
    DescribeClusterResponseData,
    DescribeLogDirsRequestData,
    DescribeLogDirsResponseData,
)
from rackspan.wire.messages.configs import (
    DescribeConfigsRequestData,
    DescribeConfigsResource,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumRequestData,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponseData,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
)
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequestData,
    ListOffsetsResponseData,
    ListOffsetsTopic,
)
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponseData,
)
from rackspan.wire.messages.reassignments import (
    ListPartitionReassignmentsRequestData,
    ListPartitionReassignmentsResponseData,
)

T = TypeVar("T")
V = TypeVar("V")

CONFIG_KEYS: Final = (MIN_INSYNC_REPLICAS, MIN_INSYNC_RACKS)
"""A Kafka without one of these keys leaves it out of its response."""

_IF_SET: Final = (UNCLEAN_LEADER_ELECTION, LEADER_REPLICAS, FOLLOWER_REPLICAS, *DISKLESS)

FORWARDED_SECONDS: Final = 5.0
"""For requests that a broker forwards to the controller. It responds in milliseconds; without a quorum it never does."""

LOG_DIR_SECONDS: Final = 10.0
"""For one broker's sizes, which it has in memory. A frozen broker must not delay the snapshot longer."""

FETCH_MAX_AGE_MS: Final = 3_000
"""The longest that a voter that is alive goes without a fetch: 1.5 times controller.quorum.fetch.timeout.ms, 2 s by default.

After as long without fetches of a majority a leader resigns. A follower waits at most 500 ms for a response, whatever that
config is, and fetches again.
"""

CAUGHT_UP_MAX_AGE_MS: Final = 9_000
"""The longest that it goes without all of the log: broker.session.timeout.ms, by which Kafka fences a broker that lags so."""

OFFSETS_SECONDS: Final = 30.0
"""For one broker's offsets. A timestamp may have to be looked up in segments on disk."""

_CONSUMER: Final = -1
"""The replica id of a client that is no broker."""

_SET_ON_TOPIC: Final = 1
_SET_ON_BROKER: Final = 2
"""ConfigSource of a value that the topic, or the broker dynamically, has itself."""

_METADATA_LOG: Final = "__cluster_metadata"
_MS = 1000


@dataclass(frozen=True, slots=True)
class DescribedConfigs(Generic[V]):
    """Values by topic, None where a topic sets none itself, and the topics whose configs were refused, with the error."""

    values: Mapping[str, Mapping[str, V]]
    refused: Mapping[str, ErrorResponse]


@dataclass(frozen=True, slots=True)
class QuorumMember:
    """A voter or observer of the metadata log. `hosts`: the hosts of its controller listeners, from Kafka 3.9 on.

    `alive`: whether it follows the leader of the quorum; None from a Kafka before 3.3, which reports no times. `active`:
    whether it is the leader, the active controller.
    """

    id: int
    voter: bool
    hosts: tuple[str, ...] = ()
    alive: bool | None = None
    active: bool = False


async def metadata(
    connection: ClusterConnection, topics: Sequence[str] | None = None, seconds: float | None = None
) -> MetadataResponseData:
    """Metadata (key 3): the topics named, or all this user may see, and the brokers that are alive. Creates no topic."""
    named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    request = MetadataRequestData(topics=named, allow_auto_topic_creation=False)
    response: MetadataResponseData = await connection.call(ApiKey.METADATA, request, seconds)
    raise_for(response)
    return response


async def alive_brokers(connection: ClusterConnection) -> list[int]:
    """The ids of the brokers that are alive, by Metadata (key 3). Errors: SourceError."""
    try:
        response = await metadata(connection, ())
    except OSError as error:
        raise request_failed("the list of brokers", "Describe on Cluster", error) from error
    return [broker.node_id for broker in response.brokers]


async def registered_brokers(connection: ClusterConnection) -> tuple[Broker, ...]:
    """DescribeCluster (key 60), version 2: fenced brokers too (KIP-1073, Kafka 4.0). Empty from a Kafka without it."""
    request = DescribeClusterRequestData(include_fenced_brokers=True)
    try:
        response: DescribeClusterResponseData = await connection.call(ApiKey.DESCRIBE_CLUSTER, request, least=2)
    except UnsupportedVersion:
        return ()
    raise_for(response)
    return tuple(_broker(broker.broker_id, broker, fenced=broker.is_fenced) for broker in response.brokers)


async def topic_configs(connection: ClusterConnection, topics: Sequence[str]) -> DescribedConfigs[str]:
    """DescribeConfigs (key 32) for many topics at once: values in effect, the broker's defaults included."""
    results = await describe_configs(
        connection, ConfigResourceType.TOPIC, dict.fromkeys(topics, (*CONFIG_KEYS, *_IF_SET))
    )
    return _described(results, _audited_values)


async def own_topic_configs(
    connection: ClusterConnection, topics: Sequence[str], keys: Sequence[str]
) -> DescribedConfigs[str | None]:
    """DescribeConfigs (key 32) without inherited values. Topics that do not exist are left out."""
    results = await describe_configs(connection, ConfigResourceType.TOPIC, dict.fromkeys(topics, keys))
    existing = [result for result in results if result.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    return _described(existing, lambda result: _own_values(result, keys, _SET_ON_TOPIC))


async def own_broker_configs(
    connection: ClusterConnection, broker_id: int, keys: Sequence[str], seconds: float
) -> dict[str, str | None]:
    """DescribeConfigs (key 32) of one broker, which only it can serve: its own dynamic values, no defaults, no file."""
    found = await describe_configs(
        connection, ConfigResourceType.BROKER, {str(broker_id): keys}, seconds, broker=broker_id
    )
    described = first(found, "broker")
    raise_for(described)
    return _own_values(described, keys, _SET_ON_BROKER)


async def describe_configs(
    connection: ClusterConnection,
    kind: ConfigResourceType,
    keys: Mapping[str, Sequence[str]],
    seconds: float | None = None,
    *,
    broker: int | None = None,
) -> Sequence[DescribeConfigsResult]:
    """DescribeConfigs (key 32): these configs of each resource, each with an error code of its own."""
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=listed)
        for name, listed in keys.items()
    ]
    request = DescribeConfigsRequestData(resources=resources)
    response: DescribeConfigsResponseData = await connection.call(
        ApiKey.DESCRIBE_CONFIGS, request, seconds, broker=broker
    )
    return response.results


async def reassignments(connection: ClusterConnection) -> dict[TopicPartition, InFlight]:
    """ListPartitionReassignments (key 46): those under way. The broker forwards the request to the controller."""
    request = ListPartitionReassignmentsRequestData(timeout=int(FORWARDED_SECONDS * _MS), topics=None)
    response: ListPartitionReassignmentsResponseData = await connection.call(
        ApiKey.LIST_PARTITION_REASSIGNMENTS, request, FORWARDED_SECONDS
    )
    raise_for(response)
    return {
        TopicPartition(topic.name, partition.partition_index): InFlight(
            tuple(partition.replicas), tuple(partition.adding_replicas), tuple(partition.removing_replicas)
        )
        for topic in response.topics
        for partition in topic.partitions
    }


async def quorum(connection: ClusterConnection) -> tuple[QuorumMember, ...]:
    """DescribeQuorum (key 55): voters and observers of the metadata log. Empty from a Kafka without KRaft.

    Version 1 (KIP-836, Kafka 3.3) has the times of each follower's last fetch, by the leader's clock.
    """
    partition = DescribeQuorumRequestPartitionData(partition_index=0)
    log = DescribeQuorumRequestTopicData(topic_name=_METADATA_LOG, partitions=[partition])
    try:
        response: DescribeQuorumResponseData = await connection.call(
            ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequestData(topics=[log]), FORWARDED_SECONDS
        )
    except UnsupportedVersion:
        return ()
    raise_for(response)
    described = first(first(response.topics, "topic").partitions, "partition")
    raise_for(described)
    hosts = {voter.node_id: tuple(listener.host for listener in voter.listeners) for voter in response.nodes}
    now_ms = _leader_clock_ms(described)
    return tuple(
        QuorumMember(
            member.replica_id,
            voter,
            hosts.get(member.replica_id, ()),
            _alive(member, described, now_ms),
            member.replica_id == described.leader_id,
        )
        for members, voter in ((described.current_voters, True), (described.observers, False))
        for member in members
    )


def _leader_clock_ms(described: DescribeQuorumResponsePartitionData) -> int | None:
    """The time of the response by the leader's clock: its own row is caught up now. None where no times are reported."""
    own = (
        voter.last_caught_up_timestamp for voter in described.current_voters if voter.replica_id == described.leader_id
    )
    now_ms = next(own, None)
    return now_ms if now_ms is not None and now_ms >= 0 else None


def _alive(
    member: DescribeQuorumResponseReplicaState, described: DescribeQuorumResponsePartitionData, now_ms: int | None
) -> bool | None:
    """Whether a member follows the leader. One that has never fetched from this leader does not."""
    if now_ms is None:
        return None
    if member.replica_id == described.leader_id:
        return True
    fetched = member.last_fetch_timestamp >= now_ms - FETCH_MAX_AGE_MS
    return fetched and member.last_caught_up_timestamp >= now_ms - CAUGHT_UP_MAX_AGE_MS


@dataclass(frozen=True, slots=True)
class BrokerLogs:
    """The logs of one broker: their sizes in bytes, and the state of its log directories.

    `cordoned`: every directory that works is cordoned (KIP-1066). `failed`: the paths of directories that have failed.
    `unread`: those of which the broker reported nothing else than an error, with it. `usable_bytes`: what is left on the volumes of the
    directories that work, one that holds several counted for each; None if the broker does not say.
    """

    sizes: Mapping[TopicPartition, int]
    cordoned: bool = False
    failed: tuple[str, ...] = ()
    unread: Mapping[str, ErrorCode] = field(default_factory=dict)
    usable_bytes: int | None = None


async def broker_logs(
    connection: ClusterConnection,
    broker_id: int,
    partitions: Collection[TopicPartition] | None = None,
    seconds: float = LOG_DIR_SECONDS,
) -> BrokerLogs:
    """DescribeLogDirs (key 35) of one broker: bytes of each log it has of these partitions, or of all.

    A log still being copied to another disk is left out. Before version 5 (Kafka 4.3) no directory is cordoned, before version 4
    (Kafka 3.3) none says how much is left.
    """
    topics = None
    if partitions is not None:
        topics = [DescribableLogDirTopic(topic=topic, partitions=ids) for topic, ids in by_topic(partitions).items()]
    response: DescribeLogDirsResponseData = await connection.call(
        ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequestData(topics=topics), seconds, broker=broker_id
    )
    raise_for(response)
    working = [log_dir for log_dir in response.results if log_dir.error_code == ErrorCode.NONE]
    sizes = {
        TopicPartition(topic.name, partition.partition_index): partition.partition_size
        for log_dir in working
        for topic in log_dir.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }
    usable = [log_dir.usable_bytes for log_dir in working]
    errors = {
        log_dir.log_dir: error_code(log_dir.error_code)
        for log_dir in response.results
        if log_dir.error_code != ErrorCode.NONE
    }
    return BrokerLogs(
        sizes,
        cordoned=bool(working) and all(log_dir.is_cordoned for log_dir in working),
        failed=tuple(sorted(path for path, code in errors.items() if code is ErrorCode.KAFKA_STORAGE_ERROR)),
        unread={path: code for path, code in errors.items() if code is not ErrorCode.KAFKA_STORAGE_ERROR},
        usable_bytes=sum(usable) if usable and min(usable) >= 0 else None,
    )


@dataclass(frozen=True, slots=True)
class ListedOffsets:
    """Offsets by partition, -1 if none is as requested, and the partitions that the broker has none for, with the error."""

    offsets: Mapping[TopicPartition, int]
    refused: Mapping[TopicPartition, ErrorCode]


async def listed_offsets(
    connection: ClusterConnection,
    leader: int,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation: int = 0,
    seconds: float = OFFSETS_SECONDS,
) -> ListedOffsets:
    """ListOffsets (key 2) of the broker that leads these partitions: the first offset at or after each timestamp (ms).

    The earliest and the latest have negative timestamps of their own.
    """
    topics = [
        ListOffsetsTopic(
            name=name,
            partitions=[
                ListOffsetsPartition(partition_index=number, timestamp=timestamps[TopicPartition(name, number)])
                for number in numbers
            ],
        )
        for name, numbers in by_topic(timestamps).items()
    ]
    request = ListOffsetsRequestData(
        replica_id=_CONSUMER, isolation_level=isolation, topics=topics, timeout=int(seconds * _MS)
    )
    response: ListOffsetsResponseData = await connection.call(ApiKey.LIST_OFFSETS, request, seconds, broker=leader)
    rows = [
        (TopicPartition(topic.name, row.partition_index), row) for topic in response.topics for row in topic.partitions
    ]
    return ListedOffsets(
        {partition: row.offset for partition, row in rows if row.error_code == ErrorCode.NONE},
        {partition: error_code(row.error_code) for partition, row in rows if row.error_code != ErrorCode.NONE},
    )


def by_topic(partitions: Collection[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of partitions by their topic, as requests list them."""
    numbers: dict[str, list[int]] = {}
    for topic, partition in partitions:
        numbers.setdefault(topic, []).append(partition)
    return numbers


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in portions: a broker has a limit for one request, or a response would be too large."""
    return (items[start : start + size] for start in range(0, len(items), size))


def topic_id_text(topic_id: UUID | None) -> str | None:
    """A topic id as Kafka's tools print it: base64 without padding. Since Kafka 2.8."""
    return None if topic_id is None else urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def live_brokers(response: MetadataResponseData) -> tuple[Broker, ...]:
    return tuple(_broker(broker.node_id, broker, fenced=False) for broker in response.brokers)


def _broker(broker_id: int, described: MetadataResponseBroker | DescribeClusterBroker, *, fenced: bool) -> Broker:
    rack = None if described.rack is None else RackId(described.rack)
    # A fenced broker may have registered no listener of this name: Kafka then sends host "" and port -1.
    return Broker(
        BrokerId(broker_id), rack, fenced, described.host or None, described.port if described.port >= 0 else None
    )


def _described(
    results: Sequence[DescribeConfigsResult], values: Callable[[DescribeConfigsResult], Mapping[str, V]]
) -> DescribedConfigs[V]:
    accepted = [result for result in results if result.error_code == ErrorCode.NONE]
    refused = [result for result in results if result.error_code != ErrorCode.NONE]
    return DescribedConfigs(
        {result.resource_name: values(result) for result in accepted},
        {result.resource_name: error_response(result) for result in refused},
    )


def _audited_values(described: DescribeConfigsResult) -> dict[str, str]:
    """Effective values; those of `_IF_SET` where they are set, so that no other topic grows by them."""
    return {
        config.name: config.value
        for config in described.configs
        if config.value is not None and (config.name not in _IF_SET or config.value not in ("", "false"))
    }


def _own_values(described: DescribeConfigsResult, keys: Sequence[str], source: int) -> dict[str, str | None]:
    own = {config.name: config.value for config in described.configs if config.config_source == source}
    return {key: own.get(key) for key in keys}
