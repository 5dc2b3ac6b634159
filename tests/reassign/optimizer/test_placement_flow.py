from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, combinations, product
from math import prod
from random import Random

import pytest

from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.model import RackId, UnrackedPolicy
from rackspan.reassign import ReassignmentPlan, ReassignmentRequest, lint, plan, snapshot_after
from tests.depth import at_depth
from tests.reassign.brute_force import spread_is_even
from tests.reassign.instances import cluster
from tests.reassign.plans import cost

RANDOM_CLUSTERS = at_depth(check=100, test=150, soak=12_000)
PART = 500 if RANDOM_CLUSTERS > 500 else 50
"""Clusters of one test: parts of a soak that takes half an hour can be run one at a time (`-k "seeds500"`)."""
PLACEMENTS_MAX = 5_000


class Instance:
    """A cluster of at most six brokers and four partitions, a policy and a request, and all placements that are legal.

    Brokers are fenced, excluded, gone, to be drained or without a rack; the replication factor stays or is another.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        rng = Random(seed)
        brokers = rng.randint(2, 6)
        racks = {broker: f"r{rng.randrange(rng.randint(1, 4))}" for broker in range(brokers)}
        gone = rng.random() < 0.2
        held = [rng.sample(range(brokers + gone), rng.randint(1, min(3, brokers))) for _ in range(rng.randint(1, 4))]
        self.fenced = {broker for broker in range(brokers) if rng.random() < 0.1}
        # Of a partition without any live replica nothing can be copied: it is not planned.
        self.placed = [replicas for replicas in held if set(replicas) - self.fenced - {brokers}]
        if not self.placed:
            self.placed, self.fenced = [[0]], self.fenced - {0}
        self.drain = frozenset({rng.randrange(brokers)}) if rng.random() < 0.3 else frozenset[int]()
        self.factor = rng.randint(1, 4) if rng.random() < 0.3 else None
        rackless = {broker for broker in range(brokers) if rng.random() < 0.3} if rng.random() < 0.3 else set[int]()
        self.policy = RackPolicy(
            unracked=rng.choice([UnrackedPolicy.SHARED, UnrackedPolicy.OWN]),
            excluded_brokers=frozenset(broker for broker in range(brokers) if rng.random() < 0.1),
            # What a topic has to survive may be impossible here, whatever the plan: lint would warn of that.
            survive=Survive.NONE,
        )
        snapshot = cluster(self.placed, racks, fenced=sorted(self.fenced))
        listed = tuple(replace(one, rack=None) if one.id in rackless else one for one in snapshot.brokers)
        self.snapshot = replace(snapshot, brokers=listed)
        shared = self.policy.unracked is UnrackedPolicy.SHARED
        counted = {**racks, **{broker: "none" if shared else f"only {broker}" for broker in rackless}}
        self.remaining = {broker: rack for broker, rack in counted.items() if broker not in self.drain}
        self.barred = self.fenced | self.policy.excluded_brokers

    def request(self, *, balance: bool, allow_fewer_racks: bool = True) -> ReassignmentRequest:
        return ReassignmentRequest(
            drain=self.drain,
            replication_factor=self.factor,
            balance=balance,
            replace_missing=True,
            allow_fewer_racks=allow_fewer_racks,
        )

    @cached_property
    def legal(self) -> list[list[tuple[int, ...]]]:
        return [list(self._legal(held)) for held in self.placed]

    def _legal(self, held: Sequence[int]) -> Iterable[tuple[int, ...]]:
        sizes = Counter(self.remaining.values())
        for chosen in combinations(sorted(self.remaining), self.factor or len(held)):
            even = spread_is_even([self.remaining[broker] for broker in chosen], sizes)
            if even and not (set(chosen) - set(held)) & self.barred:
                yield chosen

    def can_be_enumerated(self) -> bool:
        return 0 < prod(map(len, self.legal)) <= PLACEMENTS_MAX

    def moves(self, placed: Iterable[Iterable[int]]) -> int:
        return sum(len(set(new) - set(old)) for new, old in zip(placed, self.placed, strict=True))


class Uncounted(Instance):
    """The same where brokers without a rack count in none: what they hold stays, and may stand for a replica of any rack."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rng = Random(-1 - seed)
        self.factor, self.barred, self.fenced = None, set(), set()
        self.policy = RackPolicy(unracked=UnrackedPolicy.IGNORE, survive=Survive.NONE)
        rackless = {one.id for one in self.snapshot.brokers if rng.random() < 0.35}
        self.snapshot = replace(
            self.snapshot,
            brokers=tuple(
                replace(one, fenced=False, rack=None if one.id in rackless else one.rack or RackId("r0"))
                for one in self.snapshot.brokers
            ),
        )
        left = [one for one in self.snapshot.brokers if one.id not in self.drain]
        counted = {int(one.id): str(one.rack) for one in left if one.rack is not None}
        # Without any rack there is nothing to spread over: all brokers are one.
        self.remaining = counted or {int(one.id): "all" for one in left}
        self.uncounted = {int(one.id) for one in left} - self.remaining.keys()

    def _legal(self, held: Sequence[int]) -> Iterable[tuple[int, ...]]:
        stay, sizes = sorted(self.uncounted & set(held)), Counter(self.remaining.values())
        for chosen in combinations(sorted(self.remaining), max(0, len(held) - len(stay))):
            racks = [self.remaining[broker] for broker in chosen]
            standing_for = product(sorted(sizes), repeat=len(stay))
            if any(self._even([*racks, *those], sizes) for those in standing_for):
                yield tuple(sorted((*stay, *chosen)))

    @staticmethod
    def _even(racks: list[str], sizes: Counter[str]) -> bool:
        return all(count <= sizes[rack] for rack, count in Counter(racks).items()) and spread_is_even(racks, sizes)


