"""A running group as an assignment problem: the document that `streams assign` and `streams lab` read.

The format is that of formats/. The running assignment is both the initial and the previous assignment of the problem, as it
would be in the next rebalance.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from rackspan.errors import UsageError
from rackspan.model import INT32_MAX, ClusterSnapshot, TopicPartition, unpadded
from rackspan.streams.live.streams_group import Family, StreamProcess, StreamsGroup, family
from rackspan.streams.problem import TaskId, task_order
from rackspan.text import count_noun


@dataclass(frozen=True, slots=True)
class Changelogs:
    """`of` has the changelog topics of each sub-topology; `unknown` one line for each topic whose sub-topology is not clear."""

    of: Mapping[Family, tuple[str, ...]]
    unknown: tuple[str, ...]


def find_changelogs(
    group: StreamsGroup, partition_counts: Mapping[str, int], given: Mapping[str, Sequence[str]]
) -> Changelogs:
    """Find the sub-topology of each changelog topic of the group.

    A topic in `given` (sub-topology → topics) belongs there. Otherwise a changelog belongs to the sub-topology that reads the
    repartition topic of the same name, else to the only sub-topology with as many tasks as the topic has partitions. Nothing
    is guessed: a topic that two could own is listed in `unknown`. A KIP-1071 group names them itself, and `given` adds nothing.
    Errors: UsageError for a given sub-topology or topic that does not exist.
    """
    _refuse_unknown(group, partition_counts, given)
    if group.changelogs is not None:
        return Changelogs({name: topics for name, topics in sorted(group.changelogs.items()) if topics}, ())
    owners = {topic: name for name, topics in given.items() for topic in topics}
    by_family: dict[Family, list[str]] = {}
    unknown = []
    for topic in _changelog_topics(group, partition_counts):
        candidates = _candidates(group, topic, partition_counts[topic])
        owner = owners.get(topic) or (candidates[0] if len(candidates) == 1 else None)
        if owner is None:
            unknown.append(_unknown(topic, candidates))
        else:
            by_family.setdefault(owner, []).append(topic)
    for topic in owners.keys() - {topic for topics in by_family.values() for topic in topics}:
        by_family.setdefault(owners[topic], []).append(topic)
    return Changelogs({name: tuple(sorted(topics)) for name, topics in sorted(by_family.items())}, tuple(unknown))


def _changelog_topics(group: StreamsGroup, partition_counts: Mapping[str, int]) -> list[str]:
    prefix = f"{group.group_id}-"
    return sorted(topic for topic in partition_counts if topic.startswith(prefix) and topic.endswith("-changelog"))


def _candidates(group: StreamsGroup, topic: str, partitions: int) -> list[Family]:
    repartition = f"{topic.removesuffix('-changelog')}-repartition"
    readers = {family(task) for task, sources in group.sources.items() if (repartition, 0) in sources}
    sized = {name for name, count in group.tasks_of.items() if count == partitions}
    return sorted(readers & sized or sized)


def _unknown(topic: str, candidates: Sequence[Family]) -> str:
    if not candidates:
        return (
            f"changelog {topic}: no sub-topology has as many tasks as it has partitions; is it of another application?"
        )
    return f"changelog {topic}: any of the sub-topologies {', '.join(candidates)} could own it; name it with --changelog {candidates[0]}={topic}"


def _refuse_unknown(
    group: StreamsGroup, partition_counts: Mapping[str, int], given: Mapping[str, Sequence[str]]
) -> None:
    for name, topics in given.items():
        if name not in group.tasks_of:
            known = ", ".join(sorted(group.tasks_of))
            raise UsageError(f"--changelog {name}=…: group {group.group_id} has no sub-topology {name}; it has {known}")
        for topic in topics:
            if partition_counts.get(topic, 0) < group.tasks_of[name]:
                raise UsageError(
                    f"--changelog {name}={topic}: the topic has {count_noun(partition_counts.get(topic, 0), 'partition')} for {count_noun(group.tasks_of[name], 'task')}; name another"
                )


class CapturedTask(TypedDict):
    id: TaskId
    stateful: bool
    source: list[str]
    changelog: list[str]


class CapturedProblem(TypedDict):
    """A problem document. formats.py describes its keys."""

    name: str
    config: dict[str, object]
    clients: list[dict[str, object]]
    tasks: list[CapturedTask]
    partitions: dict[str, list[str | None]]
    initial_active: dict[str, list[str]]
    initial_standby: dict[str, list[str]] | None


@dataclass(frozen=True, slots=True)
class CapturedGroup:
    """A group's problem document, and in `unknown` one line for each thing that neither group nor cluster reveal."""

    document: CapturedProblem
    unknown: tuple[str, ...]


def capture_group(group: StreamsGroup, snapshot: ClusterSnapshot, given: Mapping[str, Sequence[str]]) -> CapturedGroup:
    """The problem document of a group and its partitions' racks. `given` has changelog topics by sub-topology.

    `num_standbys` is the number that most stateful tasks have. Errors: UsageError for a `given` that does not exist.
    """
    replica_racks = _ReplicaRacks(snapshot)
    group = _with_existing_sources(group, replica_racks.counts)
    changelogs = find_changelogs(group, replica_racks.counts, given)
    stateful = group.families_with_state | changelogs.of.keys()
    tasks = [_task(task, group, stateful, changelogs) for task in group.sources]
    unpriced = [] if _standbys_priced(group, tasks) else [_UNPRICED_STANDBYS]
    standbys = 0 if unpriced else _standbys(group, stateful)
    document: CapturedProblem = {
        "name": group.group_id,
        "config": {"strategy": "min_traffic", "num_standbys": standbys},
        "clients": [_client(process) for process in group.processes],
        "tasks": tasks,
        "partitions": dict(_partitions(group, changelogs, replica_racks)),
        "initial_active": {process.process_id: _ordered(process.active) for process in group.processes},
        "initial_standby": _initial_standby(group, unpriced),
    }
    return CapturedGroup(
        document,
        (
            *group.notes(),
            *_idle_partitions(group, replica_racks.counts),
            *changelogs.unknown,
            *unpriced,
            *(_unsent_tags(group) if standbys else ()),
        ),
    )


