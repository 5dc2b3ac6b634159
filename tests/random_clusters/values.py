"""Random clusters as the values that rackspan's functions take."""

from random import Random

from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.model import ClusterSnapshot, RackId, UnrackedPolicy
from tests.random_clusters.states import RandomCluster, random_cluster


def drawn(rng: Random, topics_most: int = 3) -> tuple[ClusterSnapshot, RackPolicy]:
    """A random cluster and its policy."""
    cluster = random_cluster(rng, topics_most=topics_most)
    return cluster.snapshot(), policy_of(cluster)


def policy_of(cluster: RandomCluster) -> RackPolicy:
    given = cluster.policy
    return RackPolicy(
        unracked=UnrackedPolicy(given["unracked"]),
        min_insync_racks=given["min_insync_racks"],
        topic_min_insync_racks=given["topic_min_insync_racks"],
        controller_racks={voter: RackId(rack) for voter, rack in given.get("controller_racks", {}).items()},
        survive=Survive(given["survive"]),
        topic_survive={topic: Survive(value) for topic, value in given["topic_survive"].items()},
    )
