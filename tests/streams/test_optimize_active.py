from rackspan.streams.balance_subtopology import balance_subtopology
from rackspan.streams.config import Strategy
from rackspan.streams.min_traffic import min_traffic
from rackspan.streams.optimize_active import FLOATING_OPTIMIZERS, OPTIMIZERS


def test_every_strategy_but_none_has_its_optimizer() -> None:
    """Facts 258 and 259 of Kafka's RackAwareGraphConstructorFactoryTest."""
    assert {Strategy.MIN_TRAFFIC: min_traffic, Strategy.BALANCE_SUBTOPOLOGY: balance_subtopology} == OPTIMIZERS
    assert FLOATING_OPTIMIZERS.keys() == OPTIMIZERS.keys()
