"""The leak test on real Kafka: mode pre leaks, modes verified and strict do not. Four minutes for thirty trials."""

import pytest

from tests.compat.gateway_leak import run_trials
from tests.compat.gateway_leak_lag import late_metadata, slow_follower

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


@pytest.mark.parametrize("mode", ["verified", "strict"])
def test_a_follower_that_never_catches_up_leaks_nothing(mode: str) -> None:
    outcome = slow_follower(mode, 30)
    assert sum(outcome.leaked) == 0
    # The trial is one: what Kafka itself acknowledged, rack A alone held.
    assert outcome.direct_leaked > 0
    assert outcome.acknowledged > 0


@pytest.mark.parametrize("who", ["leader", "all"])
@pytest.mark.parametrize("seconds", [0.3, 1.0, 3.0, 6.0])
def test_late_metadata_leaks_nothing(seconds: float, who: str) -> None:
    outcome = late_metadata("verified", 10, seconds, who)
    assert sum(outcome.leaked) == 0
    assert outcome.acknowledged > 0
