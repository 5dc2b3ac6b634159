"""A running Kafka Streams group, decoded from the subscriptions and assignments of its last rebalance.

Those bytes contain the client of each task, its source partitions, the racks, and which tasks have kept state. They do not
contain the configs, the sub-topology of a changelog, or whether a task has state before a thread has kept any.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NoReturn

from rackspan.errors import InvalidGroup
from rackspan.kafka_bytes.consumer_protocol import (
    WITH_RACK,
    decode_consumer_assignment,
    decode_consumer_subscription,
)
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTasks
from rackspan.model.ids import RackId, TopicPartition
from rackspan.streams.problem import ProcessId, TaskId, task_order
from rackspan.streams.user_data import (
    ERROR_CODES,
    active_partitions,
    decode_assignment,
    decode_subscription,
    invalid_user_data,
)

STREAMS_PROTOCOL: Final = "stream"
"""The name of Kafka Streams' assignor in the group protocol (StreamsPartitionAssignor)."""

_STABLE: Final = "Stable"

Family = str
"""A sub-topology as in the ids of its tasks: `0`, or `billing__0` in a named topology."""


@dataclass(frozen=True, slots=True)
class StreamThread:
    """One consumer of the group. `active` and `standby` map its tasks to their source partitions.

    `with_state` are tasks of which its process holds state, as far as it reports them.
    """

    client_id: str
    rack: RackId | None
    can_send_rack: bool
    process_id: ProcessId
    tags: Mapping[str, str]
    with_state: frozenset[TaskId]
    active: Mapping[TaskId, frozenset[TopicPartition]]
    standby: Mapping[TaskId, frozenset[TopicPartition]]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class StreamProcess:
    """All threads of one process; a client in Kafka's assignors."""

    process_id: ProcessId
    threads: tuple[StreamThread, ...]

    @property
    def name(self) -> str:
        """`client.id` of the application, or the one that Kafka Streams derives from the application id."""
        return self.threads[0].client_id.partition("-StreamThread-")[0]

    @property
    def active(self) -> frozenset[TaskId]:
        return frozenset(task for thread in self.threads for task in thread.active)

    @property
    def standby(self) -> frozenset[TaskId]:
        return frozenset(task for thread in self.threads for task in thread.standby)


@dataclass(frozen=True)
class StreamsGroup:
    """A stable group. Processes are sorted by id; every task is active on one of them.

    `changelogs` has the changelog topics of each sub-topology, None for a classic group, whose members do not send them.
    """

    group_id: str
    processes: tuple[StreamProcess, ...]
    changelogs: Mapping[Family, tuple[str, ...]] | None = None
    assignor: str = ""
    """The brokers' assignor of the group, as they report it from Kafka 4.4 on."""

    @cached_property
    def sources(self) -> Mapping[TaskId, frozenset[TopicPartition]]:
        """The source partitions of every task, tasks in Kafka's order."""
        sources = {task: partitions for thread in self.threads for task, partitions in thread.active.items()}
        return {task: sources[task] for task in sorted(sources, key=task_order)}

    @cached_property
    def threads(self) -> tuple[StreamThread, ...]:
        return tuple(thread for process in self.processes for thread in process.threads)

    @cached_property
    def tasks_of(self) -> Mapping[Family, int]:
        """The number of tasks of each sub-topology."""
        return Counter(family(task) for task in self.sources)

    @cached_property
    def families_with_state(self) -> frozenset[Family]:
        """Sub-topologies with a changelog; in a classic group those with a task of which a client holds state or a standby."""
        if self.changelogs is not None:
            return frozenset(name for name, topics in self.changelogs.items() if topics)
        held = {task for thread in self.threads for task in (*thread.with_state, *thread.standby)}
        return frozenset(family(task) for task in held)

    def notes(self) -> list[str]:
        """What an operator should know before relying on a cost: errors of the last assignment, clients without a rack."""
        notes = [note for process in self.processes for note in _notes(process)]
        if self.changelogs is None:
            return notes
        by = f" by the assignor {self.assignor}" if self.assignor else ""
        return [
            *notes,
            f"its brokers assign its tasks{by} (KIP-1071) and look at no racks: strategies are those of the classic protocol",
        ]


def family(task: TaskId) -> Family:
    """The sub-topology of a task."""
    return task.rpartition("_")[0]


def streams_group(described: GroupDescription) -> StreamsGroup:
    """Decode a group. Errors: InvalidGroup where it is not a Kafka Streams group, is rebalancing, or cannot be decoded."""
    _refuse_others(described)
    processes: dict[ProcessId, list[StreamThread]] = {}
    for member in sorted(described.members, key=lambda member: (member.client_id, member.member_id)):
        thread = _thread(member) if member.streams is None else _described_thread(described, member, member.streams)
        processes.setdefault(thread.process_id, []).append(thread)
    group = StreamsGroup(
        described.group_id,
        tuple(StreamProcess(process_id, tuple(processes[process_id])) for process_id in sorted(processes)),
        None
        if described.kind is not GroupKind.STREAMS
        else {name: part.changelogs for name, part in described.topology.items()},
        described.protocol if described.kind is GroupKind.STREAMS else "",
    )
    _refuse_unsettled(group)
    return group


