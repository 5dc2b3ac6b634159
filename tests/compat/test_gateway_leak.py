"""The leak test on real Kafka: mode pre leaks, modes verified and strict do not. Four minutes for thirty trials."""

import pytest

from tests.compat.gateway_leak import run_trials

pytestmark = [pytest.mark.kafka, pytest.mark.soak]


def test_mode_pre_acknowledges_records_that_one_rack_holds() -> None:
    assert sum(run_trials("pre", 3).leaked) > 0


@pytest.mark.parametrize(
    ("mode", "kill", "trials"),
    [("verified", False, 30), ("strict", False, 30), ("verified", True, 10), ("strict", True, 10)],
)
def test_an_acknowledgement_means_two_racks_and_no_record_is_lost_repeated_or_reordered(
    mode: str, kill: bool, trials: int
) -> None:
    outcome = run_trials(mode, trials, kill=kill)
    assert outcome.leaked == [0] * trials
    assert (outcome.failed, outcome.lost, outcome.duplicated, outcome.out_of_order) == (0, 0, 0, 0)
    assert outcome.acknowledged > 10_000
