"""Random consumer groups, requested of Kafka's own rack-aware assignors and of ours."""

from random import Random

import pytest

from rackspan.consumers import ConsumerGroup, GroupMember, assign
from rackspan.consumers.group import MemberId
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition
from tests.compat import ivy
from tests.compat.consumer_assignors import run_requests
from tests.consumers.groups import cost_of

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(
        ivy.java() is None, reason="needs a JDK 17 or newer on the path, such as openjdk-17-jre-headless"
    ),
]

SIZES = [pytest.param(200, id="200"), pytest.param(3000, id="3000", marks=pytest.mark.soak)]


def random_group(seed: int) -> ConsumerGroup:
    """Up to 60 partitions of 4 topics for up to 12 members in up to 5 racks; every other group subscribes alike."""
    rng = Random(seed)
    racks = [RackId(f"r{one}") for one in range(rng.randint(1, 5))]
    replicas = rng.randint(1, len(racks))
    placed = {
        TopicPartition(f"t{topic}", partition): frozenset(rng.sample(racks, replicas))
        for topic in range(rng.randint(1, 4))
        for partition in range(rng.randint(1, 15))
    }
    topics = sorted({topic for topic, _ in placed})
    return ConsumerGroup(
        tuple(
            GroupMember(
                MemberId(f"m{one:02d}"),
                frozenset(topics if seed % 2 else rng.sample(topics, rng.randint(1, len(topics)))),
                rng.choice(racks),
            )
            for one in range(rng.randint(1, 12))
        ),
        placed,
    )


@pytest.mark.rest
@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_ours_is_never_less_balanced_and_at_the_same_balance_never_crosses_racks_more(
    assignor: str, count: int
) -> None:
    requested = [random_group(seed) for seed in range(count)]
    as_even = fewer = 0
    for group, theirs in zip(requested, run_requests(assignor, requested, timeout_seconds=120), strict=True):
        kafka, ours = cost_of(group, theirs), cost_of(group, assign(group).partitions)
        assert ours[0] <= kafka[0]
        if ours[0] == kafka[0]:
            assert ours[1] <= kafka[1]
            as_even += 1
            fewer += ours[1] < kafka[1]
    print(f"{assignor}: {count} groups, {as_even} as even as ours, {fewer} of them cross racks more than ours")
    assert as_even > count / 10
    assert fewer