def _unevenness(placed: Iterable[Iterable[int]]) -> int:
    return sum(count**2 for count in Counter(chain.from_iterable(placed)).values())


def _ends(instance: Instance, planned: ReassignmentPlan) -> list[tuple[int, ...]]:
    return [row.replicas for row in snapshot_after(instance.snapshot, planned).partitions]


PARTS = [pytest.param(range(first, first + PART), id=f"seeds{first}") for first in range(0, RANDOM_CLUSTERS, PART)]


@pytest.mark.slow
@pytest.mark.parametrize("seeds", PARTS)
def test_a_repair_is_the_fewest_moves_and_of_those_the_most_even_loads(seeds: Sequence[int]) -> None:
    compared = 0
    for instance in filter(Instance.can_be_enumerated, map(Instance, seeds)):
        planned = plan(instance.snapshot, instance.policy, instance.request(balance=False))
        best = min((instance.moves(placed), _unevenness(placed)) for placed in product(*instance.legal))
        ends = _ends(instance, planned)
        assert (instance.moves(ends), _unevenness(ends)) == best, instance.seed
        assert cost(planned).lower_bound == best[0], instance.seed
        compared += 1
    assert compared > len(seeds) // 3


@pytest.mark.slow
@pytest.mark.parametrize("seeds", PARTS)
def test_balance_is_the_most_even_loads_and_of_those_the_fewest_moves(seeds: Sequence[int]) -> None:
    compared = 0
    for instance in filter(Instance.can_be_enumerated, map(Instance, seeds)):
        # Such a broker keeps what it holds under balance, though legal placements without it may be more even.
        if instance.barred:
            continue
        planned = plan(instance.snapshot, instance.policy, instance.request(balance=True))
        best = min((_unevenness(placed), instance.moves(placed)) for placed in product(*instance.legal))
        ends = _ends(instance, planned)
        assert (_unevenness(ends), instance.moves(ends)) == best, instance.seed
        assert (cost(planned).lower_bound, cost(planned).gap_reason) == (best[1], None), instance.seed
        compared += 1
    assert compared > len(seeds) // 6


