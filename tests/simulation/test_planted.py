"""Every planted mistake is caught, within five times the mean number of seeds it took; by the rule it breaks."""

import pytest

from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import KINDS
from tests.simulation.mistakes.planted import PLANTED
from tests.simulation.runs.replay import run

RARE = 40
"""Above this mean a mistake is looked for in a soak only."""

SOON = [name for name, planted in PLANTED.items() if planted.mean <= RARE]
LATE = [name for name, planted in PLANTED.items() if planted.mean > RARE]


def found(name: str) -> tuple[int, Violation]:
    planted = PLANTED[name]
    for seed in range(planted.seeds):
        outcome = run(KINDS[planted.world], seed, planted.build)
        if isinstance(outcome, Violation):
            return seed, outcome
    pytest.fail(f"{name}: not found in {planted.seeds} seeds of world {planted.world}")


def caught(name: str) -> None:
    """And the same seed of the code as it is breaks nothing: what was found is the mistake."""
    seed, violation = found(name)
    assert violation.rule in PLANTED[name].rules
    assert not isinstance(run(KINDS[PLANTED[name].world], seed), Violation)


@pytest.mark.slow
@pytest.mark.parametrize("name", SOON)
def test_a_mistake_is_caught(name: str) -> None:
    caught(name)


@pytest.mark.soak
@pytest.mark.parametrize("name", LATE)
def test_a_mistake_that_needs_many_seeds_is_caught(name: str) -> None:
    caught(name)
