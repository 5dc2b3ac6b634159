"""A running Kafka Streams group, understood from what its members said and were told at the last rebalance.

What is on the wire: who runs which task, from which partitions, in which rack, and which tasks have kept state. What is
not: the configs, which changelog belongs to which sub-topology, and, before a thread has state, whether a task has any.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NoReturn

from rackspan.errors import InvalidGroup
from rackspan.model.ids import RackId, TopicPartition
from rackspan.streams.problem import ProcessId, TaskId, task_order
from rackspan.streams.user_data.assignment_info import ERROR_CODES, active_partitions, decode_assignment
from rackspan.streams.user_data.consumer_protocol import (
    WITH_RACK,
    decode_consumer_assignment,
    decode_consumer_subscription,
)
from rackspan.streams.user_data.subscription_info import SubscriptionInfo, decode_subscription

STREAMS_PROTOCOL: Final = "stream"
"""The name under which Kafka Streams' assignor stands in its group (StreamsPartitionAssignor)."""

_STABLE: Final = "Stable"

Family = str
"""A sub-topology as its tasks name it: `0`, or `billing__0` in a named topology."""


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member as DescribeGroups tells it; both byte strings are the consumer protocol's."""

    member_id: str
    client_id: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group as DescribeGroups tells it. `words` are Kafka's own where it gave a reason."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...] = ()
    words: str | None = None


@dataclass(frozen=True, slots=True)
class StreamThread:
    """One consumer of the group. Both roles with the source partitions of each task."""

    client_id: str
    rack: RackId | None
    tells_rack: bool
    said: SubscriptionInfo
    active: Mapping[TaskId, frozenset[TopicPartition]]
    standby: Mapping[TaskId, frozenset[TopicPartition]]
    error_code: int


@dataclass(frozen=True, slots=True)
class StreamProcess:
    """All threads of one process: what Kafka's assignor calls a client."""

    process_id: ProcessId
    threads: tuple[StreamThread, ...]

    @property
    def name(self) -> str:
        """`client.id` of the application, or what Kafka Streams makes of its id."""
        return self.threads[0].client_id.partition("-StreamThread-")[0]

    @property
    def active(self) -> frozenset[TaskId]:
        return frozenset(task for thread in self.threads for task in thread.active)

    @property
    def standby(self) -> frozenset[TaskId]:
        return frozenset(task for thread in self.threads for task in thread.standby)


@dataclass(frozen=True)
class StreamsGroup:
    """A group at rest. Processes by id; every task runs on one of them."""

    group_id: str
    processes: tuple[StreamProcess, ...]

    @cached_property
    def sources(self) -> Mapping[TaskId, frozenset[TopicPartition]]:
        """The source partitions of every task, tasks in Kafka's order."""
        found = {task: parts for thread in self.threads for task, parts in thread.active.items()}
        return {task: found[task] for task in sorted(found, key=task_order)}

    @cached_property
    def threads(self) -> tuple[StreamThread, ...]:
        return tuple(thread for process in self.processes for thread in process.threads)

    @cached_property
    def tasks_of(self) -> Mapping[Family, int]:
        """How many tasks each sub-topology has."""
        return Counter(family(task) for task in self.sources)

    @cached_property
    def seen_with_state(self) -> frozenset[Family]:
        """Sub-topologies some task of which somebody holds state of, or stands by for."""
        held = {task for thread in self.threads for task in (*thread.said.offset_sums, *thread.standby)}
        return frozenset(family(task) for task in held)

    def notes(self) -> list[str]:
        """What is worth knowing before believing a price."""
        return [note for process in self.processes for note in _notes(process)]


def family(task: TaskId) -> Family:
    return task.rpartition("_")[0]


def streams_group(described: GroupDescription) -> StreamsGroup:
    """Understand a group. Errors: InvalidGroup where it is none of Kafka Streams, is not at rest, or cannot be read."""
    _refuse_others(described)
    processes: dict[ProcessId, list[StreamThread]] = {}
    for member in sorted(described.members, key=lambda one: (one.client_id, one.member_id)):
        thread = _thread(member)
        processes.setdefault(thread.said.process_id, []).append(thread)
    group = StreamsGroup(
        described.group_id,
        tuple(StreamProcess(process_id, tuple(processes[process_id])) for process_id in sorted(processes)),
    )
    _refuse_unsettled(group)
    return group


def _refuse_others(described: GroupDescription) -> None:
    """Each refusal says what the group is instead."""
    name = f"group {described.group_id}"
    if described.state == "Dead":
        raise InvalidGroup(f"{name}: {described.words or 'not found'}; see kafka-groups --list for those there are")
    if described.protocol_type not in ("", "consumer"):
        raise InvalidGroup(f"{name} is of type {described.protocol_type}, not of consumers; name a Kafka Streams group")
    if described.state == "Empty" or not described.members:
        raise InvalidGroup(f"{name} has no members; start the application and run again")
    if described.state != _STABLE:
        raise InvalidGroup(f"{name} is rebalancing ({described.state}); wait until it is Stable and run again")
    if described.protocol != STREAMS_PROTOCOL:
        raise InvalidGroup(
            f"{name} is no Kafka Streams group: its assignor is {described.protocol!r}, not {STREAMS_PROTOCOL!r}; name one that is"
        )


def _thread(member: MemberDescription) -> StreamThread:
    whose = f"member {member.member_id}"
    subscription = decode_consumer_subscription(member.metadata, f"{whose}, subscription")
    said = decode_subscription(subscription.user_data, f"{whose}, subscription user data")
    assigned = decode_consumer_assignment(member.assignment, f"{whose}, assignment")
    told = decode_assignment(assigned.user_data, f"{whose}, assignment user data")
    return StreamThread(
        client_id=member.client_id,
        rack=subscription.rack,
        tells_rack=subscription.version >= WITH_RACK,
        said=said,
        active={task: frozenset(on) for task, on in active_partitions(told, assigned.partitions, whose).items()},
        standby=told.standby,
        error_code=told.error_code,
    )


def _refuse_unsettled(group: StreamsGroup) -> None:
    """A task that moves is first taken and then given: in between it runs nowhere, and every count would be short."""
    holders = Counter(task for thread in group.threads for task in thread.active)
    twice = sorted((task for task, count in holders.items() if count > 1), key=task_order)
    if twice:
        _refuse(group, f"task {twice[0]} runs on two threads")
    for task in group.sources:
        before = _before(task)
        if before is not None and before not in group.sources:
            _refuse(group, f"task {task} runs where task {before} does not")
    standing_by = {task for thread in group.threads for task in thread.standby}
    for task in sorted(standing_by - group.sources.keys(), key=task_order):
        _refuse(group, f"task {task} runs nowhere just now")


def _before(task: TaskId) -> TaskId | None:
    """Tasks of a sub-topology are numbered without a gap."""
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
    if not all(thread.tells_rack for thread in threads):
        notes.append(f"client {process.name} is older than Kafka 3.4 and cannot tell its rack; upgrade it")
    return notes
