"""Whether racks count at all: KIP-36's rule for brokers of which only some say where they stand."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from rackspan.errors import PartialRacks
from rackspan.placement.usable_brokers import UsableBroker

RACK_AWARE_CONFIG: Final = "replica.placer.rack.aware"
"""The mode, for the placers that ask for one."""


class RackAwareMode(StrEnum):
    """Kafka's RackAwareMode, which its tools call by `--disable-rack-aware` alone."""

    ENFORCED = "enforced"
    """All brokers have a rack, or none has; a mixture is an error. The tools' default."""
    SAFE = "safe"
    """A mixture counts as no racks, so that topics can be created during a rolling upgrade."""
    DISABLED = "disabled"
    """No racks, whatever brokers say."""


def aware(brokers: Sequence[UsableBroker], mode: RackAwareMode) -> bool:
    """Whether to place `brokers` by rack. The rule looks at the chosen brokers only, not at the whole cluster.

    Errors: PartialRacks for a mixture under `enforced`, in the words of Kafka's tools.
    """
    racked = sum(broker.rack is not None for broker in brokers)
    if mode is RackAwareMode.DISABLED or racked == 0:
        return False
    if racked < len(brokers) and mode is RackAwareMode.ENFORCED:
        raise PartialRacks(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without rack information."
        )
    return racked == len(brokers)
