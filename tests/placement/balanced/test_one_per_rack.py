"""Dealing racks when none holds a partition twice: every small case, and every claim of the proof."""

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pytest

from rackspan.placement.balanced import one_per_rack
from rackspan.placement.balanced.one_per_rack import distribute_racks
from rackspan.placement.balanced.placer import BalancedReplicaPlacer
from rackspan.placement.kafka.java_random import JavaRandom
from tests.placement.scenarios_of_load import cluster


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


@pytest.mark.parametrize("sizes", [(4, 4, 4), (9, 3, 1), (2, 2, 2, 2, 2)])
def test_followers_copied_run_by_run_are_those_sorted(monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]) -> None:
    def placed(elements_a_run: int) -> object:
        monkeypatch.setattr(one_per_rack, "ELEMENTS_A_RUN", elements_a_run)
        return BalancedReplicaPlacer(Random(5)).place(0, 500, 3, cluster(sizes)).replicas.tolist()

    assert placed(0) == placed(10**9)
