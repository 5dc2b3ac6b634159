"""Replica placement: which brokers hold each partition of a new topic, or of the partitions a topic gains.

Read placer.py (the contract), then rack_alternated.py (KIP-36) and striped.py (KRaft's); registry.py finds a placer by
name, spec.py answers a placement spec. Never looks at a cluster, and never moves a replica that stands: that is
`reassign`. Pure: brokers and rng arrive as arguments.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import late_names

if TYPE_CHECKING:
    from rackspan.placement.brokers import UsableBroker, usable
    from rackspan.placement.java_random import RandomGenerator
    from rackspan.placement.placer import (
        CheckedPlacer,
        PartitionAssignment,
        ReplicaPlacer,
        TopicAssignment,
        checked,
    )
    from rackspan.placement.registry import configured_placer, placer_named
else:
    __getattr__ = late_names(
        __name__,
        {
            "java_random": ("RandomGenerator",),
            "placer": (
                "CheckedPlacer",
                "PartitionAssignment",
                "ReplicaPlacer",
                "TopicAssignment",
                "checked",
            ),
            "brokers": ("UsableBroker", "usable"),
            "registry": ("configured_placer", "placer_named"),
        },
    )

__all__ = [
    "CheckedPlacer",
    "PartitionAssignment",
    "RandomGenerator",
    "ReplicaPlacer",
    "TopicAssignment",
    "UsableBroker",
    "checked",
    "configured_placer",
    "placer_named",
    "usable",
]
