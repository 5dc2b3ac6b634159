"""Whether rack awareness is on for a group, and if not, why. Off is a value, never an error."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rackspan.streams.problem.config import AssignmentConfigs, Strategy
from rackspan.streams.problem.ids import topic_of
from rackspan.streams.problem.problem import Bools, Client, PartitionLists, Problem

RACK_TAG = "rack"
"""The tag for the rack where no tags are configured; KIP-925 compares it with client.rack."""


@dataclass(frozen=True, slots=True)
class RackAwareness:
    """`reason` says why rack awareness is off; None: it is on."""

    reason: str | None = None

    @property
    def enabled(self) -> bool:
        return self.reason is None


def judge_rack_awareness(problem: Problem) -> RackAwareness:
    """Check Kafka's conditions in Kafka's order; the first that fails is the reason.

    They are: the strategy, `rack.aware.assignment.enabled` (in KIP-925 but never in Kafka), client racks, replicas of source
    partitions, and, with standbys, replicas of every partition of the changelog topics.
    """
    return RackAwareness(
        _configs_reason(problem.configs)
        or client_rack_reason(problem.clients)
        or source_reason(problem)
        or _changelog_reason(problem)
    )


def sources_known(problem: Problem) -> bool:
    """Whether the cost of active tasks is known, rack awareness on or off."""
    return client_rack_reason(problem.clients) is None and source_reason(problem) is None


def changelogs_known(problem: Problem) -> bool:
    """Whether the cost of standby tasks is known."""
    needed = _used(problem.tasks.changelog, len(problem.partitions.names))
    return client_rack_reason(problem.clients) is None and _partition_reason(problem, needed) is None


def _configs_reason(configs: AssignmentConfigs) -> str | None:
    if configs.strategy is Strategy.NONE:
        return "rack.aware.assignment.strategy is none"
    return None if configs.enabled else "rack.aware.assignment.enabled is false"


def client_rack_reason(clients: tuple[Client, ...]) -> str | None:
    """Why client racks are unusable; None where each process has consumers, all with one rack. One bad client is enough."""
    for client in clients:
        racks = client.consumer_racks
        if not racks:
            return f"client {client.process_id} has no consumers; its rack is unknown"
        if None in racks:
            return f"client {client.process_id} has no client.rack; set it on every consumer"
        if len(set(racks)) > 1:
            return f"client {client.process_id}: its consumers differ in client.rack; set the same on all of them"
    return None


def source_reason(problem: Problem) -> str | None:
    """Why the cost of source partitions is unknown; None where it is known."""
    return _partition_reason(problem, _used(problem.tasks.source, len(problem.partitions.names)))


def _changelog_reason(problem: Problem) -> str | None:
    if problem.configs.num_standbys == 0:
        return None
    return _partition_reason(problem, _of_changelog_topics(problem))


def _of_changelog_topics(problem: Problem) -> Bools:
    """All partitions of the changelog topics: in Kafka even one that no task reads can switch rack awareness off."""
    names = problem.partitions.names
    changelogs = _used(problem.tasks.changelog, len(names))
    topics = {topic_of(names[index]) for index in np.flatnonzero(changelogs)}
    return np.array([topic_of(name) in topics for name in names], dtype=np.bool_)


def _used(lists: PartitionLists, partitions: int) -> Bools:
    used = np.zeros(partitions, dtype=np.bool_)
    used[lists.partition] = True
    return used


def _partition_reason(problem: Problem, needed: Bools) -> str | None:
    partitions = problem.partitions
    for wrong, why in (
        (~partitions.listed, "is not in the cluster's metadata"),
        (partitions.replicas == 0, "has no replicas, even when described"),
        (partitions.rackless, "has a replica on a broker without broker.rack"),
    ):
        if (needed & wrong).any():
            return f"partition {partitions.names[int(np.argmax(needed & wrong))]} {why}"
    return None


def tag_warnings(problem: Problem) -> tuple[str, ...]:
    """Warnings of tags that a client lacks, and of tags that contradict client.rack.

    The latter is KIP-925 4.D.III; Kafka's code has no such warning. The assignment follows the tags, which can be finer than
    racks.
    """
    keys = problem.configs.rack_aware_assignment_tags
    lacking = tuple(
        f"client {client.process_id}: client.tag.{key} is not set, but rack.aware.assignment.tags names it; set it"
        for client in problem.clients
        for key in keys
        if key not in client.tags
    )
    if problem.configs.strategy is Strategy.NONE or not keys:
        return lacking
    return (*lacking, *_contradicting(problem))


def _contradicting(problem: Problem) -> Iterator[str]:
    racked = [client for client in problem.clients if client.rack is not None]
    if racked and RACK_TAG not in problem.configs.rack_aware_assignment_tags:
        yield "client.rack is set, but rack.aware.assignment.tags does not name rack: standbys are spread by the tags alone"
        return
    for client in racked:
        tag = client.tags.get(RACK_TAG)
        if tag not in (None, client.rack):
            yield f"client {client.process_id}: client.tag.rack is {tag}, but client.rack is {client.rack}; standbys follow the tag"
