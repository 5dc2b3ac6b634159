"""What rackspan can do beyond Kafka, each by its name and off unless asked for."""

from dataclasses import dataclass
from enum import StrEnum

from rackspan.errors import UsageError


class Beyond(StrEnum):
    """A step beyond Kafka's shipped behaviour."""

    RACK_SPREAD_STANDBYS = "rack-spread-standbys"
    """Standbys in other racks than their active task and each other, without tags (the text's 4.C.2 and 4.C.3)."""
    JOINT_STANDBYS = "joint-standbys"
    """All standbys solved at once, never dearer than Kafka's pairs."""
    FLOATING_QUOTAS = "floating-quotas"
    """The odd tasks of an uneven division go where they are cheapest, never dearer."""
    PARTITION_WEIGHTS = "partition-weights"
    """A partition counts its weight (bytes, records) instead of 1."""


@dataclass(frozen=True, slots=True)
class Options:
    """Which steps are on. Kafka's behaviour is none of them."""

    beyond: frozenset[Beyond] = frozenset()

    def __contains__(self, step: Beyond) -> bool:
        return step in self.beyond


KAFKA = Options()


def options_named(*names: str) -> Options:
    """Options by name. Errors: UsageError."""
    known = {step.value for step in Beyond}
    for name in names:
        if name not in known:
            raise UsageError(f"option {name!r} is unknown; choose among {', '.join(sorted(known))}")
    return Options(frozenset(Beyond(name) for name in names))
