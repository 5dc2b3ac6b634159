"""SubscriptionInfo: the user data that a Kafka Streams thread sends with its subscription when it joins.

Versions 1 to 11, as published Kafka Streams up to 4.1 writes them. They encode the tasks of a process in three ways: two
lists up to version 6, offset sums by sub-topology from 7, offset sums by task from 10. Tags are new in 11.
The rack is a field of the consumer's own subscription (KIP-881), not of this user data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from rackspan.kafka_bytes import ByteReader
from rackspan.streams.problem import LATEST, UNKNOWN, ProcessId, TaskId
from rackspan.streams.user_data.java_bytes import invalid_user_data, read_text

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
    """One thread's user data.

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
