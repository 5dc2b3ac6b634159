"""The leak test on real Kafka: mode pre leaks, mode verified does not. Four minutes for thirty trials."""

import pytest

from tests.compat.gateway_leak import run_trials

pytestmark = [pytest.mark.kafka, pytest.mark.soak]


def test_mode_pre_acknowledges_records_that_one_rack_holds() -> None:
    assert sum(run_trials("pre", 3).leaked) > 0


def test_mode_verified_acknowledges_none_and_loses_repeats_and_reorders_none() -> None:
    outcome = run_trials("verified", 30)
    assert outcome.leaked == [0] * 30
    assert (outcome.failed, outcome.lost, outcome.duplicated, outcome.out_of_order) == (0, 0, 0, 0)
    assert outcome.acknowledged > 10_000
