"""The least movement found by trying everything. Plain loops over tiny clusters, nothing of rackspan's own counting."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot, Partition, UnrackedPolicy
from tests.reassign.instances import cluster


def spread_is_even(racks: Sequence[str], sizes: Counter[str]) -> bool:
    """Whether moving one replica to another rack that may take one could make the counts more even."""
    counts = Counter(racks)
    return not any(
        counts[here] - counts[there] >= 2 and counts[there] < sizes[there] for here in counts for there in sizes
    )


def fewest_moves(replicas: Iterable[int], racks: dict[int, str], factor: int) -> int | None:
    """Over every set of `factor` brokers that is spread evenly, the fewest that are new. None where there is no such set."""
    sizes, now = Counter(racks.values()), set(replicas)
    return min(
        (
            len(set(brokers) - now)
            for brokers in combinations(sorted(racks), factor)
            if spread_is_even([racks[broker] for broker in brokers], sizes)
        ),
        default=None,
    )


def can_be_legal(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    row: Partition,
    factor: int | None = None,
    drained: frozenset[int] = frozenset(),
) -> bool:
    """Whether any evenly spread set of `factor` brokers may hold the partition, and its minimums hold them too."""
    if row.leader == -1 or not set(row.replicas) <= {broker.id for broker in snapshot.brokers}:
        return False
    topic = snapshot.topics[row.topic]
    min_racks = max(int(topic.config.get("min.insync.racks", "1")), policy.min_insync_racks_of(topic.name))
    if factor is not None and max(int(topic.config.get("min.insync.replicas", "1")), min_racks) > factor:
        return False
    racks = {int(broker.id): str(broker.rack) for broker in snapshot.brokers if broker.id not in drained}
    fenced = {broker.id for broker in snapshot.brokers if broker.fenced} - set(row.replicas)
    sizes = Counter(racks.values())
    return min_racks <= len(sizes) and any(
        spread_is_even([racks[broker] for broker in brokers], sizes)
        for brokers in combinations(sorted(racks), factor or len(row.replicas))
        if not set(brokers) & fenced
    )


def tiny_cluster(rng: Random) -> ClusterSnapshot:
    """At most five brokers, four partitions, four racks; brokers that are gone still hold replicas."""
    brokers = rng.randint(1, 5)
    racks = {broker: f"r{rng.randrange(rng.randint(1, 4))}" for broker in range(brokers)}
    held = [rng.sample(range(brokers), rng.randint(1, min(4, brokers))) for _ in range(rng.randint(1, 4))]
    for gone in rng.sample(range(brokers), rng.randint(0, min(2, brokers - 1))):
        del racks[gone]
    return cluster(held, racks)


@dataclass(frozen=True)
class Survival:
    """The racks of a partition, and whether enough replicas for its min.insync.replicas are left without any one rack."""

    racks: int
    writable: bool

    def __ge__(self, other: "Survival") -> bool:
        return self.racks >= other.racks and self.writable >= other.writable


def survival(snapshot: ClusterSnapshot, policy: RackPolicy) -> list[Survival]:
    """Of every partition in the order of the snapshot, each rack taken away in turn. A replica in no known rack may be in any."""
    rack_of: dict[int, str] = {}
    for broker in snapshot.brokers:
        if broker.rack is not None:
            rack_of[broker.id] = f"named {broker.rack}"
        elif policy.unracked is not UnrackedPolicy.IGNORE:
            rack_of[broker.id] = "none" if policy.unracked is UnrackedPolicy.SHARED else f"own {broker.id}"
    found = []
    for row in snapshot.partitions:
        replicas = [broker for broker in row.replicas if broker not in row.removing_replicas]
        racks = {rack_of[broker] for broker in replicas if broker in rack_of}
        minimum = int(snapshot.topics[row.topic].config.get("min.insync.replicas", "1"))
        left = [sum(rack_of.get(broker, lost) != lost for broker in replicas) for lost in racks]
        needed = min(minimum, len(replicas))
        found.append(Survival(len(racks), min(left, default=0) >= needed))
    return found
