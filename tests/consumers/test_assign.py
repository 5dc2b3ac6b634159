import importlib
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.consumers import ConsumerGroup, GroupAssignment, GroupMember, assign
from rackspan.consumers.group import MemberId
from rackspan.errors import UnprovenResult
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition
from tests.consumers.groups import best_by_trying_all, cost_of, groups, valid
from tests.depth import examples


@examples(2)
@given(groups())
def test_no_assignment_at_all_is_better(group: ConsumerGroup) -> None:
    assignment = assign(group)
    assert valid(group, assignment)
    cost = cost_of(group, assignment.partitions)
    assert cost == best_by_trying_all(group)
    assert cost[1:] == (assignment.cross_rack, assignment.moved)


@examples(0.6)
@given(groups(members=6, partitions=30, alike=True))
def test_members_that_subscribe_alike_differ_by_one_partition_at_most(group: ConsumerGroup) -> None:
    loads = [len(partitions) for partitions in assign(group).partitions.values()]
    assert not loads or max(loads) - min(loads) <= 1


@examples(0.6)
@given(groups(members=6, partitions=30), st.integers(0, 2**32))
def test_the_order_of_members_and_partitions_does_not_matter(group: ConsumerGroup, seed: int) -> None:
    rng = Random(seed)
    members, racks = list(group.members), list(group.racks.items())
    rng.shuffle(members)
    rng.shuffle(racks)
    assert assign(ConsumerGroup(tuple(members), dict(racks))) == assign(group)


@examples(0.6)
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


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ((4, 0), "loads of 0 to 4 are not as even as proven; report this as a bug"),
        ((0, 4), "loads of 0 to 4 are not as even as proven; report this as a bug"),
    ],
)
def test_an_assignment_less_even_than_proven_is_refused(
    monkeypatch: pytest.MonkeyPatch, given: tuple[int, int], line: str
) -> None:
    """The partitions distributed otherwise than the flow says."""
    with pytest.raises(UnprovenResult, match=f"^{line}$"):
        _assign_distributed(monkeypatch, [PARTITIONS[: given[0]], PARTITIONS[: given[1]]])


def test_an_assignment_that_crosses_racks_more_than_proven_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        UnprovenResult, match=r"^4 cross-rack partitions and 0 moves do not match their proof; report this"
    ):
        _assign_distributed(monkeypatch, [PARTITIONS[2:], PARTITIONS[:2]])


def test_an_assignment_as_proven_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _assign_distributed(monkeypatch, [PARTITIONS[:2], PARTITIONS[2:]]).cross_rack == 0


PARTITIONS = [TopicPartition("t", number) for number in range(4)]


def _assign_distributed(monkeypatch: pytest.MonkeyPatch, given: list[list[TopicPartition]]) -> GroupAssignment:
    """Two members in racks r1 and r2, four partitions, two in each rack, distributed as `given` says."""
    module = importlib.import_module("rackspan.consumers.assign")
    monkeypatch.setattr(module, "distribute_partitions", lambda *_: dict(enumerate(given)))
    members = tuple(
        GroupMember(MemberId(name), frozenset({"t"}), RackId(rack)) for name, rack in (("a", "r1"), ("b", "r2"))
    )
    racks = {partition: frozenset({RackId("r1" if partition.partition < 2 else "r2")}) for partition in PARTITIONS}
    return assign(ConsumerGroup(members, racks))
