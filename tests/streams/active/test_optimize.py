from rackspan.streams.active.balance_subtopology import balance_subtopology
from rackspan.streams.active.min_traffic import min_traffic
from rackspan.streams.active.optimize import OPTIMIZERS, QUOTA_OPTIMIZERS
from rackspan.streams.problem import Strategy


def test_every_strategy_but_none_has_its_optimizer() -> None:
    """Facts 258 and 259 of Kafka's RackAwareGraphConstructorFactoryTest."""
    assert {Strategy.MIN_TRAFFIC: min_traffic, Strategy.BALANCE_SUBTOPOLOGY: balance_subtopology} == OPTIMIZERS
    assert QUOTA_OPTIMIZERS.keys() == OPTIMIZERS.keys()
