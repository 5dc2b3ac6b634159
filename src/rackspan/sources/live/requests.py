"""One function for each Kafka request of a snapshot; each returns a value without kafka-python's classes.

Errors of all of them: kafka.errors.KafkaError.
"""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from kafka.errors import IncompatibleBrokerVersion, KafkaError, NoError, UnknownTopicOrPartitionError, for_code
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import MetadataRequest

from rackspan.model import MIN_INSYNC_RACKS, MIN_INSYNC_REPLICAS, Broker, BrokerId, RackId, TopicPartition
from rackspan.sources.live.connection import ClusterConnection
from rackspan.sources.live.responses import OngoingReassignment, PartitionMetadata, QuorumMember, TopicMetadata

CONFIG_KEYS: Final = (MIN_INSYNC_REPLICAS, MIN_INSYNC_RACKS)
"""A Kafka without one of these keys leaves it out of its response."""

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

_TOPIC: Final = 2
"""ConfigResource type of a topic in DescribeConfigs."""

_BROKER: Final = 4
"""ConfigResource type of a broker."""

_SET_ON_TOPIC: Final = 1
_SET_ON_BROKER: Final = 2
"""ConfigSource of a value that the topic, or the broker dynamically, has itself."""

_METADATA_LOG: Final = "__cluster_metadata"
_MS = 1000


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """The Metadata response. Its brokers are alive; `refused` holds topics that could not be described, and why."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topics: tuple[TopicMetadata, ...]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConfigsResponse:
    """Effective values by topic, and the topics whose configs were refused, with the error."""

    values: Mapping[str, Mapping[str, str]]
    refused: Mapping[str, KafkaError]


@dataclass(frozen=True, slots=True)
class OwnConfigsResponse:
    """The values that topics set themselves, None where unset, and the topics whose configs were refused, with the error."""

    values: Mapping[str, Mapping[str, str | None]]
    refused: Mapping[str, KafkaError]


async def metadata(connection: ClusterConnection, topics: Sequence[str] | None = None) -> MetadataResponse:
    """Metadata (key 3): the topics named, or all this user may see, and the brokers that are alive."""
    named = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    response = await connection.send(MetadataRequest(topics=named, allow_auto_topic_creation=False))
    return MetadataResponse(
        cluster_id=response.cluster_id,
        brokers=tuple(_broker(one.node_id, one, fenced=False) for one in response.brokers),
        topics=tuple(_topic(one) for one in response.topics if one.error_code == 0),
        refused={one.name: for_code(one.error_code).__name__ for one in response.topics if one.error_code != 0},
    )


async def registered_brokers(connection: ClusterConnection) -> tuple[Broker, ...]:
    """DescribeCluster (key 60), version 2: fenced brokers too (KIP-1073, Kafka 4.0). Empty from a Kafka without it."""
    try:
        response = await connection.send(DescribeClusterRequest(include_fenced_brokers=True, min_version=2))
    except IncompatibleBrokerVersion:
        return ()
    _raise_for(response)
    return tuple(_broker(one.broker_id, one, fenced=one.is_fenced) for one in response.brokers)


async def topic_configs(connection: ClusterConnection, topics: Sequence[str]) -> ConfigsResponse:
    """DescribeConfigs (key 32) for many topics at once: values in effect, the broker's defaults included."""
    request = DescribeConfigsRequest(resources=[(_TOPIC, name, list(CONFIG_KEYS)) for name in topics])
    response = await connection.send(request)
    return ConfigsResponse(
        values={one.resource_name: _values(one.configs) for one in response.results if one.error_code == 0},
        refused=_refused(response.results),
    )


async def own_topic_configs(
    connection: ClusterConnection, topics: Sequence[str], keys: Sequence[str]
) -> OwnConfigsResponse:
    """DescribeConfigs (key 32) without inherited values. Topics that do not exist are left out."""
    response = await connection.send(DescribeConfigsRequest(resources=[(_TOPIC, name, list(keys)) for name in topics]))
    existing = [one for one in response.results if for_code(one.error_code) is not UnknownTopicOrPartitionError]
    return OwnConfigsResponse(
        values={one.resource_name: _own_values(one, keys, _SET_ON_TOPIC) for one in existing if one.error_code == 0},
        refused=_refused(existing),
    )


async def own_broker_configs(
    connection: ClusterConnection, broker_id: int, keys: Sequence[str], seconds: float
) -> dict[str, str | None]:
    """DescribeConfigs (key 32) of one broker, which only it can serve: its own dynamic values, no defaults, no file."""
    request = DescribeConfigsRequest(resources=[(_BROKER, str(broker_id), list(keys))])
    response = await connection.send_to_broker(broker_id, request, seconds)
    [described] = response.results
    _raise_for(described)
    return _own_values(described, keys, _SET_ON_BROKER)


async def reassignments(connection: ClusterConnection) -> dict[TopicPartition, OngoingReassignment]:
    """ListPartitionReassignments (key 46): those under way. The broker forwards the request to the controller."""
    request = ListPartitionReassignmentsRequest(timeout_ms=int(FORWARDED_SECONDS * _MS), topics=None)
    response = await connection.send(request, FORWARDED_SECONDS)
    _raise_for(response)
    return {
        TopicPartition(topic.name, one.partition_index): OngoingReassignment(
            tuple(one.adding_replicas), tuple(one.removing_replicas), tuple(one.replicas)
        )
        for topic in response.topics
        for one in topic.partitions
    }


