"""Apache Kafka's own placements, random number for random number: AdminUtils (KIP-36) and KRaft's StripedReplicaPlacer.

Begin with rack_alternated.py and striped.py (the placers). rack_stripes.py is Kafka's loop, stripe_arrays.py the same for
a million partitions at once, and java_random.py the random numbers of Java. `assign_replicas` and `add_partitions` are
Kafka's functions themselves, for use without a placer. Given Kafka's seed, each returns Kafka's assignment; none considers
the load of brokers.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.placement.kafka.rack_alternated import add_partitions, assign_replicas
else:
    __getattr__ = lazy_getattr(__name__, {"rack_alternated": ("add_partitions", "assign_replicas")})

__all__ = ["add_partitions", "assign_replicas"]
