"""A second judge of stops, and the fewest batches by trying them all: plain loops over the snapshot's JSON."""

from collections.abc import Iterable
from functools import cache
from itertools import combinations
from typing import Any

from rackspan.audit import RackPolicy
from rackspan.restart import StopPolicy
from tests.audit.brute_force import dead_voters, min_racks, rack_of, voters

Document = dict[str, Any]


def is_safe(cluster: Document, stopped: set[int], policy: RackPolicy, stop: StopPolicy) -> bool:
    """Whether nothing suffers that may not, everything was read, and the controllers keep their majority."""
    if not controllers_hold(cluster, stopped, policy):
        return False
    if any(not note.startswith("sizes") for note in cluster["partial"]):
        return False
    return not any(
        forbids(cluster, topic, partition, stopped, policy, stop)
        for topic in cluster["topics"]
        if stop.accepted is None or stop.accepted.fullmatch(topic["name"]) is None
        for partition in topic["partitions"]
    )


def controllers_hold(cluster: Document, stopped: set[int], policy: RackPolicy) -> bool:
    every = set(voters(cluster, policy))
    if not every:
        return not policy.require_controllers
    return 2 * len(every - dead_voters(cluster) - stopped) > len(every)


def forbids(
    cluster: Document, topic: Document, partition: Document, stopped: set[int], policy: RackPolicy, stop: StopPolicy
) -> bool:
    up = {broker["id"] for broker in cluster["brokers"] if not broker["fenced"]}
    now = {broker for broker in partition["isr"] if broker in up}
    states = [(now, partition["replicas"])]
    if partition["adding_replicas"] or partition["removing_replicas"]:
        stays = [replica for replica in partition["replicas"] if replica not in partition["removing_replicas"]]
        at_end = {
            replica
            for replica in stays
            if replica in up and (replica in now or replica in partition["adding_replicas"])
        }
        states.append((at_end, stays))
    factor = len([one for one in partition["replicas"] if one not in partition["removing_replicas"]])
    return any(
        worse(cluster, topic, in_sync, len(replicas), factor, stopped, policy, stop) for in_sync, replicas in states
    )


def worse(
    cluster: Document,
    topic: Document,
    in_sync: set[int],
    replicas: int,
    factor: int,
    stopped: set[int],
    policy: RackPolicy,
    stop: StopPolicy,
) -> bool:
    left = in_sync - stopped
    if left == in_sync:
        return False
    config = topic["config"].get("min.insync.replicas")
    if config is None:
        return True
    blocked_by = {one.value for one in stop.block_on}
    if not left:
        return replicas > 1 or "rf1" in blocked_by
    minimum = min(int(config), replicas)
    if len(left) < minimum:
        return True
    racks, k = rack_of(cluster, policy), min_racks(topic, policy)
    racks_left = len({racks[broker] for broker in left if broker in racks})
    racks_now = len({racks[broker] for broker in in_sync if broker in racks})
    if k > 1 and racks_left < k and racks_left < racks_now:
        return True
    margin = stop.margin if factor - 1 >= minimum + stop.margin else 0
    if len(left) < minimum + margin:
        return True
    return len(left) == 1 and "one-copy" in blocked_by


def restarted(cluster: Document, chosen: frozenset[int]) -> Document:
    """The cluster with the chosen brokers up, and every replica on a broker that is up in sync."""
    brokers = [{**broker, "fenced": broker["fenced"] and broker["id"] not in chosen} for broker in cluster["brokers"]]
    up = {broker["id"] for broker in brokers if not broker["fenced"]}
    controllers = [
        {
            **controller,
            "alive": True if controller["id"] in chosen and controller["alive"] is False else controller["alive"],
        }
        for controller in cluster["controllers"]
    ]
    topics = [
        {
            **topic,
            "partitions": [
                {**partition, "isr": [replica for replica in partition["replicas"] if replica in up]}
                for partition in topic["partitions"]
            ],
        }
        for topic in cluster["topics"]
    ]
    return {**cluster, "brokers": brokers, "controllers": controllers, "topics": topics}


def subsets(brokers: Iterable[int]) -> Iterable[set[int]]:
    every = sorted(brokers)
    return (set(chosen) for size in range(len(every) + 1) for chosen in combinations(every, size))


def fewest_batches(brokers: frozenset[int], safe_sets: set[frozenset[int]]) -> int:
    """The least number of safe sets that hold every broker once. Every single broker is among the safe sets."""

    @cache
    def fewest(left: frozenset[int]) -> int:
        if not left:
            return 0
        first = min(left)
        return 1 + min(fewest(left - batch) for batch in safe_sets if first in batch and batch <= left)

    return fewest(brokers)