_UNPRICED_STANDBYS = "standby tasks have no price: not every sub-topology with state has a known changelog"


def _with_existing_sources(group: StreamsGroup, counts: Mapping[str, int]) -> StreamsGroup:
    """A KIP-1071 group names the topics of its sub-topologies; a task reads its partition of those that have so many."""

    def existing(sources: frozenset[TopicPartition]) -> frozenset[TopicPartition]:
        return frozenset(source for source in sources if source.partition < counts.get(source.topic, INT32_MAX))

    if group.changelogs is None:
        return group
    processes = [
        replace(
            process,
            threads=tuple(
                replace(thread, active={task: existing(sources) for task, sources in thread.active.items()})
                for thread in process.threads
            ),
        )
        for process in group.processes
    ]
    return replace(group, processes=tuple(processes))


def _unsent_tags(group: StreamsGroup) -> Iterator[str]:
    """Clients send their tags, but not which of them `rack.aware.assignment.tags` names."""
    for key in sorted({key for thread in group.threads for key in thread.tags}):
        yield (
            f"client.tag.{key} is set, but a group does not send rack.aware.assignment.tags: "
            "standbys are placed as if it named none"
        )


def _idle_partitions(group: StreamsGroup, counts: Mapping[str, int]) -> Iterator[str]:
    """Sub-topologies with fewer tasks than their largest source has partitions: a rebalance will add the missing tasks."""
    topics = sorted({(family(task), topic) for task, sources in group.sources.items() for topic, _ in sources})
    for name, topic in topics:
        if counts.get(topic, 0) > group.tasks_of[name]:
            yield f"sub-topology {name} has {count_noun(group.tasks_of[name], 'task')} for {count_noun(counts[topic], 'partition')} of {topic}; a rebalance is to come"


def _client(process: StreamProcess) -> dict[str, object]:
    racks = {thread.client_id: thread.rack for thread in process.threads}
    return {
        "process_id": process.process_id,
        "consumers": racks,
        "threads": len(process.threads),
        "tags": dict(sorted(process.threads[0].tags.items())),
        "prev_active": _ordered(process.active),
        "prev_standby": _ordered(process.standby),
    }


def _task(task: TaskId, group: StreamsGroup, stateful: frozenset[str], changelogs: Changelogs) -> CapturedTask:
    number = task_order(task)[2]
    return {
        "id": task,
        "stateful": family(task) in stateful,
        "source": sorted(f"{topic}:{partition}" for topic, partition in group.sources[task]),
        "changelog": [f"{topic}:{number}" for topic in changelogs.of.get(family(task), ())],
    }


def _standbys_priced(group: StreamsGroup, tasks: Sequence[CapturedTask]) -> bool:
    return not any(process.standby for process in group.processes) or all(
        task["changelog"] for task in tasks if task["stateful"]
    )


def _standbys(group: StreamsGroup, stateful: frozenset[str]) -> int:
    copies = Counter(task for process in group.processes for task in process.standby)
    tasks_with = Counter(copies[task] for task in group.sources if family(task) in stateful)
    # Warm-ups are extra copies of a few tasks: where as many tasks have n copies as n + 1, n is the configured number.
    return max(tasks_with, key=lambda count: (tasks_with[count], -count), default=0)


def _initial_standby(group: StreamsGroup, unpriced: Sequence[str]) -> dict[str, list[str]] | None:
    if unpriced:
        return None
    return {process.process_id: _ordered(process.standby) for process in group.processes}


def _partitions(
    group: StreamsGroup, changelogs: Changelogs, replica_racks: "_ReplicaRacks"
) -> Iterator[tuple[str, list[str | None]]]:
    """The source partitions of the group and all partitions of its changelog topics, as Kafka describes them."""
    sources = {source for sources in group.sources.values() for source in sources}
    logs = {
        (topic, partition)
        for topics in changelogs.of.values()
        for topic in topics
        for partition in range(replica_racks.counts.get(topic, 0))
    }
    for topic, partition in sorted(sources | logs):
        racks = replica_racks.of(topic, partition)
        if racks is not None:
            yield f"{topic}:{partition}", racks


class _ReplicaRacks:
    """The racks of single partitions' replicas in a snapshot."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._snapshot = snapshot
        self._first = np.searchsorted(snapshot.partitions.topic, np.arange(len(snapshot.topics) + 1))
        self._code = {str(topic.name): code for code, topic in enumerate(snapshot.topics)}
        self._rack = {int(broker.id): broker.rack for broker in snapshot.brokers}
        self.counts = {name: int(self._first[code + 1] - self._first[code]) for name, code in self._code.items()}

    def of(self, topic: str, partition: int) -> list[str | None] | None:
        """The racks of all replicas by name, None for a broker without one. None instead of a list: there is no such partition."""
        if topic not in self._code:
            return None
        first, end = self._first[self._code[topic] : self._code[topic] + 2]
        rows = self._snapshot.partitions
        row = first + np.searchsorted(rows.partition[first:end], partition)
        if row >= end or rows.partition[row] != partition:
            return None
        racks = {self._rack.get(broker) for broker in unpadded(rows.replicas[row])}
        return sorted(racks, key=lambda rack: (rack is None, rack or ""))


def _ordered(tasks: frozenset[TaskId]) -> list[str]:
    return sorted(tasks, key=task_order)
