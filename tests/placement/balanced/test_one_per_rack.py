"""Dealing racks when none holds a partition twice: every small case, and every claim of the proof."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from rackspan.placement.balanced.one_per_rack import distribute_racks
from rackspan.placement.kafka.java_random import JavaRandom


def cases(racks: int, replication_factor: int, partitions: int) -> Iterator[tuple[list[int], list[int]]]:
    """All (led, held) with led ≤ held ≤ P, sums P and P × RF."""
    for led in product(range(partitions + 1), repeat=racks):
        if sum(led) != partitions:
            continue
        for held in product(*(range(one, partitions + 1) for one in led)):
            if sum(held) == partitions * replication_factor:
                yield list(led), list(held)


@pytest.mark.parametrize(("racks", "most_partitions"), [(1, 4), (2, 4), (3, 4), (4, 3)])
def test_every_small_case_is_dealt_exactly_and_no_rack_meets_itself(racks: int, most_partitions: int) -> None:
    dealt = 0
    for replication_factor, partitions in product(range(1, racks + 1), range(1, most_partitions + 1)):
        for led, held in cases(racks, replication_factor, partitions):
            followers = distribute_racks(np.array(led), np.array(held), replication_factor, JavaRandom(dealt))
            leaders = np.repeat(np.arange(racks), led)
            together = np.sort(np.vstack([leaders[None, :], followers]), axis=0)
            assert (together[1:] != together[:-1]).all()
            assert np.bincount(together.reshape(-1), minlength=racks).tolist() == held
            dealt += 1
    assert dealt > 0
