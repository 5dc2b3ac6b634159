"""The worst loss and the least change that survives it, held against losing every rack and every broker in turn."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from rackspan.audit.policy import SURVIVE_CODES, Survive
from rackspan.audit.survival import Demand, reachable, value_for, worst_loss
from tests.audit.brute_force import least_forcing, worst_of
from tests.audit.test_remedies import some_placement

SIZES = ((1,), (3,), (1, 1), (3, 1), (2, 2), (1, 1, 1), (2, 1, 1), (2, 2, 2), (3, 2, 1), (1, 1, 1, 1))


@pytest.mark.parametrize("survive", [Survive.RACK, Survive.BROKER])
def test_the_worst_loss_is_the_worst_of_all_losses(survive: Survive) -> None:
    racks = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    replicas = [held for size in range(1, 6) for held in combinations(racks, size)]
    losses = [{one} for one in racks] if survive is Survive.BROKER else [{0, 1, 2}, {3, 4}, {5}]
    for min_isr, required in product((1, 2, 3), (1, 2, 3)):
        for held in replicas:
            codes = np.array([["abc".index(racks[one]) for one in held]], dtype=np.int32)
            found = worst_loss(
                codes,
                np.ones(codes.shape, dtype=np.bool_),
                np.array([SURVIVE_CODES.index(survive)]),
                np.array([min_isr]),
                np.array([required]),
            )
            state = "offline" if found.offline[0] else "refused" if found.refused[0] else None
            assert state == worst_of(losses, list(held), min_isr, required, racks)


def survives(counts: tuple[int, ...], value: int, wanted: Demand) -> bool:
    """Whether replicas so spread take acks=all after every loss, and the value forces the racks."""
    held = [rack for rack, count in enumerate(counts) for _ in range(count)]
    after = {
        Survive.RACK: [[one for one in held if one != rack] for rack in set(held)],
        Survive.BROKER: [held[:place] + held[place + 1 :] for place in range(len(held))],
        Survive.NONE: [held],
    }[wanted.survive]
    forced = not wanted.forced or wanted.min_insync_racks == 1
    least = 1 if forced else least_forcing([str(one) for one in held], wanted.min_insync_racks)
    k = wanted.min_insync_racks
    need = min(value, len(held))
    return value >= least and all(one and len(one) >= need and (k == 1 or len(set(one)) >= k) for one in after)


def spreads(sizes: tuple[int, ...], factor: int) -> list[tuple[int, ...]]:
    """Every way to put that many replicas into racks of these sizes as evenly as they allow."""
    found = [one for one in product(*(range(size + 1) for size in sizes)) if sum(one) == factor]
    return [
        one
        for one in found
        if not any(
            a >= b + 2 and b < size for a, _ in zip(one, sizes, strict=True) for b, size in zip(one, sizes, strict=True)
        )
    ]


def demands() -> list[Demand]:
    return [
        Demand(factor, value, required, forced, survive)
        for factor, value, required, forced, survive in product(
            (1, 2, 3, 4), (1, 2, 3), (1, 2, 3), (True, False), Survive
        )
    ]


@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_reachable_survives_and_what_is_not_has_no_placement(sizes: tuple[int, ...]) -> None:
    ends = Counter[bool]()
    for wanted in demands():
        target = reachable(sizes, wanted)
        ends[target is not None] += 1
        possible = some_placement(sizes, wanted.min_insync_racks, wanted.forced, wanted.survive.value)
        assert (target is not None) == possible
        if target is not None:
            placed = spreads(sizes, target.replication_factor)
            assert placed
            assert all(survives(one, target.min_insync_replicas, wanted) for one in placed)
    assert ends[True]


@pytest.mark.parametrize("sizes", SIZES)
def test_no_smaller_change_of_the_replication_factor_survives(sizes: tuple[int, ...]) -> None:
    for wanted in demands():
        target, value = reachable(sizes, wanted), wanted.min_insync_replicas
        if (
            target is None
            or target.min_insync_replicas < value
            or target.replication_factor < wanted.replication_factor
        ):
            continue
        for factor in range(wanted.replication_factor, target.replication_factor):
            # With the same minimum or a higher one, which is what the remedy would set afterwards.
            kept = [one for one in spreads(sizes, factor) if any(survives(one, m, wanted) for m in range(value, 13))]
            assert not kept


def test_the_value_for_the_present_factor_is_lowered_only_as_far_as_needed() -> None:
    wanted = Demand(3, 3, 1, forced=True, survive=Survive.RACK)
    assert value_for((2, 2, 2), wanted) == 2
    assert value_for((3,), wanted) is None