def _refuse_others(described: GroupDescription) -> None:
    """Refuse a group that is not a stable Kafka Streams group. Each error says what the group is instead."""
    name = f"group {described.group_id}"
    if described.state == "Dead":
        raise InvalidGroup(
            f"{name}: {described.error_message or 'not found'}; see kafka-groups --list for those there are"
        )
    streams = described.kind is GroupKind.STREAMS
    if not streams and described.protocol_type not in ("", "consumer"):
        raise InvalidGroup(f"{name} is of type {described.protocol_type}, not of consumers; name a Kafka Streams group")
    if described.state == "Empty" or not described.members:
        raise InvalidGroup(f"{name} has no members; start the application and run again")
    if described.state != _STABLE:
        raise InvalidGroup(f"{name} is rebalancing ({described.state}); wait until it is Stable and run again")
    if not streams and described.protocol != STREAMS_PROTOCOL:
        raise InvalidGroup(
            f"{name} is not a Kafka Streams group: its assignor is {described.protocol!r}, not {STREAMS_PROTOCOL!r}; name one that is"
        )


def _thread(member: MemberDescription) -> StreamThread:
    label = f"member {member.member_id}"
    with invalid_user_data(f"{label}, subscription"):
        subscription = decode_consumer_subscription(member.metadata)
    subscription_info = decode_subscription(subscription.user_data, f"{label}, subscription user data")
    with invalid_user_data(f"{label}, assignment"):
        assignment = decode_consumer_assignment(member.assignment)
    info = decode_assignment(assignment.user_data, f"{label}, assignment user data")
    partitions = [TopicPartition(*partition) for partition in assignment.partitions]
    return StreamThread(
        client_id=member.client_id,
        rack=RackId(subscription.rack) if subscription.rack else None,
        can_send_rack=subscription.version >= WITH_RACK,
        process_id=subscription_info.process_id,
        tags=subscription_info.tags,
        with_state=frozenset(subscription_info.offset_sums),
        active={task: frozenset(sources) for task, sources in active_partitions(info, partitions, label).items()},
        standby=info.standby,
        error_code=info.error_code,
    )


def _described_thread(group: GroupDescription, member: MemberDescription, streams: StreamsMember) -> StreamThread:
    """A member of a KIP-1071 group: its coordinator describes it in full, so there are no bytes to decode."""

    def with_sources(tasks: SubtopologyTasks) -> dict[TaskId, frozenset[TopicPartition]]:
        for name in tasks.keys() - group.topology.keys():
            raise InvalidGroup(
                f"group {group.group_id}: its coordinator describes no sub-topology {name}, of which {member.client_id} has tasks; run again"
            )
        return {
            TaskId(f"{name}_{partition}"): frozenset(
                TopicPartition(topic, partition) for topic in group.topology[name].sources
            )
            for name, partitions in tasks.items()
            for partition in partitions
        }

    return StreamThread(
        client_id=member.client_id,
        rack=member.rack,
        can_send_rack=True,
        process_id=ProcessId(streams.process_id),
        tags=streams.tags,
        with_state=frozenset(),
        active=with_sources(streams.active),
        standby=with_sources(streams.standby),
    )


def _refuse_unsettled(group: StreamsGroup) -> None:
    """Refuse a group in which a task is moving: it is revoked before it is assigned again, so every count would be too low."""
    threads = Counter(task for thread in group.threads for task in thread.active)
    duplicates = sorted((task for task, count in threads.items() if count > 1), key=task_order)
    if duplicates:
        _refuse(group, f"task {duplicates[0]} runs on two threads")
    for task in group.sources:
        previous = _previous(task)
        if previous is not None and previous not in group.sources:
            _refuse(group, f"task {task} runs where task {previous} does not")
    standbys = {task for thread in group.threads for task in thread.standby}
    for task in sorted(standbys - group.sources.keys(), key=task_order):
        _refuse(group, f"task {task} runs nowhere just now")


def _previous(task: TaskId) -> TaskId | None:
    """The task numbered before `task`, None for the first: tasks of a sub-topology are numbered without a gap."""
    number = task_order(task)[2]
    return TaskId(f"{family(task)}_{number - 1}") if number else None


def _refuse(group: StreamsGroup, why: str) -> NoReturn:
    raise InvalidGroup(f"group {group.group_id}: {why}; a rebalance is under way, run again")


def _notes(process: StreamProcess) -> list[str]:
    threads = process.threads
    notes = [
        f"client {process.name}: {ERROR_CODES.get(code, f'error {code}')}, says the last assignment"
        for code in sorted({thread.error_code for thread in threads} - {0})
    ]
    if not all(thread.can_send_rack for thread in threads):
        notes.append(f"client {process.name} is older than Kafka 3.4 and does not report its rack; upgrade it")
    return notes
