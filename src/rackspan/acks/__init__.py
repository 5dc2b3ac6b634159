"""min.insync.racks: when a produce with acks=all is acknowledged, and the min.insync.replicas that guarantees as much.

Begin with min_insync_racks.py (the rule inside brokers), verification.py (the same rule for a gateway or a producer, proven by
replicas' own logs), then harden.py (the same guarantee from min.insync.replicas only), watch.py (metrics from a cluster's
metadata) and produce_errors.py (errors of refused produces).
Pure: it never reads a cluster or alters a config.
Depends on: audit, kafka_bytes, model.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.acks.harden import HardenAdvice, HardenOutcome, RackLossCost, values_to_set
    from rackspan.acks.min_insync_racks import ProduceVerdict, RackBits, Thresholds, rack_bits
    from rackspan.acks.produce_errors import produce_error
    from rackspan.acks.watch import Watch, watch_readings
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "harden": ("HardenAdvice", "HardenOutcome", "RackLossCost", "values_to_set"),
            "min_insync_racks": ("ProduceVerdict", "RackBits", "Thresholds", "rack_bits"),
            "produce_errors": ("produce_error",),
            "watch": ("Watch", "watch_readings"),
        },
    )

__all__ = [
    "HardenAdvice",
    "HardenOutcome",
    "ProduceVerdict",
    "RackBits",
    "RackLossCost",
    "Thresholds",
    "Watch",
    "produce_error",
    "rack_bits",
    "values_to_set",
    "watch_readings",
]
