"""Replica placement: which brokers hold each partition of a new topic, or of the partitions a topic gains.

Begin with placer.py (the contract), then kafka/ (KIP-36's and KRaft's placements) and balanced/ (our own). registry.py
finds a placer by name, spec.py computes what a placement spec describes, new_partitions.py what a snapshot needs. It never
reads a cluster and never moves a replica that exists: that is `reassign`. Pure: brokers and rng are arguments.
Depends on: audit, kafka_bytes, model.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.placement.balanced.placer import BalancedReplicaPlacer
    from rackspan.placement.exclusion import Exclusion
    from rackspan.placement.kafka.java_random import RandomGenerator
    from rackspan.placement.kafka.rack_alternated import RackAlternatedReplicaPlacer
    from rackspan.placement.kafka.striped import StripedReplicaPlacer
    from rackspan.placement.placer import CheckedPlacer, PartitionAssignment, ReplicaPlacer, TopicAssignment, checked
    from rackspan.placement.registry import configured_placer, placer_named
    from rackspan.placement.usable_brokers import UsableBroker, usable
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "balanced.placer": ("BalancedReplicaPlacer",),
            "exclusion": ("Exclusion",),
            "kafka.java_random": ("RandomGenerator",),
            "kafka.rack_alternated": ("RackAlternatedReplicaPlacer",),
            "kafka.striped": ("StripedReplicaPlacer",),
            "placer": (
                "CheckedPlacer",
                "PartitionAssignment",
                "ReplicaPlacer",
                "TopicAssignment",
                "checked",
            ),
            "usable_brokers": ("UsableBroker", "usable"),
            "registry": ("configured_placer", "placer_named"),
        },
    )

__all__ = [
    "BalancedReplicaPlacer",
    "CheckedPlacer",
    "Exclusion",
    "PartitionAssignment",
    "RackAlternatedReplicaPlacer",
    "RandomGenerator",
    "ReplicaPlacer",
    "StripedReplicaPlacer",
    "TopicAssignment",
    "UsableBroker",
    "checked",
    "configured_placer",
    "placer_named",
    "usable",
]
