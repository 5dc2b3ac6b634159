"""Bytes of state that tasks of Kafka Streams restore when they move.

A process that gets a task of which it has no copy, active, standby or warm-up, reads the task's changelogs: by the rules of
clients/reads.py, with changelogs in place of sources. How much of a changelog it reads no broker reports: the whole of it is assumed.
Only groups of the streams protocol (KIP-1071) are considered, since brokers describe no tasks of the others.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from rackspan.clients import MemberReads, ReplicaSelectors, group_reads
from rackspan.model import NO_BROKER, UNKNOWN_SIZE, RackId, TopicPartition, UnrackedPolicy, rack_map
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.traffic.flows import RACK_MISSPELT, Basis, FlowSums, Link, TrafficFlow, TrafficPath, places_of
from rackspan.traffic.logs import ClusterLogs

RESTORED_WHOLE: Final = "each process read the whole changelogs of a task of which it had no copy"

_Task: TypeAlias = tuple[str, int]
"""A sub-topology and a partition."""


def restore_flows(
    before: ClusterLogs,
    after: ClusterLogs,
    groups_before: Sequence[GroupDescription],
    groups: Sequence[GroupDescription],
    selectors: Mapping[int, ReplicaSelectors],
    networks: ClientNetworks | None = None,
) -> tuple[TrafficFlow, ...]:
    """The changelogs that processes read because tasks moved to them between two readings, all of them estimated.

    The bytes are those of the leader's log at the second reading. They are not known of a task that the first reading has nowhere: it may
    be new, or have been between two processes. A changelog that was created in between has nothing to restore.
    """
    earlier = {group.group_id: _copies(group) for group in groups_before}
    racks = rack_map(after.snapshot.brokers, UnrackedPolicy.IGNORE).racks
    flows = FlowSums()
    sizes: Mapping[TopicPartition, int | None] | None = None
    for group in groups:
        if group.kind is not GroupKind.STREAMS:
            continue
        copies = earlier.get(group.group_id, {})
        readers = _as_readers(group, copies, _lasting(before, after))
        part_of = {topic: name for name, topics in readers.topology.items() for topic in topics.sources}
        for member in group_reads(readers, after.snapshot, selectors, networks).members:
            destination, assumption = _destination(member, racks)
            for read in member.reads:
                sizes = _leader_bytes(after) if sizes is None else sizes
                moved = (part_of[read.partition.topic], read.partition.partition) in copies
                ends = read.served_from, destination
                flows.add(
                    Link(TrafficPath.RESTORE, read.partition.topic, group.group_id, *ends, Basis.ESTIMATED, assumption),
                    sizes[read.partition] if moved else None,
                )
    return flows.sorted()


def _copies(group: GroupDescription) -> dict[_Task, set[str]]:
    """The processes with a copy of each task, in any role."""
    copies: dict[_Task, set[str]] = {}
    for member in group.members:
        for task in _held(member):
            copies.setdefault(task, set()).add(_process(member))
    return copies


def _held(member: MemberDescription) -> list[_Task]:
    streams = member.streams
    roles = () if streams is None else (streams.active, streams.standby, streams.warmup)
    return [(name, partition) for role in roles for name, partitions in role.items() for partition in partitions]


def _process(member: MemberDescription) -> str:
    """State lies on the disk of a process, whose members are its threads."""
    return member.member_id if member.streams is None else member.streams.process_id or member.member_id


def _lasting(before: ClusterLogs, after: ClusterLogs) -> frozenset[str]:
    """The topics of both readings."""
    earlier = {(topic.name, topic.topic_id) for topic in before.snapshot.topics}
    return frozenset(str(topic.name) for topic in after.snapshot.topics if (topic.name, topic.topic_id) in earlier)


def _as_readers(
    group: GroupDescription, copies: Mapping[_Task, AbstractSet[str]], topics: AbstractSet[str]
) -> GroupDescription:
    """The group as if its members read the changelogs, as far as `topics` has them, of the tasks that are new to their process."""
    given: set[tuple[str, _Task]] = set()

    def reader(member: MemberDescription) -> MemberDescription:
        process = _process(member)
        new: dict[str, tuple[int, ...]] = {}
        for task in _held(member):
            if process not in copies.get(task, ()) and (process, task) not in given:
                given.add((process, task))
                new[task[0]] = (*new.get(task[0], ()), task[1])
        return replace(member, streams=StreamsMember(process, {}, new, {}, {}))

    topology = {
        name: SubtopologyTopics(tuple(topic for topic in part.changelogs if topic in topics), ())
        for name, part in group.topology.items()
    }
    return replace(group, members=tuple(map(reader, group.members)), topology=topology)


def _destination(member: MemberReads, racks: Sequence[RackId]) -> tuple[RackId | None, str]:
    """The member's rack, None if it is not known, and what that rests on."""
    if member.rack is None:
        return None, RESTORED_WHOLE
    (rack,) = places_of(member, racks)
    return rack, RESTORED_WHOLE if rack == member.rack else f"{RESTORED_WHOLE}; {RACK_MISSPELT}"


def _leader_bytes(logs: ClusterLogs) -> dict[TopicPartition, int | None]:
    """The size of each leader's log, None if it is not known."""
    rows = logs.snapshot.partitions
    names = [str(topic.name) for topic in logs.snapshot.topics]
    leads = (rows.replicas == rows.leader[:, None]) & (rows.replicas != NO_BROKER)
    sizes = np.where(leads, logs.replica_bytes, UNKNOWN_SIZE).max(axis=1, initial=UNKNOWN_SIZE)
    return {
        TopicPartition(names[topic], partition): None if size == UNKNOWN_SIZE else size
        for topic, partition, size in zip(rows.topic.tolist(), rows.partition.tolist(), sizes.tolist(), strict=True)
    }
