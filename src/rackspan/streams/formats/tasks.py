"""The `tasks` of a problem, put in Kafka's order."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rackspan.streams.formats.json_values import a_boolean, a_list, a_string, an_object, once, refuse, required, strings
from rackspan.streams.problem import TaskId, task_order, topic_of

_KEYS: Final = frozenset({"id", "stateful", "source", "changelog"})


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task as read; `order` is its place among all."""

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


def index_of(names: Mapping[str, int], task: str, place: str) -> int:
    """Position of a task. Errors: InvalidProblem."""
    if task not in names:
        refuse(place, f"task {task} is not among the tasks; add it or leave it out")
    return names[task]


def _order(row: TaskRow) -> tuple[str, int, int]:
    return row.order


def _row(value: object, place: str) -> TaskRow:
    document = an_object(value, place)
    _refuse_unknown(document, place)
    task = a_string(required(document, "id", place), f"{place}: id")
    place = f"task {task}"
    source = _partitions(required(document, "source", place), f"{place}: source")
    if not source:
        refuse(place, "has no source partitions; a task reads at least one")
    return TaskRow(
        order=task_order(task),
        id=TaskId(task),
        stateful=a_boolean(document.get("stateful", False), f"{place}: stateful"),
        source=source,
        changelog=_partitions(document.get("changelog"), f"{place}: changelog"),
    )


def _refuse_unknown(document: Mapping[str, Any], place: str) -> None:
    for key in sorted(document.keys() - _KEYS):
        refuse(place, f"key {key!r} is unknown; a task has id, stateful, source and changelog")


def _partitions(value: object, place: str) -> list[str]:
    names = once(strings(value, place), place)
    for name in names:
        topic_of(name)
    return names
