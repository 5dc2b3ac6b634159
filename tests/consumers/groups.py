"""Consumer groups drawn by Hypothesis, and their best assignment, found by trying all."""

from collections.abc import Iterator, Mapping
from itertools import product

from hypothesis import strategies as st

from rackspan.consumers import ConsumerGroup, GroupAssignment, GroupMember
from rackspan.consumers.group import MemberId
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition

RACKS = tuple(map(RackId, ("r1", "r2", "r3", "")))
TOPICS = ("clicks", "orders", "payments")
Cost = tuple[int, int, int]


@st.composite
def groups(draw: st.DrawFn, *, members: int = 4, partitions: int = 6, alike: bool = False) -> ConsumerGroup:
    """Up to `members` and `partitions`, with and without rack; claims that are true, contradicting, outdated or of deleted partitions."""
    names = draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True))
    counts = [draw(st.integers(0, partitions // len(names))) for _ in names]
    placed = [
        TopicPartition(name, number) for name, count in zip(names, counts, strict=True) for number in range(count)
    ]
    racks = {partition: frozenset(draw(st.lists(st.sampled_from(RACKS), max_size=2))) for partition in placed}
    claimable = st.sampled_from([*placed, TopicPartition("gone", 0), TopicPartition(names[0], 99)])
    return ConsumerGroup(
        tuple(
            GroupMember(
                id=MemberId(f"consumer-{number}"),
                topics=frozenset(names if alike else draw(st.lists(st.sampled_from(TOPICS), unique=True))),
                rack=draw(st.sampled_from([None, *RACKS])),
                owned=frozenset(draw(st.lists(claimable, max_size=4))),
                epoch=draw(st.integers(-1, 2)),
                still_reads=draw(st.booleans()),
            )
            for number in draw(st.permutations(range(draw(st.integers(0, members)))))
        ),
        racks,
    )


def readable(group: ConsumerGroup) -> list[TopicPartition]:
    return [partition for partition in group.racks if any(partition.topic in member.topics for member in group.members)]


def cost_of(group: ConsumerGroup, assigned: Mapping[MemberId, tuple[TopicPartition, ...]]) -> Cost:
    """Squares of the loads, partitions read across racks, partitions moved: smaller is better, in this order."""
    reader = {partition: member for member in group.members for partition in assigned[member.id]}
    return (
        sum(len(partitions) ** 2 for partitions in assigned.values()),
        sum(member.rack not in group.racks[partition] for partition, member in reader.items()),
        sum(moved(group, partition, member) for partition, member in reader.items()),
    )


def best_by_trying_all(group: ConsumerGroup) -> Cost:
    return min(cost_of(group, assigned) for assigned in _all_assignments(group))


def valid(group: ConsumerGroup, assignment: GroupAssignment) -> bool:
    """Every readable partition has one member, which subscribes to its topic; every member is listed."""
    assigned = [partition for partitions in assignment.partitions.values() for partition in partitions]
    topics = {member.id: member.topics for member in group.members}
    return (
        sorted(assigned) == sorted(readable(group))
        and set(assignment.partitions) == set(topics)
        and all(
            partition.topic in topics[member]
            for member, partitions in assignment.partitions.items()
            for partition in partitions
        )
    )


def _all_assignments(group: ConsumerGroup) -> Iterator[dict[MemberId, tuple[TopicPartition, ...]]]:
    partitions = readable(group)
    readers = [[m.id for m in group.members if partition.topic in m.topics] for partition in partitions]
    for chosen in product(*readers):
        yield {
            member.id: tuple(
                partition for partition, reader in zip(partitions, chosen, strict=True) if reader == member.id
            )
            for member in group.members
        }


def moved(group: ConsumerGroup, partition: TopicPartition, reader: GroupMember) -> bool:
    """Whether exactly one subscriber claims it at the newest epoch, and it is not the reader."""
    claims = [m for m in group.members if partition in m.owned and partition.topic in m.topics]
    newest = [m for m in claims if m.epoch == max(claim.epoch for claim in claims)]
    return len(newest) == 1 and newest[0] is not reader
