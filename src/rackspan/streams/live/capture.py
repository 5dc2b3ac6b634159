"""A running group as an assignment problem: the document that `streams assign` and `streams lab` take.

Source: the problem's format is problem_format.py's; what runs now is both the present and the previous assignment, since
the next rebalance would find it so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rackspan.model import ClusterSnapshot
from rackspan.model.partitions import unpadded
from rackspan.streams.live.changelogs import Changelogs, changelogs
from rackspan.streams.live.streams_group import StreamProcess, StreamsGroup, family
from rackspan.streams.problem import TaskId, task_order

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Captured:
    """`document` is the problem; `unknown` says what neither the group nor the cluster could tell."""

    document: Document
    unknown: tuple[str, ...]


def capture_group(group: StreamsGroup, snapshot: ClusterSnapshot, given: Mapping[str, Sequence[str]]) -> Captured:
    """Write down a group with the racks of its partitions. `given` are changelogs by sub-topology.

    `num_standbys` is as many as most tasks with state have. Errors: UsageError for a wrong `given`.
    """
    places = _Places(snapshot)
    found = changelogs(group, places.counts, given)
    stateful = group.seen_with_state | found.of.keys()
    tasks = [_task(task, group, stateful, found) for task in group.sources]
    unpriced = [] if _standbys_priced(group, tasks) else [_UNPRICED_STANDBYS]
    standbys = 0 if unpriced else _standbys(group, stateful)
    document = {
        "name": group.group_id,
        "config": {"strategy": "min_traffic", "num_standbys": standbys},
        "clients": [_client(process) for process in group.processes],
        "tasks": tasks,
        "partitions": dict(_partitions(group, found, places)),
        "initial_active": {process.process_id: _ordered(process.active) for process in group.processes},
        "initial_standby": _initial_standby(group, unpriced),
    }
    return Captured(document, (*group.notes(), *_idle_partitions(group, places.counts), *found.unknown, *unpriced))


_UNPRICED_STANDBYS = "standby tasks have no price: not every sub-topology with state has a known changelog"


def _idle_partitions(group: StreamsGroup, counts: Mapping[str, int]) -> Iterator[str]:
    """A sub-topology has as many tasks as its largest source has partitions; fewer, and a rebalance is to come."""
    topics = sorted({(family(task), topic) for task, sources in group.sources.items() for topic, _ in sources})
    for name, topic in topics:
        if counts.get(topic, 0) > group.tasks_of[name]:
            yield f"sub-topology {name} has {group.tasks_of[name]} tasks for {counts[topic]} partitions of {topic}; a rebalance is to come"


def _client(process: StreamProcess) -> Document:
    racks = {thread.client_id: thread.rack for thread in process.threads}
    return {
        "process_id": process.process_id,
        "consumers": racks,
        "threads": len(process.threads),
        "tags": dict(sorted(process.threads[0].said.tags.items())),
        "prev_active": _ordered(process.active),
        "prev_standby": _ordered(process.standby),
    }


def _task(task: TaskId, group: StreamsGroup, stateful: frozenset[str], found: Changelogs) -> Document:
    number = task_order(task)[2]
    return {
        "id": task,
        "stateful": family(task) in stateful,
        "source": sorted(f"{topic}:{partition}" for topic, partition in group.sources[task]),
        "changelog": [f"{topic}:{number}" for topic in found.of.get(family(task), ())],
    }


def _standbys_priced(group: StreamsGroup, tasks: Sequence[Document]) -> bool:
    return not any(process.standby for process in group.processes) or all(
        task["changelog"] for task in tasks if task["stateful"]
    )


def _standbys(group: StreamsGroup, stateful: frozenset[str]) -> int:
    copies = Counter(task for process in group.processes for task in process.standby)
    held = Counter(copies[task] for task in group.sources if family(task) in stateful)
    # Warm-ups are extra copies of a few tasks; where as many tasks have n copies as n + 1, n is what was asked for.
    return max(held, key=lambda count: (held[count], -count), default=0)


def _initial_standby(group: StreamsGroup, unpriced: Sequence[str]) -> Document | None:
    if unpriced:
        return None
    return {process.process_id: _ordered(process.standby) for process in group.processes}


def _partitions(group: StreamsGroup, found: Changelogs, places: "_Places") -> Iterator[tuple[str, list[str | None]]]:
    """Sources partition by partition; changelog topics whole, as Kafka describes them."""
    sources = {source for sources in group.sources.values() for source in sources}
    logs = {(topic, at) for topics in found.of.values() for topic in topics for at in range(places.counts[topic])}
    for topic, partition in sorted(sources | logs):
        racks = places.racks(topic, partition)
        if racks is not None:
            yield f"{topic}:{partition}", racks


class _Places:
    """Where a snapshot has the replicas of single partitions."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._first = np.searchsorted(snapshot.partitions.topic, np.arange(len(snapshot.topics) + 1))
        self._code = {str(topic.name): code for code, topic in enumerate(snapshot.topics)}
        self._rack = {int(broker.id): broker.rack for broker in snapshot.brokers}
        self.counts = {name: int(self._first[code + 1] - self._first[code]) for name, code in self._code.items()}

    def racks(self, topic: str, partition: int) -> list[str | None] | None:
        """Racks of all replicas by name, None among them for a broker without one; None for no such partition."""
        if topic not in self._code:
            return None
        first, end = self._first[self._code[topic] : self._code[topic] + 2]
        rows = self._snapshot.partitions
        at = first + np.searchsorted(rows.partition[first:end], partition)
        if at >= end or rows.partition[at] != partition:
            return None
        racks = {self._rack.get(broker) for broker in unpadded(rows.replicas[at])}
        return sorted(racks, key=lambda rack: (rack is None, rack or ""))


def _ordered(tasks: frozenset[TaskId]) -> list[str]:
    return sorted(tasks, key=task_order)
