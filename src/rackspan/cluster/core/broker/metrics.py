"""A broker's counters, and the metrics of min.insync.racks (names and meaning: acks/metrics.py)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rackspan.acks.metrics import leader_values
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


def broker_metrics(partitions: Iterable[dict[str, int]], counters: Counters) -> dict[str, int]:
    """The metrics of a broker, from those of each partition that it leads."""
    return {**leader_values(list(partitions)), "rackspan_rack_check_failures_total": counters.rack_check_failures}
