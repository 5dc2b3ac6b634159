"""Every order of events of a small world, to a depth: no seed is lucky here."""

import pytest

from rackspan.cluster.core.ids import CLIENT
from tests.simulation.judges.evidence import Violation
from tests.simulation.mistakes.planted import PLANTED
from tests.simulation.runs.exhaustive import Explored, Store, explore, start


@pytest.mark.slow
@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_four_events_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks), 4).states > 1_000


@pytest.mark.slow
@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_seven_events_without_a_fault_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks, faults=0), 7).states > 1_500


def test_orders_that_lead_to_the_same_state_are_one_state() -> None:
    """The leader's two followers each take a response: either may be first."""
    small, store = start("abc", faults=0), Store()
    small.take(("deliver", CLIENT, 1))
    kept = store.keep(small)

    def after(*nodes: int) -> bytes:
        copy = store.restored(kept)
        for node in nodes:
            copy.take(("deliver", 1, node))
        return store.keep(copy)

    assert after(2, 3) == after(3, 2)
    assert after(2) != after(3)


@pytest.mark.soak
@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_seven_events_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks), 7).states > 40_000


@pytest.mark.soak
@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_no_order_of_eleven_events_without_a_fault_breaks_a_rule(racks: str) -> None:
    assert explore(start(racks, faults=0), 11).states > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("racks", ["abb", "abc"])
def test_the_proposal_as_written_leaks_within_six_events_and_no_fault(racks: str) -> None:
    """A record waits, its followers lag, the ISR shrinks under it, and one rack acknowledges."""
    found = Explored()
    with pytest.raises(Violation, match="held in sync by 1 racks of 2 asked for"):
        explore(start(racks, PLANTED["the proposal as written"].build, faults=0), 6, found)
    assert [verb for verb, _, _ in found.path].count("tick") == 1
