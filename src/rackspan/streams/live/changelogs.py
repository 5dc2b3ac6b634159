"""Which changelog topics belong to which sub-topology: not on the wire, but often to be told from names and sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackspan.errors import UsageError
from rackspan.streams.live.streams_group import Family, StreamsGroup, family


@dataclass(frozen=True, slots=True)
class Changelogs:
    """`of` has the topics of each sub-topology that is known to have some; `unknown` says what could not be told."""

    of: Mapping[Family, tuple[str, ...]]
    unknown: tuple[str, ...]


def changelogs(
    group: StreamsGroup, partition_counts: Mapping[str, int], given: Mapping[str, Sequence[str]]
) -> Changelogs:
    """Deal the group's changelog topics to its sub-topologies.

    `given` (sub-topology → topics) is believed. Otherwise a store goes with the repartition topic it shares its name with,
    else with the only sub-topology that has as many tasks as the topic has partitions. Nothing is guessed: a topic that
    two could own is named in `unknown`.
    Errors: UsageError for a given sub-topology or topic that is not there.
    """
    _refuse_unknown(group, partition_counts, given)
    owners = {topic: name for name, topics in given.items() for topic in topics}
    found: dict[Family, list[str]] = {}
    unknown = []
    for topic in _changelog_topics(group, partition_counts):
        candidates = _candidates(group, topic, partition_counts[topic])
        owner = owners.get(topic) or (candidates[0] if len(candidates) == 1 else None)
        if owner is None:
            unknown.append(_unknown(topic, candidates))
        else:
            found.setdefault(owner, []).append(topic)
    for topic in owners.keys() - {topic for topics in found.values() for topic in topics}:
        found.setdefault(owners[topic], []).append(topic)
    return Changelogs({name: tuple(sorted(topics)) for name, topics in sorted(found.items())}, tuple(unknown))


def _changelog_topics(group: StreamsGroup, partition_counts: Mapping[str, int]) -> list[str]:
    prefix = f"{group.group_id}-"
    return sorted(topic for topic in partition_counts if topic.startswith(prefix) and topic.endswith("-changelog"))


def _candidates(group: StreamsGroup, topic: str, partitions: int) -> list[Family]:
    twin = f"{topic.removesuffix('-changelog')}-repartition"
    readers = {family(task) for task, sources in group.sources.items() if (twin, 0) in sources}
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
                    f"--changelog {name}={topic}: the topic has {partition_counts.get(topic, 0)} partitions for {group.tasks_of[name]} tasks; name another"
                )
