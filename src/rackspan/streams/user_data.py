"""The bytes that members of a Kafka Streams group exchange through the group's coordinator, decoded: SubscriptionInfo, a thread's
own user data, and AssignmentInfo, which the group's leader sends to each thread with its assignment.

Both are inside what every consumer sends: kafka_bytes/consumer_protocol.py. Decodes only: rackspan is no member of such a group.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from rackspan.errors import InvalidGroup
from rackspan.kafka_bytes import ByteReader, malformed_as
from rackspan.model.ids import TopicPartition
from rackspan.streams.problem import LATEST, UNKNOWN, ProcessId, TaskId


def invalid_user_data(label: str) -> AbstractContextManager[None]:
    """Raises InvalidGroup, one line that begins with `label`, in place of MalformedBytes."""
    return malformed_as(lambda why: InvalidGroup(f"{label}, {why}; is it Kafka Streams, and of a version up to 4.1?"))


def read_utf(reader: ByteReader) -> str:
    """DataOutput.writeUTF: an unsigned 16-bit length. Topics and hosts are ASCII, which modified UTF-8 leaves as it is."""
    return reader.text(reader.uint16())


def read_chars(reader: ByteReader) -> str:
    """DataOutput.writeChars behind an int32 number of UTF-16 units."""
    return reader.text(2 * reader.elements(reader.int32(), 2), "utf-16-be")


def read_text(reader: ByteReader) -> str:
    """UTF-8 behind an int32 number of bytes."""
    return reader.text(reader.int32())


LATEST_VERSION: Final = 11

_WITH_LATEST_SUPPORTED: Final = 3
_WITH_END_POINT: Final = 2
_WITH_OFFSET_SUMS: Final = 7
_WITH_UNIQUE_FIELD: Final = 8
_WITH_ERROR_CODE: Final = 9
_WITH_TASKS_BY_THEMSELVES: Final = 10
_WITH_TAGS: Final = 11


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """The user data that a thread sends with its subscription when it joins: versions 1 to 11, Kafka Streams up to 4.1.

    They encode the tasks of a process in three ways: two lists up to version 6, offset sums by sub-topology from 7, offset sums
    by task from 10. Tags are new in 11. The rack is a field of the consumer's own subscription (KIP-881), not of this user data.
    `offset_sums` maps the stateful tasks of the whole process to the records it holds of each: LATEST where the task runs
    active, UNKNOWN where the version has no field for it. From version 7 on it never contains a stateless task.
    """

    version: int
    process_id: ProcessId
    latest_supported_version: int | None = None
    end_point: str = ""
    offset_sums: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    error_code: int = 0


def decode_subscription(data: bytes, label: str = "subscription") -> SubscriptionInfo:
    """Decode user data; `label` names it in errors. Errors: InvalidGroup, one line, for any malformed bytes."""
    with invalid_user_data(label):
        return _read_subscription(ByteReader(data))


def _read_subscription(reader: ByteReader) -> SubscriptionInfo:
    version = known_version(reader, LATEST_VERSION)
    latest = reader.int32() if version >= _WITH_LATEST_SUPPORTED else None
    process_id = ProcessId(str(UUID(bytes=reader.take(16))))
    tasks = {} if version >= _WITH_OFFSET_SUMS else _task_lists(reader)
    end_point = read_text(reader) if version >= _WITH_END_POINT else ""
    tasks = _offset_sums(reader, version) if version >= _WITH_OFFSET_SUMS else tasks
    if version >= _WITH_UNIQUE_FIELD:
        reader.int8()
    error_code = reader.int32() if version >= _WITH_ERROR_CODE else 0
    tags = _tags(reader) if version >= _WITH_TAGS else {}
    reader.end()
    return SubscriptionInfo(version, process_id, latest, end_point, tasks, tags, error_code)


def known_version(reader: ByteReader, latest: int) -> int:
    """The leading version. Errors: MalformedBytes outside 1 to `latest`."""
    version = reader.int32()
    if not 1 <= version <= latest:
        raise reader.malformed(f"version {version} is not among 1 to {latest}")
    return version


def task_id(reader: ByteReader, subtopology: int, partition: int, topology: str | None = None) -> TaskId:
    """A task id: SUBTOPOLOGY_PARTITION, prefixed with the topology name if there is one."""
    if subtopology < 0 or partition < 0:
        raise reader.malformed(f"task {subtopology}_{partition} has a negative number")
    return TaskId(f"{topology}__{subtopology}_{partition}" if topology else f"{subtopology}_{partition}")


def _task_lists(reader: ByteReader) -> dict[TaskId, int]:
    """Up to version 6: the tasks that ran active, then those kept as standby or found on disk."""
    active = [task_id(reader, reader.int32(), reader.int32()) for _ in range(reader.elements(reader.int32(), 8))]
    standby = [task_id(reader, reader.int32(), reader.int32()) for _ in range(reader.elements(reader.int32(), 8))]
    return {**dict.fromkeys(standby, UNKNOWN), **dict.fromkeys(active, LATEST)}


def _offset_sums(reader: ByteReader, version: int) -> dict[TaskId, int]:
    if version >= _WITH_TASKS_BY_THEMSELVES:
        return dict(_offset_sum(reader) for _ in range(reader.elements(reader.int32(), 18)))
    sums: dict[TaskId, int] = {}
    for _ in range(reader.elements(reader.int32(), 8)):
        subtopology = reader.int32()
        sums.update(
            {
                task_id(reader, subtopology, reader.int32()): reader.int64()
                for _ in range(reader.elements(reader.int32(), 12))
            }
        )
    return sums


def _offset_sum(reader: ByteReader) -> tuple[TaskId, int]:
    subtopology, partition, offsets = reader.int32(), reader.int32(), reader.int64()
    return task_id(reader, subtopology, partition, reader.nullable_string()), offsets


def _tags(reader: ByteReader) -> dict[str, str]:
    return {read_text(reader): read_text(reader) for _ in range(reader.elements(reader.int32(), 8))}


_WITH_HOSTS: Final = 2
_WITH_COMMON_VERSION: Final = 3
_WITH_LEADER_ERROR: Final = 4
_WITH_TOPIC_NUMBERS: Final = 5
_WITH_STANDBY_HOSTS: Final = 6
_WITH_NEXT_REBALANCE: Final = 7
_WITH_NAMED_TOPOLOGIES: Final = 10

NO_REBALANCE: Final = 2**63 - 1
"""`next_rebalance_ms` of a thread that shall not trigger a rebalance."""

ERROR_CODES: Final[Mapping[int, str]] = {
    1: "source topics are missing",
    2: "versions are being probed",
    3: "assigning failed",
    4: "a shutdown was requested",
}


@dataclass(frozen=True, slots=True)
class AssignmentInfo:
    """The user data that the group's leader sends to a thread: versions 1 to 11. It says nothing of changelogs and of state.

    Active tasks are a list parallel to the partitions of the consumer assignment: with the partitions sorted, the n-th task
    reads the n-th partition. `active` repeats a task for each of its partitions; `standby` maps tasks to their source
    partitions.
    """

    version: int
    active: Sequence[TaskId] = ()
    standby: Mapping[TaskId, frozenset[TopicPartition]] = field(default_factory=dict)
    error_code: int = 0
    next_rebalance_ms: int = NO_REBALANCE


def decode_assignment(data: bytes, label: str = "assignment") -> AssignmentInfo:
    """Decode user data; `label` names it in errors. Errors: InvalidGroup, one line, for any malformed bytes."""
    with invalid_user_data(label):
        return _read_assignment(ByteReader(data))


def _read_assignment(reader: ByteReader) -> AssignmentInfo:
    version = known_version(reader, LATEST_VERSION)
    if version >= _WITH_COMMON_VERSION:
        reader.int32()
    active = [_task(reader, version) for _ in range(reader.elements(reader.int32(), 8))]
    standby = {_task(reader, version): _partitions(reader) for _ in range(reader.elements(reader.int32(), 12))}
    _skip_hosts(reader, version)
    error_code = reader.int32() if version >= _WITH_LEADER_ERROR else 0
    next_rebalance_ms = reader.int64() if version >= _WITH_NEXT_REBALANCE else NO_REBALANCE
    reader.end()
    return AssignmentInfo(version, tuple(active), standby, error_code, next_rebalance_ms)


def active_partitions(
    info: AssignmentInfo, assigned: Sequence[TopicPartition], label: str
) -> dict[TaskId, set[TopicPartition]]:
    """The source partitions of each active task. Errors: InvalidGroup where tasks and partitions do not pair up."""
    if len(info.active) != len(assigned):
        raise InvalidGroup(
            f"{label}: {len(info.active)} task entries for {len(assigned)} partitions; they come in pairs, so one of them is not from Kafka Streams"
        )
    tasks: dict[TaskId, set[TopicPartition]] = {}
    for task, partition in zip(info.active, sorted(assigned), strict=True):
        tasks.setdefault(task, set()).add(partition)
    return tasks


def _task(reader: ByteReader, version: int) -> TaskId:
    subtopology, partition = reader.int32(), reader.int32()
    return task_id(reader, subtopology, partition, read_chars(reader) if version >= _WITH_NAMED_TOPOLOGIES else None)


def _partitions(reader: ByteReader) -> frozenset[TopicPartition]:
    return frozenset(
        TopicPartition(read_utf(reader), reader.int32()) for _ in range(reader.elements(reader.int32(), 6))
    )


def _skip_hosts(reader: ByteReader, version: int) -> None:
    """Skip the hosts that serve interactive queries, to reach the fields behind them."""
    if version >= _WITH_TOPIC_NUMBERS:
        for _ in range(reader.elements(reader.int32(), 6)):
            reader.int32(), read_utf(reader)
        _skip_numbered(reader)
        if version >= _WITH_STANDBY_HOSTS:
            _skip_numbered(reader)
    elif version >= _WITH_HOSTS:
        for _ in range(reader.elements(reader.int32(), 10)):
            read_utf(reader), reader.int32(), _partitions(reader)


def _skip_numbered(reader: ByteReader) -> None:
    for _ in range(reader.elements(reader.int32(), 10)):
        read_utf(reader), reader.int32()
        reader.take(8 * reader.elements(reader.int32(), 8))