async def quorum(connection: ClusterConnection) -> tuple[QuorumMember, ...]:
    """DescribeQuorum (key 55): voters and observers of the metadata log. Empty from a Kafka without KRaft.

    Version 1 (KIP-836, Kafka 3.3) has the times of each follower's last fetch, by the leader's clock.
    """
    log = DescribeQuorumRequest.TopicData
    partition = log.PartitionData(partition_index=0)
    request = DescribeQuorumRequest(topics=[log(topic_name=_METADATA_LOG, partitions=[partition])])
    try:
        response = await connection.send(request, FORWARDED_SECONDS)
    except IncompatibleBrokerVersion:
        return ()
    _raise_for(response)
    [described] = response.topics[0].partitions
    _raise_for(described)
    hosts = {one.node_id: tuple(listener.host for listener in one.listeners) for one in _nodes(response)}
    now_ms = _leader_clock_ms(described)
    return tuple(
        QuorumMember(member.replica_id, voter, hosts.get(member.replica_id, ()), _alive(member, described, now_ms))
        for members, voter in ((described.current_voters, True), (described.observers, False))
        for member in members
    )


def _leader_clock_ms(described: Any) -> int | None:
    """The time of the response by the leader's clock: its own row is caught up now. None where no times are reported."""
    own = (one.last_caught_up_timestamp for one in described.current_voters if one.replica_id == described.leader_id)
    now_ms = next(own, None)
    return now_ms if now_ms is not None and now_ms >= 0 else None


def _alive(member: Any, described: Any, now_ms: int | None) -> bool | None:
    """Whether a member follows the leader. One that has never fetched from this leader does not."""
    if now_ms is None:
        return None
    if member.replica_id == described.leader_id:
        return True
    fetched = bool(member.last_fetch_timestamp >= now_ms - FETCH_MAX_AGE_MS)
    return fetched and bool(member.last_caught_up_timestamp >= now_ms - CAUGHT_UP_MAX_AGE_MS)


async def log_sizes(
    connection: ClusterConnection,
    broker_id: int,
    partitions: Collection[TopicPartition] | None = None,
    seconds: float = LOG_DIR_SECONDS,
) -> dict[TopicPartition, int]:
    """DescribeLogDirs (key 35) of one broker: bytes of each log it has of these partitions, or of all.

    A log still being copied to another disk is left out.
    """
    topics = None if partitions is None else _log_dir_topics(partitions)
    response = await connection.send_to_broker(broker_id, DescribeLogDirsRequest(topics=topics), seconds)
    _raise_for(response)
    return {
        TopicPartition(topic.name, one.partition_index): one.partition_size
        for log_dir in response.results
        if log_dir.error_code == 0
        for topic in log_dir.topics
        for one in topic.partitions
        if not one.is_future_key
    }


def _log_dir_topics(partitions: Collection[TopicPartition]) -> list[Any]:
    numbers: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        numbers.setdefault(topic, []).append(partition)
    entry = DescribeLogDirsRequest.DescribableLogDirTopic
    return [entry(topic=topic, partitions=listed) for topic, listed in numbers.items()]


def _broker(broker_id: int, described: Any, *, fenced: bool) -> Broker:
    rack = None if described.rack is None else RackId(described.rack)
    # A fenced broker may have registered no listener of this name: Kafka then sends host "" and port -1.
    return Broker(
        BrokerId(broker_id), rack, fenced, described.host or None, described.port if described.port >= 0 else None
    )


def _topic(described: Any) -> TopicMetadata:
    return TopicMetadata(
        name=described.name,
        topic_id=topic_id_text(described),
        internal=bool(described.is_internal),
        partitions=tuple(
            PartitionMetadata(one.partition_index, one.leader_id, tuple(one.replica_nodes), tuple(one.isr_nodes))
            for one in described.partitions
        ),
    )


def topic_id_text(described: Any) -> str | None:
    """The topic id as Kafka's tools print it: base64 without padding. Since Kafka 2.8."""
    value = getattr(described, "topic_id", None)
    if not isinstance(value, UUID) or value.int == 0:
        return None
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def _values(configs: Any) -> dict[str, str]:
    return {one.name: one.value for one in configs if one.value is not None}


def _refused(results: Sequence[Any]) -> dict[str, KafkaError]:
    return {one.resource_name: for_code(one.error_code)(one.error_message) for one in results if one.error_code != 0}


def _own_values(described: Any, keys: Sequence[str], source: int) -> dict[str, str | None]:
    own = {one.name: one.value for one in described.configs if one.config_source == source}
    return {key: own.get(key) for key in keys}


def _nodes(response: Any) -> Any:
    return getattr(response, "nodes", None) or ()


def _raise_for(response: Any) -> None:
    """Raise the error of a response, if it has one."""
    error = for_code(getattr(response, "error_code", 0) or 0)
    if error is not NoError:
        raise error(getattr(response, "error_message", None))
