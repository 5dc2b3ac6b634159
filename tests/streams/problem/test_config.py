from typing import Any

import pytest

from rackspan.errors import UsageError
from rackspan.streams.problem import (
    HIGH_AVAILABILITY_COSTS,
    STICKY_COSTS,
    AssignmentConfigs,
    Costs,
    Strategy,
    check_client_tags,
    strategy_named,
)


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("none", Strategy.NONE),
        ("NONE", Strategy.NONE),
        ("min_traffic", Strategy.MIN_TRAFFIC),
        ("min_cost", Strategy.MIN_TRAFFIC),
        ("MIN_COST", Strategy.MIN_TRAFFIC),
        ("balance_subtopology", Strategy.BALANCE_SUBTOPOLOGY),
        ("balanced_min_cost", Strategy.BALANCE_SUBTOPOLOGY),
        ("BALANCED_MIN_COST", Strategy.BALANCE_SUBTOPOLOGY),
    ],
)
def test_kafkas_names_and_the_proposals_are_the_same_strategies(name: str, strategy: Strategy) -> None:
    assert strategy_named(name) is strategy


def test_kafka_is_strict_about_case() -> None:
    with pytest.raises(UsageError):
        strategy_named("MIN_TRAFFIC")


def test_a_null_cost_is_the_assignors_own_and_a_given_one_is_that_of_all() -> None:
    configs = AssignmentConfigs(traffic_cost=7)
    assert configs.costs(HIGH_AVAILABILITY_COSTS) == Costs(7, 1)
    assert configs.costs(STICKY_COSTS) == Costs(7, 10)


def test_a_cost_of_zero_is_not_a_missing_one() -> None:
    assert AssignmentConfigs(traffic_cost=0, non_overlap_cost=0).costs(STICKY_COSTS) == Costs(0, 0)


@pytest.mark.parametrize(
    ("key", "name", "least", "most"),
    [
        ("traffic_cost", "rack.aware.assignment.traffic_cost", 0, 2**31 - 1),
        ("non_overlap_cost", "rack.aware.assignment.non_overlap_cost", 0, 2**31 - 1),
        ("num_standbys", "num.standby.replicas", 0, 2**31 - 1),
        ("max_warmup_replicas", "max.warmup.replicas", 1, 2**31 - 1),
        ("acceptable_recovery_lag", "acceptable.recovery.lag", 0, 2**63 - 1),
        ("probing_rebalance_interval_ms", "probing.rebalance.interval.ms", 60_000, 2**63 - 1),
    ],
)
def test_a_config_may_be_the_least_and_the_most_of_its_range_and_no_more(
    key: str, name: str, least: int, most: int
) -> None:
    for inside in (least, most):
        given: dict[str, Any] = {key: inside}
        assert getattr(AssignmentConfigs(**given), key) == inside
    for outside in (least - 1, most + 1):
        given = {key: outside}
        with pytest.raises(UsageError) as refused:
            AssignmentConfigs(**given)
        assert str(refused.value) == f"{name} is {outside}, outside {least} to {most}; fix it in the file"


def test_five_tags_of_20_and_30_characters_are_not_too_many_nor_too_long() -> None:
    keys = tuple(letter * 20 for letter in "abcde")
    assert AssignmentConfigs(rack_aware_assignment_tags=keys).rack_aware_assignment_tags == keys
    check_client_tags("client A", dict.fromkeys(keys, "v" * 30))


def test_a_tags_value_of_31_characters_is_too_long() -> None:
    with pytest.raises(UsageError) as refused:
        check_client_tags("client A", {"zone": "v" * 31})
    assert str(refused.value) == "client A: client.tag.zone is too long; a key has at most 20 characters, a value 30"
