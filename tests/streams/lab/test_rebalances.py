from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.streams import assign, from_document, options_named
from rackspan.streams.lab.replay import after, settle
from tests.depth import examples
from tests.streams.assignors.test_high_availability import next_generation
from tests.streams.problems import problem

A_QUARTER = examples(0.25)
"""Each example is many rebalances."""
SEEDS = st.integers(0, 2**32)


@pytest.mark.slow
@A_QUARTER
@given(SEEDS, st.sampled_from(["none", "min_traffic", "balance_subtopology"]), st.integers(0, 2))
def test_a_group_settles_where_probing_rebalances_lead(seed: int, strategy: str, standbys: int) -> None:
    document = problem(Random(seed), strategy, standbys)
    document.pop("initial_active")
    settled = settle(from_document(document), "high-availability")
    rounds, assigned = 1, assign(document, "high-availability")
    while assigned["probing_rebalance"]:
        document = next_generation(document, assigned)
        rounds, assigned = rounds + 1, assign(document, "high-availability")
    ids = settled.problem.tasks.ids
    assert settled.converged
    assert settled.rounds in (rounds, rounds - 1)
    assert [sorted(ids[task] for task in held) for held in settled.output.assignment.active] == [
        sorted(assigned["assignment"][client.process_id]["active"]) for client in settled.problem.clients
    ]


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["optimize", "high-availability", "sticky"])
def test_a_settled_group_takes_no_further_round(assignor: str) -> None:
    for seed in range(20):
        first = settle(from_document(problem(Random(seed), standbys=1)), assignor)
        again = settle(after(first.problem, first.output.assignment), assignor)
        assert (again.rounds, again.converged) == (0, True)
        assert again.output.assignment == first.output.assignment


@pytest.mark.slow
@pytest.mark.parametrize("assignor", ["optimize", "high-availability", "sticky"])
def test_a_group_settles_also_where_the_overlap_is_with_its_previous_assignment(assignor: str) -> None:
    """KIP-925, 4.B.III, names convergence as the difficulty of that overlap."""
    for seed in range(20):
        first = settle(from_document(problem(Random(seed), standbys=1)), assignor, options_named("previous-overlap"))
        assert first.converged, seed


def test_a_group_without_standbys_has_no_cost_of_them_after_a_round() -> None:
    settled = settle(from_document(problem(Random(0), standbys=0)), "optimize")
    assert (settled.rounds, settled.output.standby_cost) == (1, None)


def test_rounds_have_an_end_even_where_the_group_has_none() -> None:
    slow = next(
        candidate
        for candidate in (from_document(problem(Random(seed), standbys=1)) for seed in range(100))
        if settle(candidate, "high-availability").rounds > 2
    )
    cut = settle(slow, "high-availability", most_rounds=1)
    assert (cut.rounds, cut.converged) == (1, False)