@pytest.mark.slow
@pytest.mark.parametrize("seeds", PARTS)
def test_replicas_in_no_rack_leave_those_beside_them_free_to_change_racks(seeds: Sequence[int]) -> None:
    compared = 0
    for instance in filter(Instance.can_be_enumerated, map(Uncounted, seeds)):
        repaired = plan(instance.snapshot, instance.policy, instance.request(balance=False))
        fewest = min((instance.moves(placed), _unevenness(placed)) for placed in product(*instance.legal))
        ends = _ends(instance, repaired)
        assert (instance.moves(ends), _unevenness(ends)) == fewest, instance.seed
        assert cost(repaired).lower_bound == fewest[0], instance.seed
        planned = plan(instance.snapshot, instance.policy, instance.request(balance=True))
        best = min((_unevenness(placed), instance.moves(placed)) for placed in product(*instance.legal))
        ends = _ends(instance, planned)
        assert (_unevenness(ends), instance.moves(ends)) == best, instance.seed
        assert (cost(planned).lower_bound, cost(planned).gap_reason) == (best[1], None), instance.seed
        compared += bool(instance.uncounted)
    assert compared > len(seeds) // 6


@pytest.mark.slow
@pytest.mark.parametrize("seeds", PARTS)
def test_no_plan_places_on_a_fenced_or_excluded_broker_or_has_a_finding_by_lint(seeds: Sequence[int]) -> None:
    for instance, balance, allow_fewer_racks in product(map(Instance, seeds), (False, True), (False, True)):
        request = instance.request(balance=balance, allow_fewer_racks=allow_fewer_racks)
        planned = plan(instance.snapshot, instance.policy, request)
        pairs = list(zip(map(set, _ends(instance, planned)), map(set, instance.placed), strict=True))
        assert not any((new - old) & instance.barred for new, old in pairs), instance.seed
        # That all replicas of a partition are replaced, or that its move waits for a fenced broker, is true where lint reports it; lint
        # reports nothing else of a plan.
        replaced = {
            partition for partition, (new, old) in enumerate(pairs) if not new & old and (len(new) > 1 or len(old) > 1)
        }
        waits = {at for at, (new, old) in enumerate(pairs) if new != old and new & old & instance.fenced}
        found = lint(instance.snapshot, instance.policy, planned, request)
        assert {(one.constraint, one.partition) for one in found} == {
            *(("plan-replaces-all", one) for one in replaced),
            *(("plan-fenced-broker", one) for one in waits),
        }


def test_of_equally_many_moves_what_is_in_sync_stays() -> None:
    snapshot = cluster([[0, 1]] * 4, {0: "a", 1: "a", 2: "b"})
    isr = snapshot.partitions.isr.copy()
    isr[:] = [1, -1]
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, isr=isr))
    assert all(1 in row.replicas and 0 not in row.replicas for row in plan(snapshot).partitions())


def test_a_fenced_broker_gives_a_replica_where_the_loads_end_more_even_for_it() -> None:
    """Broker 0 is drained; of the four replicas that it leaves one can come to where fenced broker 1 gives another."""
    placed = [[3, 2, 4, 5], [1, 5, 2, 0], [2, 4, 1, 5, 0], [0, 2, 1, 5], [5, 4, 1, 3, 0], [2, 1]]
    racks = {0: "a", 1: "a", 2: "a", 3: "a", 4: "b", 5: "a"}
    left = {broker: rack for broker, rack in racks.items() if broker != 0}

    def legal(held: list[int]) -> list[tuple[int, ...]]:
        sets = combinations(left, len(held))
        even = (one for one in sets if spread_is_even([left[broker] for broker in one], Counter(left.values())))
        return [one for one in even if 1 in held or 1 not in one]

    best = min(
        (sum(len(set(new) - set(old)) for new, old in zip(sets, placed, strict=True)), _unevenness(sets))
        for sets in product(*map(legal, placed))
    )
    snapshot = cluster(placed, racks, fenced=[1])
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({0}), allow_fewer_racks=True))
    ends = [row.replicas for row in snapshot_after(snapshot, planned).partitions]
    assert (planned.moves, _unevenness(ends)) == best


def test_a_repair_of_more_rows_than_one_exact_flow_takes_is_that_of_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rackspan.reassign.optimizer.placement_flow.PLACEMENT_ARCS_MAX", 1)
    planned = plan(cluster([[0, 1], [1, 0], [2, 0]], {0: "a", 1: "a", 2: "b"}))
    assert (planned.moves, cost(planned).lower_bound) == (2, 2)
    assert all(2 in one.replicas for one in planned.partitions())
