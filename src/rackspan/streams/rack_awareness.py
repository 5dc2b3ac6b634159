"""Whether rack awareness is on for a group, and if not, why. Off is a value, never an error."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.streams.problem import AssignmentConfigs, Bools, Client, PartitionLists, Problem, Strategy, topic_of

RACK_TAG = "rack"
"""The tag for the rack where no tags are configured; KIP-925 compares it with client.rack."""

TAGS_NOT_FOLLOWED: Final = (
    "rack.aware.assignment.tags has no effect: the sticky assignor, as Kafka's, places standbys by load and by where they "
    "were; choose high-availability to spread them by tags"
)


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
    return next(_rackless(clients), None)


def _rackless(clients: tuple[Client, ...]) -> Iterator[str]:
    """One line for each client whose rack is unknown."""
    for client in clients:
        racks = client.consumer_racks
        if not racks:
            yield f"client {client.process_id} has no consumers; its rack is unknown"
        elif None in racks:
            yield f"client {client.process_id} has no client.rack; set it on every consumer"
        elif len(set(racks)) > 1:
            yield f"client {client.process_id}: its consumers differ in client.rack; set the same on all of them"


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


def rack_warnings(problem: Problem) -> tuple[str, ...]:
    """A warning of each client without a usable rack, where rack awareness is configured (KIP-925, section 6)."""
    if _configs_reason(problem.configs):
        return ()
    return tuple(f"rack awareness is off for every client: {line}" for line in _rackless(problem.clients))


def tag_warnings(problem: Problem, tags_followed: bool = True) -> tuple[str, ...]:
    """Warnings of tags that a client lacks, that have no effect, and that contradict client.rack.

    The last is KIP-925 4.D.III; Kafka's code has no such warning. With `tags_followed` the assignor places standbys by the
    tags, which can be finer than racks. Kafka's sticky assignor does not.
    """
    keys = problem.configs.rack_aware_assignment_tags
    lacking = tuple(
        f"client {client.process_id}: client.tag.{key} is not set, but rack.aware.assignment.tags names it; set it"
        for client in problem.clients
        for key in keys
        if key not in client.tags
    )
    if not keys:
        return lacking
    if problem.configs.num_standbys and not tags_followed:
        lacking = (*lacking, TAGS_NOT_FOLLOWED)
    if problem.configs.strategy is Strategy.NONE:
        return lacking
    return (*lacking, *_contradicting(problem, tags_followed))


def _contradicting(problem: Problem, tags_followed: bool) -> Iterator[str]:
    racked = [client for client in problem.clients if client.rack is not None]
    if racked and RACK_TAG not in problem.configs.rack_aware_assignment_tags:
        effect = "standbys are spread by the tags alone" if tags_followed else "only client.rack counts"
        yield f"client.rack is set, but rack.aware.assignment.tags does not name rack: {effect}"
        return
    effect = "standbys follow the tag" if tags_followed else "only client.rack counts"
    for client in racked:
        tag = client.tags.get(RACK_TAG)
        if tag not in (None, client.rack):
            yield f"client {client.process_id}: client.tag.rack is {tag}, but client.rack is {client.rack}; {effect}"
