"""Random clusters of up to ten brokers for the tests of restarts, and policies of stops."""

import re
from random import Random

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot, UnrackedPolicy
from rackspan.restart import BlockOn, StopPolicy
from tests.random_clusters import states

ACCEPTED = "t1|t3"


def random_cluster(rng: Random, brokers_most: int = 10) -> ClusterSnapshot:
    """Sizes of partitions are not known."""
    cluster = states.random_cluster(rng, rng.randint(1, brokers_most), 4)
    for _, partition in cluster.partitions():
        partition["size_bytes"] = None
    return cluster.snapshot()


def random_policies(rng: Random) -> tuple[RackPolicy, StopPolicy]:
    policy = RackPolicy(
        unracked=rng.choice((UnrackedPolicy.SHARED, UnrackedPolicy.OWN, UnrackedPolicy.IGNORE)),
        min_insync_racks=rng.choice((1, 1, 1, 2)),
        topic_min_insync_racks={"t0": 2} if rng.random() < 0.2 else {},
        require_controllers=rng.random() < 0.2,
    )
    block_on = frozenset(one for one in BlockOn if rng.random() < 0.2)
    accepted = re.compile(ACCEPTED) if rng.random() < 0.25 else None
    return policy, StopPolicy(rng.choice((0, 0, 1, 2)), block_on, accepted)
