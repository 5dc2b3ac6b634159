"""Whether to place by rack: KIP-36's rule for brokers of which only some have a rack."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from rackspan.errors import PartialRacks
from rackspan.placement.usable_brokers import UsableBroker
from rackspan.text import noun_and_ids

RACK_AWARE_CONFIG: Final = "replica.placer.rack.aware"
"""The config of the mode, for placers that have one."""


class RackAwareMode(StrEnum):
    """Kafka's RackAwareMode. Kafka's tools set it with `--disable-rack-aware` only."""

    ENFORCED = "enforced"
    """All brokers have a rack, or none has; a mixture is an error. The tools' default."""
    SAFE = "safe"
    """A mixture counts as no racks, so that topics can be created during a rolling upgrade."""
    DISABLED = "disabled"
    """No racks, even where brokers have them."""


def aware(brokers: Sequence[UsableBroker], mode: RackAwareMode) -> bool:
    """Whether to place `brokers` by rack. Only these brokers count, not all of the cluster.

    Errors: PartialRacks for a mixture under `enforced`, in the words of Kafka's tools, with the brokers.
    """
    rackless = [broker.id for broker in brokers if broker.rack is None]
    if mode is RackAwareMode.DISABLED or len(rackless) == len(brokers):
        return False
    if rackless and mode is RackAwareMode.ENFORCED:
        raise PartialRacks(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without "
            f"rack information. No rack: {noun_and_ids('broker', rackless)}"
        )
    return not rackless
