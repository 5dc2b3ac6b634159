"""In every world whose assumptions hold, no seed breaks a rule (judges/rules.py, judges/survival.py)."""

import os
from itertools import product
from typing import Final

import pytest

from tests.depth import at_depth
from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import DEMANDED, KINDS
from tests.simulation.measure import soak
from tests.simulation.runs.replay import explained, run

SEEDS: Final = int(os.environ.get("RACKSPAN_SIM_SEEDS", at_depth(check=1, test=6)))
"""Of each kind of world: one in make check; make test sets more."""

SOAK_SEEDS: Final = 4_200
"""Of all worlds together, in one run, with make soak."""

CHUNK: Final = 20
"""Seeds in one test, so that several processes share the work."""


def chunks(seeds: int) -> list[range]:
    return [range(first, min(first + CHUNK, seeds)) for first in range(0, seeds, CHUNK)]


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
    """Prints seeds, events and their rate, for they measure what the test covers."""
    lines = []
    for line in soak(SOAK_SEEDS):
        lines.append(line)
        with capsys.disabled():
            print(f"\n{line}", end="", flush=True)
    assert "0 violations" in lines[-1]
