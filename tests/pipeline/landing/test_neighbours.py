"""The snapshots before and after given ones, against loops over all of them."""

from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest

from rackspan.pipeline import create_warehouse
from rackspan.pipeline.landing.markers import Markers, StoredSnapshot, read_markers
from rackspan.pipeline.landing.neighbours import FEW, neighbours
from rackspan.pipeline.landing.store import store_all
from tests.depth import at_depth
from tests.pipeline.examples import NOON, small


@pytest.fixture(scope="module")
def markers(tmp_path_factory: pytest.TempPathFactory) -> Markers:
    """Eight snapshots a day of one cluster, three of another, over three days."""
    warehouse = create_warehouse(tmp_path_factory.mktemp("neighbours") / "warehouse")
    times_of = {
        "eu": [NOON + timedelta(hours=3 * at) for at in range(22)],
        "us": [NOON + timedelta(hours=8 * at) for at in range(8)],
    }
    store_all([small(cluster, at) for cluster, times in times_of.items() for at in times], warehouse)
    return read_markers(warehouse)


def beside(every: list[StoredSnapshot], given: set[str]) -> tuple[set[str], set[str]]:
    """The ids of those before and of those after the given ones, which are not given themselves."""
    pairs = [(one, next_one) for one, next_one in pairwise(every) if one.cluster_id == next_one.cluster_id]
    before = {one.snapshot_id for one, after in pairs if after.snapshot_id in given}
    after = {after.snapshot_id for one, after in pairs if one.snapshot_id in given}
    return before - given, after - given


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_depth(test=12, soak=300)))
def test_neighbours_are_those_of_plain_loops(markers: Markers, seed: int) -> None:
    rng = Random(seed)
    every = sorted(markers.of_days(markers.count_by_day()), key=lambda one: (one.cluster_id, one.taken_at))
    given = rng.sample(every, rng.choice((1, FEW, FEW + 3, 12)))
    found = neighbours(markers, given)
    assert (
        {one.snapshot_id for one in found.previous},
        {one.snapshot_id for one in found.following},
    ) == beside(every, {one.snapshot_id for one in given})
