"""What the guarantees need: each assumption taken away breaks one (docs/min-insync-racks.md has the figures)."""

from collections.abc import Mapping
from typing import Final

import pytest

from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import DEMANDED, KINDS, SHOWN_TO_FAIL
from tests.simulation.runs.replay import run
from tests.simulation.world import Outcome

LOOKED_FROM: Final[Mapping[str, int]] = {
    "lossy-undetected": 10,
    "lossy-kafka-elr-fallback": 10,
    "unclean": 55,
    "transactions-version-1-late": 0,
}
"""A seed shortly before the first that fails. The other world, whose failures are rarer, is a soak's business."""


@pytest.mark.slow
@pytest.mark.parametrize("world", LOOKED_FROM)
def test_an_assumption_taken_away_breaks_its_guarantee(world: str) -> None:
    kind, first = KINDS[world], LOOKED_FROM[world]
    found = next((one for seed in range(first, first + 150) if isinstance(one := run(kind, seed), Violation)), None)
    assert found is not None
    assert found.rule in kind.fails


@pytest.mark.soak
@pytest.mark.parametrize("world", SHOWN_TO_FAIL)
def test_it_breaks_now_and_then_and_nothing_else_does(world: str) -> None:
    broken = [one for seed in range(600) if isinstance(one := run(KINDS[world], seed), Violation)]
    # Late markers are a tenth of all, far more than an assumption about disks fails.
    assert 3 <= len(broken) <= (240 if KINDS[world].transactions else 120)
    assert {one.rule for one in broken} <= KINDS[world].fails


def availability(world: str, seeds: int) -> float:
    """The share of rack losses, checked at every fault, after which a replica that may lead was left."""
    outcomes = [run(DEMANDED[world], seed) for seed in range(seeds)]
    held = [one for one in outcomes if isinstance(one, Outcome)]
    return sum(one.available for one in held) / sum(one.checked for one in held)


@pytest.mark.slow
def test_only_an_elr_that_counts_racks_always_leaves_somebody_to_lead() -> None:
    assert availability("no-elr", 12) < 1
    assert availability("kafka-elr", 12) < 1
    assert availability("clean", 12) == 1
