from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from rackspan.consumers import ConsumerGroup, GroupMember, assign
from rackspan.consumers.group import MemberId
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition
from tests.consumers.groups import best_by_trying_all, cost_of, groups, valid


@settings(max_examples=200, deadline=None)
@given(groups())
def test_no_assignment_at_all_is_better(group: ConsumerGroup) -> None:
    assignment = assign(group)
    assert valid(group, assignment)
    cost = cost_of(group, assignment.partitions)
    assert cost == best_by_trying_all(group)
    assert cost[1:] == (assignment.cross_rack, assignment.moved)


@settings(max_examples=60, deadline=None)
@given(groups(members=6, partitions=30, alike=True))
def test_members_that_subscribe_alike_differ_by_one_partition_at_most(group: ConsumerGroup) -> None:
    loads = [len(partitions) for partitions in assign(group).partitions.values()]
    assert not loads or max(loads) - min(loads) <= 1


@settings(max_examples=60, deadline=None)
@given(groups(members=6, partitions=30), st.integers(0, 2**32))
def test_the_order_of_members_and_partitions_does_not_matter(group: ConsumerGroup, seed: int) -> None:
    rng = Random(seed)
    members, racks = list(group.members), list(group.racks.items())
    rng.shuffle(members)
    rng.shuffle(racks)
    assert assign(ConsumerGroup(tuple(members), dict(racks))) == assign(group)


@settings(max_examples=60, deadline=None)
@given(groups(members=6, partitions=30))
def test_an_optimal_assignment_stays_the_same(group: ConsumerGroup) -> None:
    first = assign(group)
    owning = (replace(m, owned=frozenset(first.partitions[m.id]), epoch=7) for m in group.members)
    again = assign(replace(group, members=tuple(owning)))
    assert again == replace(first, moved=0)


def test_two_topics_mix_on_every_member() -> None:
    racks = {TopicPartition(topic, one): frozenset({RackId("r1")}) for topic in ("cold", "hot") for one in range(4)}
    members = tuple(GroupMember(MemberId(f"m{one}"), frozenset({"cold", "hot"}), RackId("r1")) for one in range(4))
    assigned = assign(ConsumerGroup(members, racks)).partitions.values()
    assert all({partition.topic for partition in partitions} == {"cold", "hot"} for partitions in assigned)
