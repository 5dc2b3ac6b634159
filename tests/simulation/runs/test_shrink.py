"""Shrinking ends with a list from which nothing can be taken."""

from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.faults.drawing import Fault, FaultKind, Target
from tests.simulation.runs.shrink import shrunk


def _fault(number: int) -> Fault:
    return Fault(number, 1, FaultKind.CRASH, Target.ANY, number)


@given(st.integers(0, 30), st.data())
def test_only_the_faults_that_matter_are_left(count: int, data: st.DataObject) -> None:
    faults = tuple(map(_fault, range(count)))
    needed = set(data.draw(st.lists(st.sampled_from(faults), max_size=4))) if faults else set()

    assert set(shrunk(faults, lambda tried: needed <= set(tried))) == needed
