"""Kafka Streams groups encoded by hand as their members send them: an independent writer of the formats."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName
from rackspan.model.group import GroupDescription, MemberDescription
from rackspan.model.ids import TopicPartition
from rackspan.model.partitions import columns

PROCESS = "00000000-0000-4000-8000-00000000000{}"


def member(
    name: str,
    *,
    process: int = 1,
    rack: str | None = "r1",
    active: Mapping[str, Sequence[str]] | None = None,
    standby: Mapping[str, Sequence[str]] | None = None,
    offset_sums: Mapping[str, int] | None = None,
    tags: Mapping[str, str] | None = None,
    protocol_version: int = 3,
    error_code: int = 0,
) -> MemberDescription:
    """One thread. Tasks by id, each with its source partitions as TOPIC:PARTITION."""
    pairs = sorted((_topic_partition(source), task) for task, sources in (active or {}).items() for source in sources)
    assignment = _assignment_info([task for _, task in pairs], standby or {}, error_code)
    return MemberDescription(
        member_id=f"{name}-StreamThread-1-consumer-id",
        client_id=f"{name}-StreamThread-1-consumer",
        metadata=_subscription(protocol_version, _subscription_info(process, offset_sums or {}, tags or {}), rack),
        assignment=struct.pack(">h", 1) + _topic_partitions([source for source, _ in pairs]) + _bytes(assignment),
    )


def described(
    *members: MemberDescription,
    group: str = "shop",
    state: str = "Stable",
    protocol: str = "stream",
    protocol_type: str = "consumer",
    error_message: str | None = None,
) -> GroupDescription:
    return GroupDescription(group, state, protocol_type, protocol, members, error_message)


def cluster(
    topics: Mapping[str, Sequence[Sequence[int]]], racks: Sequence[str | None] = ("r1", "r2", "r3")
) -> ClusterSnapshot:
    """Brokers 1… in `racks`; each topic's partitions by their replicas."""
    names = sorted(topics)
    rows = [(code, at, list(on)) for code, name in enumerate(names) for at, on in enumerate(topics[name])]
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(at + 1), RackId(rack) if rack else None) for at, rack in enumerate(racks)),
        topics=tuple(Topic(TopicName(name)) for name in names),
        partitions=columns(
            topic=[code for code, _, _ in rows],
            partition=[at for _, at, _ in rows],
            leader=[on[0] for _, _, on in rows],
            replicas=[on for _, _, on in rows],
            isr=[on for _, _, on in rows],
        ),
    )


def _topic_partition(source: str) -> TopicPartition:
    topic, _, partition = source.rpartition(":")
    return TopicPartition(topic, int(partition))


def _subscription(version: int, user_data: bytes, rack: str | None) -> bytes:
    data = struct.pack(">hi", version, 1) + _string("orders") + _bytes(user_data)
    if version >= 1:
        data += _topic_partitions([])
    if version >= 2:
        data += struct.pack(">i", 5)
    if version >= 3:
        data += struct.pack(">h", -1) if rack is None else _string(rack)
    return data


def _subscription_info(process: int, offset_sums: Mapping[str, int], tags: Mapping[str, str]) -> bytes:
    """Version 11."""
    sums = b"".join(_ids(task) + struct.pack(">qh", offsets, -1) for task, offsets in offset_sums.items())
    tagged = b"".join(_bytes(key.encode()) + _bytes(value.encode()) for key, value in tags.items())
    head = struct.pack(">ii", 11, 11) + UUID(PROCESS.format(process)).bytes + _bytes(b"")
    return head + _count(offset_sums) + sums + struct.pack(">bi", 0, 0) + _count(tags) + tagged


def _assignment_info(active: Sequence[str], standby: Mapping[str, Sequence[str]], error_code: int) -> bytes:
    """Version 11, without hosts."""
    unnamed = struct.pack(">i", 0)
    tasks = b"".join(_ids(task) + unnamed for task in active)
    standbys = b"".join(
        _ids(task) + unnamed + _count(sources) + b"".join(_utf(source) for source in sources)
        for task, sources in standby.items()
    )
    hosts = struct.pack(">iii", 0, 0, 0)
    head = struct.pack(">ii", 11, 11) + _count(active) + tasks + _count(standby) + standbys
    return head + hosts + struct.pack(">iq", error_code, 2**63 - 1)


def _utf(source: str) -> bytes:
    topic, partition = _topic_partition(source)
    return _string(topic) + struct.pack(">i", partition)


def _topic_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    rows = [_string(topic) + _count(on) + struct.pack(f">{len(on)}i", *on) for topic, on in by_topic.items()]
    return _count(rows) + b"".join(rows)


def _ids(task: str) -> bytes:
    subtopology, _, partition = task.partition("_")
    return struct.pack(">ii", int(subtopology), int(partition))


def _count(items: Sequence[object] | Mapping[str, object]) -> bytes:
    return struct.pack(">i", len(items))


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data
