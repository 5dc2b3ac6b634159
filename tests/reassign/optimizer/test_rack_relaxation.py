from collections import Counter
from collections.abc import Sequence
from itertools import chain, product

import pytest

from rackspan.reassign import LoadRange, ReassignmentRequest, plan, snapshot_after
from rackspan.reassign.optimizer import balance, placement_flow
from tests.reassign.instances import cluster, spread
from tests.reassign.optimizer.test_placement_flow import PARTS, Instance, Uncounted
from tests.reassign.plans import cost
from tests.reassign.test_planner import judged


@pytest.fixture(autouse=True)
def _exact_flows_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a large cluster: the flow of racks does the bulk, exact flows take a few partitions at a time."""
    monkeypatch.setattr(placement_flow, "PLACEMENT_ARCS_MAX", 12)
    monkeypatch.setattr(balance, "PLACEMENT_ARCS_MAX", 12)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", PARTS)
def test_a_plan_without_a_gap_is_the_best_there_is_and_every_plan_is_legal(seeds: Sequence[int]) -> None:
    instances = chain(map(Instance, seeds), map(Uncounted, seeds))
    for instance in filter(Instance.can_be_enumerated, instances):
        if instance.barred:
            continue
        planned = plan(instance.snapshot, instance.policy, instance.request(balance=True))
        ends = [row.replicas for row in snapshot_after(instance.snapshot, planned).partitions]
        reached = _unevenness(ends), instance.moves(ends)
        best = min((_unevenness(placed), instance.moves(placed)) for placed in product(*instance.legal))
        assert reached >= best, instance.seed
        assert (reached == best) if cost(planned).gap_reason is None else True, instance.seed
        assert all(tuple(sorted(end)) in legal for end, legal in zip(ends, instance.legal, strict=True)), instance.seed
        assert cost(planned).lower_bound <= (best[1] if reached[0] == best[0] else planned.moves), instance.seed


def _unevenness(placed: list[tuple[int, ...]] | tuple[tuple[int, ...], ...]) -> int:
    return sum(count**2 for count in Counter(chain.from_iterable(placed)).values())


@pytest.mark.parametrize(("racks", "new"), [(3, 9), (3, 27), (6, 6), (6, 18), (5, 5), (4, 3)])
def test_new_brokers_are_filled_to_the_level_without_one_exact_flow(racks: int, new: int) -> None:
    brokers = 2 * racks
    placed = spread(600, brokers, racks, 3, 1)
    snapshot = cluster(placed, {broker: f"r{broker % racks}" for broker in range(brokers + new)})
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    assert (cost(planned).gap_reason, planned.moves) == (None, cost(planned).lower_bound)
    assert cost(planned).after.replicas.most == cost(planned).replicas_bound
    assert judged(snapshot, planned) == set()


def test_several_replicas_of_a_partition_move_in_one_plan() -> None:
    snapshot = cluster([[0, 1, 2]] * 100, {broker: f"r{broker % 3}" for broker in range(12)})
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    assert (planned.moves, cost(planned).after.replicas) == (225, LoadRange(25, 25))


@pytest.mark.parametrize("fenced", [0, 4])
def test_what_a_fenced_broker_holds_stays_and_the_others_are_level(fenced: int) -> None:
    placed = spread(300, 6, 3, 3, 1)
    snapshot = cluster(placed, {broker: f"r{broker % 3}" for broker in range(12)}, fenced=[fenced])
    planned = plan(snapshot, request=ReassignmentRequest(balance=True))
    ends = [row.replicas for row in snapshot_after(snapshot, planned).partitions]
    held = Counter(chain.from_iterable(ends))
    assert [fenced in end for end in ends] == [fenced in row for row in placed]
    kept = held.pop(fenced)
    levels = {rack: [count for broker, count in held.items() if broker % 3 == rack] for rack in range(3)}
    assert all(max(level) - min(level) <= 1 for level in levels.values())
    assert sum(levels[fenced % 3]) == 300 - kept
    assert (cost(planned).gap_reason, planned.moves) == (None, cost(planned).lower_bound)
    assert judged(snapshot, planned) == set()
