"""The worst loss and the least change that survives it, held against losing every rack and every broker in turn."""

from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest

from rackspan.audit.policy import SURVIVE_CODES, Survive
from rackspan.audit.survival import Demand, Reachable, reachable, value_for, worst_loss
from tests.audit.brute_force import least_forcing, worst_of

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


def surviving_values(sizes: tuple[int, ...], wanted: Demand) -> dict[int, list[int]]:
    """The values of min.insync.replicas, up to 12, that survive with each replication factor however it is spread."""
    return {
        factor: [value for value in range(1, 13) if all(survives(one, value, wanted) for one in spreads(sizes, factor))]
        for factor in range(1, sum(sizes) + 1)
    }


@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_reachable_is_the_least_change_of_all_that_survive(sizes: tuple[int, ...]) -> None:
    """No lower value where that can be, then no lower factor, then the nearest factor, then the nearest value."""
    ends = Counter[bool]()
    for required, forced, survive in product((1, 2, 3), (True, False), Survive):
        values = surviving_values(sizes, Demand(1, 1, required, forced, survive))
        for now, value_now in product((1, 2, 3, 4), (1, 2, 3)):
            ways = [
                (value < value_now, factor < now, abs(factor - now), abs(value - value_now), factor, value)
                for factor, good in values.items()
                for value in good
            ]
            found = reachable(sizes, Demand(now, value_now, required, forced, survive))
            assert found == (Reachable(*min(ways)[-2:]) if ways else None), (required, forced, survive, now, value_now)
            ends[found is not None] += 1
            kept = value_for(sizes, Demand(now, value_now, required, forced, survive))
            assert kept == min(values.get(now, ()), key=lambda one: abs(one - value_now), default=None)
    assert ends[True]
