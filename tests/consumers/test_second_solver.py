from dataclasses import replace
from random import Random

import pytest

from rackspan.consumers import ConsumerGroup, GroupMember, assign
from rackspan.consumers.group import MemberId
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition
from tests.consumers.groups import cost_of
from tests.consumers.second_solver import best_by_constraints

SIZES = [(16, 4, seed) for seed in range(10)] + [
    pytest.param(60, 9, seed, marks=pytest.mark.soak) for seed in range(20)
]


def group_after_changes(partitions: int, members: int, seed: int) -> ConsumerGroup:
    """A group that had been assigned, then lost a member and gained one, with two topics that not everybody reads."""
    rng = Random(seed)
    racks = [RackId(f"r{one}") for one in range(3)]
    placed = {
        TopicPartition(rng.choice(("clicks", "orders", "payments")), one): frozenset(
            rng.sample(racks, rng.randint(1, 2))
        )
        for one in range(partitions)
    }
    subscriptions = (frozenset({"clicks", "orders"}), frozenset({"orders", "payments"}), frozenset({"orders"}))
    everyone = tuple(
        GroupMember(MemberId(f"m{one}"), rng.choice(subscriptions), rng.choice(racks)) for one in range(members)
    )
    first = assign(ConsumerGroup(everyone[1:], placed))
    stayed = (replace(one, owned=frozenset(first.partitions[one.id]), epoch=1) for one in everyone[2:])
    return ConsumerGroup((everyone[0], *stayed), placed)


@pytest.mark.parametrize(("partitions", "members", "seed"), SIZES)
def test_constraint_programming_finds_nothing_better(partitions: int, members: int, seed: int) -> None:
    group = group_after_changes(partitions, members, seed)
    assert cost_of(group, assign(group).partitions) == best_by_constraints(group)
