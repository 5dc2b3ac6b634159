import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, combinations, product
from math import prod
from random import Random

import pytest

from rackspan.model import ClusterSnapshot
from rackspan.reassign import ReassignmentPlan, ReassignmentRequest, plan, snapshot_after
from tests.reassign.brute_force import spread_is_even
from tests.reassign.instances import cluster
from tests.reassign.plans import cost

RANDOM_CLUSTERS = 12_000 if os.environ.get("RACKSPAN_SOAK") else 300
PLACEMENTS_MAX = 5_000


class Instance:
    """A cluster of at most six brokers, some of them fenced, gone or to be drained, and all its legal placements."""

    def __init__(self, rng: Random) -> None:
        brokers = rng.randint(2, 6)
        racks = {broker: f"r{rng.randrange(rng.randint(1, 4))}" for broker in range(brokers)}
        gone = rng.random() < 0.2
        held = [rng.sample(range(brokers + gone), rng.randint(1, min(3, brokers))) for _ in range(rng.randint(1, 4))]
        # Of a partition without any live replica nothing can be copied: it is not planned.
        self.placed = [replicas for replicas in held if replicas != [brokers]] or [[0]]
        self.fenced = {broker for broker in range(brokers) if rng.random() < 0.1}
        self.snapshot = cluster(self.placed, racks, fenced=sorted(self.fenced))
        self.drain = frozenset({rng.randrange(brokers)}) if rng.random() < 0.3 else frozenset[int]()
        self.remaining = {broker: rack for broker, rack in racks.items() if broker not in self.drain}
        self.legal = [list(self._legal(held)) for held in self.placed]

    def _legal(self, held: Sequence[int]) -> Iterable[tuple[int, ...]]:
        sizes = Counter(self.remaining.values())
        for chosen in combinations(sorted(self.remaining), len(held)):
            even = spread_is_even([self.remaining[broker] for broker in chosen], sizes)
            if even and not (set(chosen) - set(held)) & self.fenced:
                yield chosen

    @property
    def can_be_enumerated(self) -> bool:
        return 0 < prod(map(len, self.legal)) <= PLACEMENTS_MAX

    def moves(self, placed: Iterable[Iterable[int]]) -> int:
        return sum(len(set(new) - set(old)) for new, old in zip(placed, self.placed, strict=True))


def _unevenness(placed: Iterable[Iterable[int]]) -> int:
    return sum(count**2 for count in Counter(chain.from_iterable(placed)).values())


def _ends(snapshot: ClusterSnapshot, planned: ReassignmentPlan) -> list[tuple[int, ...]]:
    return [row.replicas for row in snapshot_after(snapshot, planned).partitions]


@pytest.mark.parametrize("seed", range(RANDOM_CLUSTERS))
def test_a_repair_is_the_fewest_moves_and_of_those_the_most_even_loads(seed: int) -> None:
    instance = Instance(Random(seed))
    if not instance.can_be_enumerated:
        return
    planned = plan(
        instance.snapshot,
        request=ReassignmentRequest(replace_missing=True, allow_fewer_racks=True, drain=instance.drain),
    )
    best = min((instance.moves(placed), _unevenness(placed)) for placed in product(*instance.legal))
    ends = _ends(instance.snapshot, planned)
    assert (instance.moves(ends), _unevenness(ends)) == best
    assert cost(planned).lower_bound == best[0]


@pytest.mark.parametrize("seed", range(RANDOM_CLUSTERS))
def test_balance_is_the_most_even_loads_and_of_those_the_fewest_moves(seed: int) -> None:
    instance = Instance(Random(seed))
    # A fenced broker keeps what it holds under balance, though legal placements without it may be more even.
    if not instance.can_be_enumerated or instance.fenced:
        return
    planned = plan(
        instance.snapshot,
        request=ReassignmentRequest(replace_missing=True, allow_fewer_racks=True, drain=instance.drain, balance=True),
    )
    best = min((_unevenness(placed), instance.moves(placed)) for placed in product(*instance.legal))
    ends = _ends(instance.snapshot, planned)
    assert (_unevenness(ends), instance.moves(ends)) == best
    assert (cost(planned).lower_bound, cost(planned).gap_reason) == (best[1], None)


@pytest.mark.parametrize("seed", range(RANDOM_CLUSTERS))
@pytest.mark.parametrize("balance", [False, True])
def test_nothing_is_placed_on_a_fenced_broker(seed: int, balance: bool) -> None:
    instance = Instance(Random(seed))
    if len(instance.remaining) == 0:
        return
    planned = plan(
        instance.snapshot,
        request=ReassignmentRequest(
            replace_missing=True, allow_fewer_racks=True, drain=instance.drain, balance=balance
        ),
    )
    for new, old in zip(_ends(instance.snapshot, planned), instance.placed, strict=True):
        assert not (set(new) - set(old)) & instance.fenced


def test_of_equally_many_moves_what_is_in_sync_stays() -> None:
    snapshot = cluster([[0, 1]] * 4, {0: "a", 1: "a", 2: "b"})
    isr = snapshot.partitions.isr.copy()
    isr[:] = [1, -1]
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, isr=isr))
    assert all(1 in row.replicas and 0 not in row.replicas for row in plan(snapshot).partitions())
