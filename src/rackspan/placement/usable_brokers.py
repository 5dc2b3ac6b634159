"""The brokers that placers choose from. Apart from placer.py, which imports NumPy: a starting broker needs no NumPy."""

from collections.abc import Iterable
from dataclasses import dataclass

from rackspan.model import Broker, BrokerId, RackId


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker where a replica can be placed. A fenced one may hold replicas but cannot lead now."""

    id: BrokerId
    rack: RackId | None
    fenced: bool


def usable(brokers: Iterable[Broker]) -> tuple[UsableBroker, ...]:
    """The brokers of a snapshot, in the form that placers take."""
    return tuple(UsableBroker(broker.id, broker.rack, broker.fenced) for broker in brokers)
