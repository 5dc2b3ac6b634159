from collections import Counter
from random import Random

import numpy as np
import pytest

from rackspan.reassign.optimizer.bounds import needs
from rackspan.reassign.rack_shares import rack_shares
from tests.reassign.brute_force import fewest_moves, spread_is_even


@pytest.mark.parametrize("seed", range(300))
def test_no_replica_set_needs_fewer_additions_whatever_the_factor(seed: int) -> None:
    rng = Random(seed)
    racks = {broker: rng.randrange(rng.randint(1, 4)) for broker in range(rng.randint(1, 7))}
    codes = sorted(set(racks.values()))
    held = rng.sample(sorted(racks), rng.randint(0, min(5, len(racks))))
    factor = rng.randint(1, min(5, len(racks)))
    matrix = np.full((1, 6), -1, dtype=np.int32)
    matrix[0, : len(held)] = [codes.index(racks[broker]) for broker in held]
    shares = rack_shares(np.array([list(racks.values()).count(code) for code in codes]), factor)
    needed = needs(matrix, np.zeros(1, dtype=np.int64), np.array([factor]), shares)
    named = {broker: f"r{code}" for broker, code in racks.items()}
    assert int(needed.additions[0]) == fewest_moves(held, named, factor)
    assert int(needed.removals[0]) == len(held) + int(needed.additions[0]) - factor


def test_two_two_and_none_has_no_duplicate_too_many_and_still_needs_a_move() -> None:
    shares = rack_shares(np.array([4, 4, 4]), 4)
    needed = needs(np.array([[0, 0, 1, 1]], dtype=np.int32), np.zeros(1, dtype=np.int64), np.array([4]), shares)
    assert (needed.additions.tolist(), needed.removals.tolist()) == ([1], [1])


@pytest.mark.parametrize("factor", range(1, 9))
def test_limits_allow_exactly_the_even_spreads(factor: int) -> None:
    sizes = [1, 2, 5]
    shares = rack_shares(np.array(sizes), factor)
    named = Counter({f"r{rack}": size for rack, size in enumerate(sizes)})
    for first in range(2):
        for second in range(3):
            third = factor - first - second
            if not 0 <= third <= 5:
                continue
            within = all(
                shares.least[factor, rack] <= count <= shares.most[factor, rack]
                for rack, count in enumerate((first, second, third))
            )
            assert within == spread_is_even(["r0"] * first + ["r1"] * second + ["r2"] * third, named)
