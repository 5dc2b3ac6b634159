"""Assembles a snapshot from a cluster's responses. Pure: responses and a timestamp in, a value out."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from rackspan.client.errors import listed, needs
from rackspan.client.requests import QuorumMember, topic_id_text
from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.model import (
    NO_BROKER,
    UNKNOWN_SIZE,
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    PartitionColumns,
    RackId,
    Topic,
    TopicName,
    TopicPartition,
    columns,
)
from rackspan.model.ids import UNKNOWN_LEADER
from rackspan.model.snapshot import SIZES
from rackspan.plan.execution.observed import InFlight
from rackspan.text import count_noun
from rackspan.wire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic

_NO_REASSIGNMENT = InFlight(())


@dataclass(frozen=True, slots=True)
class LogDirs:
    """Log sizes in bytes by broker; the brokers that did not respond, and why; those that refused this user; those all cordoned.

    `failed`: log directories that have failed, by broker. `unread`: those of which a broker reported an error of another kind.
    `usable_bytes`: as of BrokerLogs, by broker.
    """

    sizes: Mapping[int, Mapping[TopicPartition, int]] = field(default_factory=dict)
    unreachable: Mapping[int, str] = field(default_factory=dict)
    unauthorized: frozenset[int] = frozenset()
    cordoned: frozenset[int] = frozenset()
    failed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    unread: Mapping[int, Mapping[str, ErrorCode]] = field(default_factory=dict)
    usable_bytes: Mapping[int, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterResponses:
    """All responses of one snapshot.

    `notes` name what could not be read, and the missing right or broker. `warnings` are about the cluster's release.
    """

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    """Those alive and, where `lists_fenced`, all others that are registered."""
    topics: Sequence[MetadataResponseTopic]
    configs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    reassignments: Mapping[TopicPartition, InFlight] = field(default_factory=dict)
    quorum: tuple[QuorumMember, ...] = ()
    log_dirs: LogDirs = field(default_factory=LogDirs)
    sizes_requested: bool = True
    lists_fenced: bool = False
    reachable: frozenset[int] = frozenset()
    """Brokers that Metadata lists: alive, and with a listener of the name of the one that was read."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def assemble(responses: ClusterResponses, taken_at: datetime) -> ClusterSnapshot:
    """The snapshot, marked partial with whatever the responses lack."""
    if not responses.brokers:
        raise ClusterRequestFailed("the cluster lists no broker; is it starting? try again in a moment")
    sizes = _largest(responses.log_dirs)
    size_notes = (*_unreachable_notes(responses), *_size_notes(responses, sizes)) if responses.sizes_requested else ()
    return ClusterSnapshot(
        cluster_id=responses.cluster_id,
        taken_at=taken_at,
        controllers=tuple(controllers(responses)),
        partial=(
            *responses.notes,
            *_leader_notes(responses),
            *_log_dir_notes(responses.log_dirs),
            *size_notes,
            *_hidden_notes(responses),
        ),
        brokers=tuple(
            replace(
                broker,
                cordoned=broker.id in responses.log_dirs.cordoned,
                failed_log_dirs=responses.log_dirs.failed.get(broker.id, ()),
                usable_bytes=responses.log_dirs.usable_bytes.get(broker.id),
            )
            for broker in responses.brokers
        ),
        topics=tuple(_topic(topic, responses.configs) for topic in responses.topics),
        partitions=_columns(responses, sizes),
    )


def controllers(responses: ClusterResponses) -> Iterator[Controller]:
    """The controller quorum, with racks where they can be inferred.

    Kafka reports no controller's rack. A controller that is also a broker is in the broker's rack; another one is in the
    rack of the brokers on its hosts, if these agree. Brokers are observers of the metadata log without being controllers;
    so an observer counts only where all brokers are known, fenced ones included, and it is none of them. Whether one is alive
    is the leader's word, whatever the brokers' state.
    """
    rack_of = {broker.id: broker.rack for broker in responses.brokers}
    for member in responses.quorum:
        controller_id = BrokerId(member.id)
        if member.voter or (responses.lists_fenced and controller_id not in rack_of):
            rack = (
                rack_of[controller_id] if controller_id in rack_of else _rack_of_hosts(member.hosts, responses.brokers)
            )
            yield Controller(controller_id, rack, member.voter, member.alive, member.active)


def _rack_of_hosts(hosts: Sequence[str], brokers: Sequence[Broker]) -> RackId | None:
    racks = {broker.rack for broker in brokers if broker.host in hosts}
    return racks.pop() if len(racks) == 1 else None


def _topic(topic: MetadataResponseTopic, configs: Mapping[str, Mapping[str, str]]) -> Topic:
    name = topic.name or ""
    return Topic(TopicName(name), topic_id_text(topic.topic_id), topic.is_internal, configs.get(name, {}))


