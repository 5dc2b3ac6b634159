"""A broker's counters, and the metrics of min.insync.racks (names and meaning: acks/metrics.py)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rackspan.model.ids import RackId

TrafficKey = tuple[str, RackId | None, RackId | None]
"""Topic, the leader's rack, the follower's rack."""


@dataclass(slots=True)
class Counters:
    """Since the broker started. `replicated_bytes` counts what followers fetched, within a rack too."""

    rack_check_failures: int = 0
    """Produces refused for want of racks, those that timed out waiting for racks included (RackCheckFailureRate)."""
    isr_shrinks: int = 0
    isr_expands: int = 0
    truncations: int = 0
    replicated_bytes: Counter[TrafficKey] = field(default_factory=Counter)


def partition_metrics(isr_racks: int, required_racks: int) -> dict[str, int]:
    """The metrics of one partition: the racks that its ISR spans, and the value of min.insync.racks in effect."""
    return {
        "rackspan_partition_under_min_rack_isr": int(isr_racks < required_racks),
        "rackspan_partition_at_min_rack_isr": int(isr_racks == required_racks),
        "rackspan_partition_isr_racks": isr_racks,
    }


def broker_metrics(partitions: Iterable[dict[str, int]], counters: Counters) -> dict[str, int]:
    """The metrics of a broker, from those of each partition that it leads."""
    each = list(partitions)
    return {
        "rackspan_under_min_rack_isr_partitions": sum(
            values["rackspan_partition_under_min_rack_isr"] for values in each
        ),
        "rackspan_at_min_rack_isr_partitions": sum(values["rackspan_partition_at_min_rack_isr"] for values in each),
        "rackspan_rack_check_failures_total": counters.rack_check_failures,
    }
