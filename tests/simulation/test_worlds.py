"""In every world whose assumptions hold, no seed breaks a rule (judges/rules.py, judges/survival.py)."""

from itertools import product

import pytest

from tests.simulation.counts import SEEDS, SOAK_SEEDS, chunks
from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import DEMANDED, KINDS
from tests.simulation.measure import soak
from tests.simulation.replay import explained, run


def judged(world: str, seeds: range) -> int:
    """How many events there were. Fails with the line that replays what broke, and the faults that suffice for it."""
    events = 0
    for seed in seeds:
        outcome = run(KINDS[world], seed)
        if isinstance(outcome, Violation):
            pytest.fail(str(explained(KINDS[world], seed, outcome)), pytrace=False)
        events += outcome.events
    return events


@pytest.mark.parametrize(("world", "seeds"), list(product(DEMANDED, chunks(SEEDS))), ids=str)
def test_no_rule_breaks(world: str, seeds: range) -> None:
    assert judged(world, seeds) >= 1_000 * len(seeds)


@pytest.mark.soak
def test_no_rule_breaks_in_thousands_of_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    """Seeds, events and their rate are told, for they are what this is worth."""
    lines = []
    for line in soak(SOAK_SEEDS):
        lines.append(line)
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)
    assert "0 violations" in lines[-1]