def _columns(responses: ClusterResponses, sizes: Mapping[TopicPartition, int]) -> PartitionColumns:
    rows = list(_rows(responses.topics))
    reassigned = [_of_known_replicas(responses.reassignments.get(partition), row) for _, partition, row in rows]
    return columns(
        topic=[code for code, _, _ in rows],
        partition=[partition.partition for _, partition, _ in rows],
        leader=[UNKNOWN_LEADER if _leader_unknown(row) else row.leader_id for _, _, row in rows],
        replicas=[row.replica_nodes for _, _, row in rows],
        isr=[row.isr_nodes for _, _, row in rows],
        adding_replicas=[move.adding for move in reassigned],
        removing_replicas=[move.removing for move in reassigned],
        # Kafka lists replicas on brokers that are down, or have no such listener, among them too: what is left is in a failed directory.
        offline_replicas=[
            [broker for broker in row.offline_replicas if broker in responses.reachable] for _, _, row in rows
        ],
        size_bytes=[sizes.get(partition, UNKNOWN_SIZE) for _, partition, _ in rows],
    )


def _rows(
    topics: Sequence[MetadataResponseTopic],
) -> Iterator[tuple[int, TopicPartition, MetadataResponsePartition]]:
    return (
        (code, TopicPartition(topic.name or "", row.partition_index), row)
        for code, topic in enumerate(topics)
        for row in topic.partitions
    )


def _of_known_replicas(reassignment: InFlight | None, row: MetadataResponsePartition) -> InFlight:
    """The part of a reassignment that matches the replicas in Metadata: the two responses are not simultaneous."""
    if reassignment is None or set(reassignment.removing).issuperset(row.replica_nodes):
        # Metadata is from before it began.
        return _NO_REASSIGNMENT
    return InFlight(
        reassignment.replicas,
        tuple(broker for broker in reassignment.adding if broker in row.replica_nodes),
        tuple(broker for broker in reassignment.removing if broker in row.replica_nodes),
    )


def _largest(log_dirs: LogDirs) -> dict[TopicPartition, int]:
    """The size of each partition's largest replica: a lagging follower has less."""
    sizes: dict[TopicPartition, int] = {}
    for held in log_dirs.sizes.values():
        for partition, size in held.items():
            sizes[partition] = max(size, sizes.get(partition, 0))
    return sizes


def _leader_unknown(row: MetadataResponsePartition) -> bool:
    """Whether the partition may have a leader that was not reported: only LEADER_NOT_AVAILABLE says that there is none."""
    return row.leader_id == NO_BROKER and row.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)


def _leader_notes(responses: ClusterResponses) -> Iterator[str]:
    """Notes on leaders that are not known, one for each reason."""
    unknown: dict[ErrorCode, list[TopicPartition]] = defaultdict(list)
    for _, partition, row in _rows(responses.topics):
        if _leader_unknown(row):
            unknown[error_code(row.error_code)].append(partition)
    for code, partitions in unknown.items():
        reached = "; give the address of a listener that every broker has"
        yield (
            f"leaders of {count_noun(len(partitions), 'partition')} ({listed(partitions)}): unknown, {code.name}"
            f"{reached if code is ErrorCode.LISTENER_NOT_FOUND else ''}"
        )


def _log_dir_notes(log_dirs: LogDirs) -> Iterator[str]:
    for broker, errors in sorted(log_dirs.unread.items()):
        for path, code in errors.items():
            yield f"log directory {path} of broker {broker}: unknown, {code.name}"


def _unreachable_notes(responses: ClusterResponses) -> Iterator[str]:
    """Notes on brokers that Metadata lists as alive and that do not respond: just stopped, frozen, or unreachable."""
    by_reason: dict[str, list[int]] = defaultdict(list)
    for broker_id, why in sorted(responses.log_dirs.unreachable.items()):
        by_reason[why].append(broker_id)
    for why, broker_ids in by_reason.items():
        yield f"brokers {listed(broker_ids)}: listed as alive, but {why}; what is reported about them may be out of date"


def _size_notes(responses: ClusterResponses, sizes: Mapping[TopicPartition, int]) -> Iterator[str]:
    """A note on partitions without a size, because none of their brokers reported one, with the reasons."""
    lost: dict[str, set[int]] = defaultdict(set)
    partitions = 0
    for _, partition, row in _rows(responses.topics):
        if partition not in sizes:
            partitions += 1
            for broker_id in row.replica_nodes:
                lost[_why_no_size(broker_id, responses.log_dirs)].add(broker_id)
    if partitions:
        reasons = "; ".join(f"brokers {listed(sorted(ids))}: {why}" for why, ids in sorted(lost.items()))
        yield f"{SIZES} of {count_noun(partitions, 'partition')}: unknown, {reasons}"


def _why_no_size(broker_id: int, log_dirs: LogDirs) -> str:
    if broker_id in log_dirs.sizes:
        return "the log directory is offline or does not hold it yet"
    if broker_id in log_dirs.unauthorized:
        return needs("Describe on Cluster")
    return log_dirs.unreachable.get(broker_id, "not alive")


def _hidden_notes(responses: ClusterResponses) -> Iterator[str]:
    """A note on topics on disk that are not in Metadata: Kafka hides topics that a user may not describe."""
    listed_topics = {topic.name for topic in responses.topics}
    on_disk = {topic for held in responses.log_dirs.sizes.values() for topic, _ in held}
    hidden = sorted(on_disk - listed_topics)
    if hidden:
        yield (
            f"topics {listed(hidden)}: on disk but not shown to this user, who needs Describe on Topic {listed(hidden)} "
            "(or they have just been created or deleted)"
        )
