"""An assignment that does not cost what its flow proves is refused: none, dearer or cheaper than it."""

import numpy as np
import pytest

from rackspan.errors import UnprovenResult
from rackspan.flow import CertifiedFlow, network, solve
from rackspan.streams.active.optimum import proven
from rackspan.streams.problem import Int32s
from tests.streams.owned import owned

TASKS = owned(owner=[0, 1], traffic=[[0, 4], [0, 4]], client_rack=[0, 1], non_overlap=1)
"""Both tasks read in rack 0. As they are they cost 4; both on client 0 they would cost 1, swapped 6."""


def clients(*numbers: int) -> Int32s:
    return np.array(numbers, dtype=np.int32)


def nothing_to_save() -> CertifiedFlow:
    """The proof that leaving every task where it is saves nothing: a flow of cost 0."""
    return solve(network(tail=[0], head=[1], capacity=[1], unit_cost=[0], supply=[0, 0]))


def test_an_assignment_that_costs_what_is_proven_is_the_optimum() -> None:
    optimum = proven(TASKS, clients(0, 1), nothing_to_save())
    assert (optimum.cost, optimum.lower_bound, optimum.moved) == (4, 4, 0)


@pytest.mark.parametrize("client", [(0, 0), (1, 0), (1, 1)])
def test_an_assignment_of_any_other_cost_is_refused(client: tuple[int, int]) -> None:
    with pytest.raises(
        UnprovenResult, match=r"^an assignment of cost \d+ does not match its proof; report this as a bug$"
    ):
        proven(TASKS, clients(*client), nothing_to_save())


def test_a_needless_move_of_equal_cost_is_refused() -> None:
    alike = owned(owner=[0], traffic=[[3, 3]], client_rack=[0, 1])
    with pytest.raises(UnprovenResult, match="does not match its proof"):
        proven(alike, clients(1), nothing_to_save())
