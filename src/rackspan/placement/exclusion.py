"""Excluded brokers: retiring or in maintenance, they are offered to no placer.

Where they are kept: `[brokers] excluded` in rackspan.toml, or --exclude-brokers (docs/decisions/0016).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rackspan.errors import UsageError
from rackspan.model.racks import even_spread
from rackspan.placement.usable_brokers import UsableBroker
from rackspan.text import count_noun


@dataclass(frozen=True, slots=True)
class Exclusion:
    """The brokers that get nothing. `allow_fewer_racks`: even where replicas are then spread worse over racks."""

    brokers: frozenset[int] = frozenset()
    allow_fewer_racks: bool = False

    def __post_init__(self) -> None:
        if self.allow_fewer_racks and not self.brokers:
            raise UsageError(
                "--allow-fewer-racks: no broker is excluded; leave it out, or name some with --exclude-brokers"
            )

    def offered(self, brokers: Sequence[UsableBroker]) -> tuple[UsableBroker, ...]:
        """The brokers that are not excluded. Errors: UsageError where none is left."""
        left = tuple(broker for broker in brokers if broker.id not in self.brokers)
        if brokers and not left:
            raise UsageError("every broker is excluded, and one at least has to hold the replicas; exclude fewer")
        return left

    def refuse_cost(self, brokers: Sequence[UsableBroker], replication_factor: int, by_rack: bool) -> None:
        """Refuse to leave too few of `brokers`, or to spread a partition worse over racks than all of them could.

        Errors: UsageError, which says what it would cost.
        """
        left = self.offered(brokers)
        if len(left) == len(brokers) or not 1 <= replication_factor <= len(brokers):
            return
        ids = ",".join(str(broker.id) for broker in brokers if broker.id in self.brokers)
        if len(left) < replication_factor:
            raise UsageError(
                f"replication factor {replication_factor}: {count_noun(len(left), 'broker')} left without the excluded {ids}; exclude fewer, or lower it"
            )
        before, after = (_spread(some, replication_factor) for some in (brokers, left))
        if by_rack and before != after and not self.allow_fewer_racks:
            raise UsageError(
                f"with brokers {ids} excluded, the replicas of a partition would be {after} over racks, not {before}; "
                "exclude fewer, add brokers to those racks, or accept it with --allow-fewer-racks"
            )


def _spread(brokers: Sequence[UsableBroker], replication_factor: int) -> str:
    """The replicas of a partition on each rack that holds any, fullest first: `2+1`."""
    sizes = list(Counter(broker.rack for broker in brokers).values())
    return "+".join(str(count) for count in even_spread(sizes, replication_factor) if count)
