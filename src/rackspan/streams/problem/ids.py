"""Task ids, process ids and topic partitions, as Kafka Streams formats and orders them."""

import re
import uuid
from typing import Final, NewType

from rackspan.errors import InvalidProblem
from rackspan.model.ids import INT32_MAX

TaskId = NewType("TaskId", str)
ProcessId = NewType("ProcessId", str)

_TASK: Final = re.compile(r"(?:(.+)__)?([0-9]{1,10})_([0-9]{1,10})")
_TOPIC_PARTITION: Final = re.compile(r"(.+):([0-9]{1,10})")


def task_order(task: str) -> tuple[str, int, int]:
    """Sort key of Kafka's TaskId: topology name, sub-topology, partition. Errors: InvalidProblem."""
    match = _TASK.fullmatch(task)
    if match is None:
        raise InvalidProblem(f"task {task!r}: an id is SUBTOPOLOGY_PARTITION, such as 0_3; fix it in the file")
    topology, subtopology, partition = match.groups()
    if max(int(subtopology), int(partition)) > INT32_MAX:
        raise InvalidProblem(f"task {task!r}: both numbers of an id are at most {INT32_MAX}; fix it in the file")
    return topology or "", int(subtopology), int(partition)


def process_order(process_id: str) -> tuple[int, int]:
    """Sort key of Java's UUID: both 64-bit halves as signed numbers. Errors: InvalidProblem."""
    try:
        value = uuid.UUID(process_id)
    except ValueError:
        value = None
    if value is None or str(value) != process_id.lower():
        raise InvalidProblem(
            f"client {process_id!r}: a process id is a UUID such as 00000000-0000-0000-0000-000000000001; fix it in the file"
        )
    return _signed(value.int >> 64), _signed(value.int & (2**64 - 1))


def _signed(half: int) -> int:
    return half - 2**64 if half >= 2**63 else half


def topic_of(topic_partition: str) -> str:
    """The topic of TOPIC:PARTITION. Errors: InvalidProblem."""
    match = _TOPIC_PARTITION.fullmatch(topic_partition)
    if match is None:
        raise InvalidProblem(f"partition {topic_partition!r}: it is written TOPIC:NUMBER; fix it in the file")
    return match[1]
