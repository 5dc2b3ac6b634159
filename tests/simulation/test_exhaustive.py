"""Every order of events of a small world, to a depth: no seed is lucky here."""

import pytest

from tests.simulation.exhaustive import Explored, explore, start
from tests.simulation.judges.evidence import Violation
from tests.simulation.planted import PLANTED


@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_three_events_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks), 3).states > 300


@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_five_events_without_a_fault_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks, faults=0), 5).states > 100


@pytest.mark.soak
@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_five_events_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks), 5).states > 1_000


@pytest.mark.soak
@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_eight_events_without_a_fault_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks, faults=0), 8).states > 1_000


@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_the_proposal_as_written_leaks_within_six_events_and_no_fault(racks: str) -> None:
    """A record waits, its followers lag, the ISR shrinks under it, and one rack acknowledges."""
    found = Explored()
    with pytest.raises(Violation, match="held in sync by 1 racks of 2 asked for"):
        explore(start(racks, PLANTED["the proposal as written"].build, faults=0), 6, found)
    assert [verb for verb, _, _ in found.path].count("tick") == 1
