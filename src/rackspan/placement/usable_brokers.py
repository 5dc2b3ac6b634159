"""The brokers that placers choose from. Apart from placer.py, which imports NumPy: a starting broker needs no NumPy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rackspan.errors import InvalidReplicationFactor
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


def refuse_factor(brokers: Sequence[UsableBroker], replication_factor: int) -> None:
    """Refuse a factor that no placer can reach, before any is called (KIP-660, Proposed Changes).

    Fenced brokers count as registered. Errors: InvalidReplicationFactor, in the words of Kafka's striped placer, where
    Kafka still has these checks.
    """
    if replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"Invalid replication factor {replication_factor}: the replication factor must be positive."
        )
    if all(broker.fenced for broker in brokers):
        raise InvalidReplicationFactor("All brokers are currently fenced.")
    if replication_factor > len(brokers):
        raise InvalidReplicationFactor(
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered."
        )
