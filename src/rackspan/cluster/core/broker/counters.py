"""What a broker counts."""

from collections import Counter
from dataclasses import dataclass, field

from rackspan.model.ids import RackId

TrafficKey = tuple[str, RackId | None, RackId | None]
"""Topic, the rack bytes left, the rack they came to."""


@dataclass(slots=True)
class Counters:
    """Since the broker started. `replicated_bytes` counts what followers took, within a rack too."""

    rack_check_failures: int = 0
    """Produces refused for want of racks, those that timed out waiting for racks included (RackCheckFailureRate)."""
    isr_shrinks: int = 0
    isr_expands: int = 0
    truncations: int = 0
    replicated_bytes: Counter[TrafficKey] = field(default_factory=Counter)
