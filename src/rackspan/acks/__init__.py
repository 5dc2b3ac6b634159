"""Acknowledgements by racks: when acks=all may be answered, and how a Kafka without min.insync.racks is made to agree.

Begin with min_insync_racks.py (the rule, for brokers and gateways), then harden.py (the same strength from
min.insync.replicas alone) and watch.py (what metadata tells of it). Pure: it never reads an ISR or alters a config;
whoever does is told what to do.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import late_names

if TYPE_CHECKING:
    from rackspan.acks.harden import HardenAdvice, Outcome, RackLossCost, values_to_set
    from rackspan.acks.min_insync_racks import ProduceVerdict, RackBits, Thresholds, rack_bits
    from rackspan.acks.watch import Watch, watched
else:
    __getattr__ = late_names(
        __name__,
        {
            "harden": ("HardenAdvice", "Outcome", "RackLossCost", "values_to_set"),
            "min_insync_racks": ("ProduceVerdict", "RackBits", "Thresholds", "rack_bits"),
            "watch": ("Watch", "watched"),
        },
    )

__all__ = [
    "HardenAdvice",
    "Outcome",
    "ProduceVerdict",
    "RackBits",
    "RackLossCost",
    "Thresholds",
    "Watch",
    "rack_bits",
    "values_to_set",
    "watched",
]
