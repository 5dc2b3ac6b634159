"""Water-filling, held against serving one unit at a time."""

import heapq

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.placement.balanced.water_fill import Vessels, water_fill

WEIGHTS = (0.5, 1.0, 1.0, 2.0)


@st.composite
def vessels(draw: st.DrawFn) -> Vessels:
    count = draw(st.integers(1, 8))
    least = [draw(st.integers(0, 3)) for _ in range(count)]
    return Vessels(
        group=np.array([draw(st.integers(0, 2)) for _ in range(count)]),
        held=np.array([float(draw(st.integers(0, 20))) for _ in range(count)]),
        weight=np.array([draw(st.sampled_from(WEIGHTS)) for _ in range(count)]),
        least=np.array(least),
        most=np.array([one + draw(st.integers(0, 9)) for one in least]),
        tie_rank=np.array(draw(st.permutations(range(count)))),
    )


def one_at_a_time(given_vessels: Vessels, group: int, total: int) -> dict[int, int]:
    """Each unit goes to the vessel that would stand lowest with it: optimal, since every vessel's cost is convex."""
    members = [int(one) for one in np.flatnonzero(given_vessels.group == group)]
    units = {one: int(given_vessels.least[one]) for one in members}
    heap: list[tuple[float, int, int]] = []

    def offer(one: int) -> None:
        if units[one] < given_vessels.most[one]:
            level = (given_vessels.held[one] + units[one] + 1) / given_vessels.weight[one]
            heapq.heappush(heap, (float(level), int(given_vessels.tie_rank[one]), one))

    for one in members:
        offer(one)
    for _ in range(total - sum(units.values())):
        _, _, one = heapq.heappop(heap)
        units[one] += 1
        offer(one)
    return units


@given(vessels(), st.data())
def test_every_group_is_filled_as_if_one_unit_at_a_time(given_vessels: Vessels, data: st.DataObject) -> None:
    totals = [
        data.draw(
            st.integers(
                int(given_vessels.least[given_vessels.group == group].sum()),
                int(given_vessels.most[given_vessels.group == group].sum()),
            )
        )
        for group in range(3)
    ]
    units = water_fill(given_vessels, np.array(totals))
    for group, total in enumerate(totals):
        expected = one_at_a_time(given_vessels, group, total)
        assert {one: int(units[one]) for one in expected} == expected
