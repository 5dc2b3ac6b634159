"""AssignmentInfo: the user data that the leader of a Kafka Streams group sends to each thread with its assignment.

Versions 1 to 11, as published Kafka Streams up to 4.1 writes them. Active tasks are a list parallel to the partitions of
the consumer assignment: with the partitions sorted, the n-th task reads the n-th partition. AssignmentInfo holds neither
changelogs nor whether a task has state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from rackspan.errors import InvalidGroup
from rackspan.kafka_bytes import ByteReader
from rackspan.model.ids import TopicPartition
from rackspan.streams.problem import TaskId
from rackspan.streams.user_data.java_bytes import invalid_user_data, read_chars, read_utf
from rackspan.streams.user_data.subscription_info import LATEST_VERSION, known_version, task_id

_WITH_HOSTS: Final = 2
_WITH_COMMON_VERSION: Final = 3
_WITH_ERROR_CODE: Final = 4
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
    """One thread's user data. `active` repeats a task for each of its partitions; `standby` maps tasks to their source partitions."""

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
    error_code = reader.int32() if version >= _WITH_ERROR_CODE else 0
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
