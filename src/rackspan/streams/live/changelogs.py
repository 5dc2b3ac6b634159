"""The changelog topics of each sub-topology, inferred from names and numbers of partitions: members do not send them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackspan.errors import UsageError
from rackspan.streams.live.streams_group import Family, StreamsGroup, family
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
