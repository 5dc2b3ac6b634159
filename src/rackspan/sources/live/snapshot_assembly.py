"""From a cluster's replies to one snapshot. No client, no clock: replies and a moment in, a value out."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rackspan.errors import ClusterRequestFailed
from rackspan.model import (
    UNKNOWN_SIZE,
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    PartitionColumns,
    RackId,
    Topic,
    TopicName,
    columns,
)
from rackspan.model.ids import TopicPartition
from rackspan.sources.live.error_messages import listed, needs
from rackspan.sources.live.responses import (
    ClusterReplies,
    LogDirs,
    PartitionReply,
    Reassignment,
    TopicReply,
)

_SETTLED = Reassignment((), ())


def assemble(replies: ClusterReplies, taken_at: datetime) -> ClusterSnapshot:
    """The snapshot, marked partial with whatever the replies lack."""
    if not replies.brokers:
        raise ClusterRequestFailed("the cluster lists no broker; is it starting? try again in a moment")
    sizes = _largest(replies.log_dirs)
    silent = (*_silent_notes(replies), *_size_notes(replies, sizes)) if replies.asked_for_sizes else ()
    return ClusterSnapshot(
        cluster_id=replies.cluster_id,
        taken_at=taken_at,
        controllers=tuple(controllers(replies)),
        partial=(*replies.notes, *silent, *_hidden_notes(replies)),
        brokers=replies.brokers,
        topics=tuple(_topic(topic, replies.configs) for topic in replies.topics),
        partitions=_columns(replies, sizes),
    )


def controllers(replies: ClusterReplies) -> Iterator[Controller]:
    """The controller quorum with what can be known of its racks.

    Kafka tells no controller's rack. One that is a broker too stands in the broker's rack; one apart stands in the rack
    of the brokers on its hosts, if they agree. Brokers observe the metadata log too without being controllers; so an
    observer counts only where the brokers are known to the last fenced one and it is none of them.
    """
    rack_of = {broker.id: broker.rack for broker in replies.brokers}
    for member in replies.quorum:
        controller_id = BrokerId(member.id)
        if member.voter or (replies.lists_fenced and controller_id not in rack_of):
            rack = rack_of[controller_id] if controller_id in rack_of else _rack_of_hosts(member.hosts, replies.brokers)
            yield Controller(controller_id, rack, member.voter)


def _rack_of_hosts(hosts: Sequence[str], brokers: Sequence[Broker]) -> RackId | None:
    racks = {broker.rack for broker in brokers if broker.host in hosts}
    return racks.pop() if len(racks) == 1 else None


def _topic(topic: TopicReply, configs: Mapping[str, Mapping[str, str]]) -> Topic:
    return Topic(TopicName(topic.name), topic.topic_id, topic.internal, configs.get(topic.name, {}))


def _columns(replies: ClusterReplies, sizes: Mapping[TopicPartition, int]) -> PartitionColumns:
    rows = list(_rows(replies.topics))
    moving = [
        _moving(replies.reassignments.get(TopicPartition(topic.name, row.partition)), row) for _, topic, row in rows
    ]
    return columns(
        topic=[code for code, _, _ in rows],
        partition=[row.partition for _, _, row in rows],
        leader=[row.leader for _, _, row in rows],
        replicas=[row.replicas for _, _, row in rows],
        isr=[row.isr for _, _, row in rows],
        adding_replicas=[one.adding for one in moving],
        removing_replicas=[one.removing for one in moving],
        size_bytes=[sizes.get(TopicPartition(topic.name, row.partition), UNKNOWN_SIZE) for _, topic, row in rows],
    )


def _rows(topics: Sequence[TopicReply]) -> Iterator[tuple[int, TopicReply, PartitionReply]]:
    return ((code, topic, row) for code, topic in enumerate(topics) for row in topic.partitions)


def _moving(reassignment: Reassignment | None, row: PartitionReply) -> Reassignment:
    """As far as the replicas we read know of it: the two answers are moments apart."""
    if reassignment is None:
        return _SETTLED
    return Reassignment(
        tuple(one for one in reassignment.adding if one in row.replicas),
        tuple(one for one in reassignment.removing if one in row.replicas),
    )


def _largest(log_dirs: LogDirs) -> dict[TopicPartition, int]:
    """The largest replica's size: a follower that lags says less than there is."""
    sizes: dict[TopicPartition, int] = {}
    for held in log_dirs.sizes.values():
        for partition, size in held.items():
            sizes[partition] = max(size, sizes.get(partition, 0))
    return sizes


def _silent_notes(replies: ClusterReplies) -> Iterator[str]:
    """Brokers that the cluster takes for alive and that do not speak to us: dead a moment ago, frozen, or out of reach."""
    by_reason: dict[str, list[int]] = defaultdict(list)
    for broker_id, why in sorted(replies.log_dirs.silent.items()):
        by_reason[why].append(broker_id)
    for why, broker_ids in by_reason.items():
        yield f"brokers {listed(broker_ids)}: said to be alive, but {why}; what is told of them may be out of date"


def _size_notes(replies: ClusterReplies, sizes: Mapping[TopicPartition, int]) -> Iterator[str]:
    """Which partitions have no size because none of their brokers answered, by what kept those brokers."""
    lost: dict[str, set[int]] = defaultdict(set)
    partitions = 0
    for _, topic, row in _rows(replies.topics):
        if TopicPartition(topic.name, row.partition) not in sizes:
            partitions += 1
            for broker_id in row.replicas:
                lost[_why_silent(broker_id, replies.log_dirs)].add(broker_id)
    if partitions:
        reasons = "; ".join(f"brokers {listed(sorted(ids))}: {why}" for why, ids in sorted(lost.items()))
        yield f"sizes of {partitions} partitions: unknown, {reasons}"


def _why_silent(broker_id: int, log_dirs: LogDirs) -> str:
    if broker_id in log_dirs.sizes:
        return "the log directory is offline or does not hold it yet"
    if broker_id in log_dirs.refusing:
        return needs("Describe on Cluster")
    return log_dirs.silent.get(broker_id, "not alive")


def _hidden_notes(replies: ClusterReplies) -> Iterator[str]:
    """Topics on disk that metadata did not list: Kafka hides from a user what it may not describe."""
    listed_topics = {topic.name for topic in replies.topics}
    on_disk = {topic for held in replies.log_dirs.sizes.values() for topic, _ in held}
    hidden = sorted(on_disk - listed_topics)
    if hidden:
        yield (
            f"topics {listed(hidden)}: on disk but not shown to this user, who needs Describe on Topic {listed(hidden)} "
            "(or they have just been created or deleted)"
        )
