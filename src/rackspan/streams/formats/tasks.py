"""The `tasks` of a problem document, sorted in Kafka's order."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rackspan.streams.formats.json_values import (
    a_boolean,
    a_list,
    a_string,
    an_object,
    refuse,
    required,
    strings,
    without_duplicates,
)
from rackspan.streams.problem import TaskId, task_order, topic_of

_KEYS: Final = frozenset({"id", "stateful", "source", "changelog"})


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task as read; `order` is its sort key."""

    order: tuple[str, int, int]
    id: TaskId
    stateful: bool
    source: list[str]
    changelog: list[str]


def read_tasks(value: object) -> tuple[Mapping[str, int], list[TaskRow]]:
    """Task id → position, and the rows in that order. Errors: InvalidProblem."""
    rows = sorted((_row(item, f"tasks[{index}]") for index, item in enumerate(a_list(value, "tasks"))), key=_order)
    for before, row in pairwise(rows):
        if before.order == row.order:
            refuse(f"task {row.id}", "listed twice; leave one of them out")
    return {row.id: position for position, row in enumerate(rows)}, rows


def index_of(names: Mapping[str, int], task: str, path: str) -> int:
    """Position of a task. Errors: InvalidProblem."""
    if task not in names:
        refuse(path, f"task {task} is not among the tasks; add it or leave it out")
    return names[task]


def _order(row: TaskRow) -> tuple[str, int, int]:
    return row.order


def _row(value: object, path: str) -> TaskRow:
    document = an_object(value, path)
    _refuse_unknown(document, path)
    task = a_string(required(document, "id", path), f"{path}: id")
    path = f"task {task}"
    source = _partitions(required(document, "source", path), f"{path}: source")
    if not source:
        refuse(path, "has no source partitions; a task reads at least one")
    return TaskRow(
        order=task_order(task),
        id=TaskId(task),
        stateful=a_boolean(document.get("stateful", False), f"{path}: stateful"),
        source=source,
        changelog=_partitions(document.get("changelog"), f"{path}: changelog"),
    )


def _refuse_unknown(document: Mapping[str, Any], path: str) -> None:
    for key in sorted(document.keys() - _KEYS):
        refuse(path, f"key {key!r} is unknown; a task has id, stateful, source and changelog")


def _partitions(value: object, path: str) -> list[str]:
    names = without_duplicates(strings(value, path), path)
    for name in names:
        topic_of(name)
    return names
