"""Broker ids for tests of the core."""

from rackspan.model.ids import BrokerId


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(one) for one in brokers)
