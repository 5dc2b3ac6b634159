"""The `tasks` of a problem document, sorted in Kafka's order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rackspan.streams.formats.documents import TaskDocument, refuse, without_duplicates
from rackspan.streams.problem import TaskId, task_order, topic_of


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task as read; `order` is its sort key."""

    order: tuple[str, int, int]
    id: TaskId
    stateful: bool
    source: list[str]
    changelog: list[str]


def read_tasks(given: Sequence[TaskDocument]) -> tuple[Mapping[str, int], list[TaskRow]]:
    """Task id → position, and the rows in that order. Errors: InvalidProblem."""
    rows = sorted(map(_row, given), key=_order)
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


def _row(given: TaskDocument) -> TaskRow:
    path = f"task {given.id}"
    source = _partitions(given.source, f"{path}: source")
    if not source:
        refuse(path, "has no source partitions; a task reads at least one")
    return TaskRow(
        order=task_order(given.id),
        id=TaskId(given.id),
        stateful=given.stateful,
        source=source,
        changelog=_partitions(given.changelog, f"{path}: changelog"),
    )


def _partitions(listed: list[str] | None, path: str) -> list[str]:
    names = without_duplicates(listed, path)
    for name in names:
        topic_of(name)
    return names
