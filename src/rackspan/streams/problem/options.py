"""Options beyond Kafka's behaviour, by name. Each is off by default."""

from dataclasses import dataclass
from enum import StrEnum

from rackspan.errors import UsageError


class Beyond(StrEnum):
    """An option beyond the behaviour of released Kafka."""

    RACK_SPREAD_STANDBYS = "rack-spread-standbys"
    """Standbys in other racks than their active task and each other, without tags (KIP-925, 4.C.2 and 4.C.3)."""
    JOINT_STANDBYS = "joint-standbys"
    """All standbys optimised at once, at a cost never above that of Kafka's exchanges between pairs of clients."""
    FLOATING_QUOTAS = "floating-quotas"
    """The remainder of an uneven division of tasks goes where it costs least; the total cost is never higher."""
    PREVIOUS_OVERLAP = "previous-overlap"
    """An active task that leaves the client where it ran before the rebalance costs the overlap (KIP-925, end of 4.B), not one
    that leaves the client where the assignor has just put it. A task that ran nowhere keeps Kafka's rule."""
    PARTITION_WEIGHTS = "partition-weights"
    """A partition counts by its weight (bytes, records) instead of as 1."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that are on. None is on for Kafka's behaviour."""

    beyond: frozenset[Beyond] = frozenset()

    def __contains__(self, option: Beyond) -> bool:
        return option in self.beyond


KAFKA = Options()


def options_named(*names: str) -> Options:
    """Options by name. Errors: UsageError."""
    known = {option.value for option in Beyond}
    for name in names:
        if name not in known:
            raise UsageError(f"option {name!r} is unknown; choose among {', '.join(sorted(known))}")
    return Options(frozenset(Beyond(name) for name in names))
