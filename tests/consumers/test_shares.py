from collections import Counter
from itertools import product

from hypothesis import assume, given

from rackspan.consumers import ConsumerGroup
from rackspan.consumers.kinds import group_audiences, partitions_by_audience
from rackspan.consumers.shares import balanced_shares
from tests.consumers.groups import groups


@given(groups(members=4, partitions=5))
def test_shares_admit_every_balanced_assignment_and_no_other(group: ConsumerGroup) -> None:
    known = group_audiences(group.members)
    shared = partitions_by_audience(group, known)
    assume(shared)
    shares = balanced_shares(shared, known.sizes)
    partitions = [audience for audience, count in shared.items() for _ in range(count)]
    every = [
        (sum(load**2 for load in loads), admitted)
        for readers in product(range(len(group.members)), repeat=len(partitions))
        if all(known.subscription[reader] in audience for reader, audience in zip(readers, partitions, strict=True))
        for loads in [[Counter(readers)[one] for one in range(len(group.members))]]
        for admitted in [
            all(
                (audience, known.subscription[one]) in shares.allowed
                for one, audience in zip(readers, partitions, strict=True)
            )
            and all(
                shares.least[s] <= load <= shares.most[s] for load, s in zip(loads, known.subscription, strict=True)
            )
        ]
    ]
    least = min(squares for squares, _ in every)
    assert all(admitted == (squares == least) for squares, admitted in every)


def test_where_all_subscribe_alike_shares_are_floor_and_ceiling() -> None:
    shares = balanced_shares({(0,): 1_000_003}, [10])
    assert (shares.least.tolist(), shares.most.tolist()) == ([100_000], [100_001])


def test_the_only_reader_of_a_large_topic_gets_nothing_else() -> None:
    shares = balanced_shares({(0,): 100, (0, 1): 7}, [1, 2])
    assert shares.allowed == {((0,), 0), ((0, 1), 1)}
    assert shares.most.tolist() == [100, 4]
