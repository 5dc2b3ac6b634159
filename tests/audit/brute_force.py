"""A second judge: the rules in plain loops over the snapshot's JSON, sharing nothing with the columns it is held against."""

import json
from collections import Counter
from itertools import product
from typing import Any

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot, UnrackedPolicy, json_format

Document = dict[str, Any]
Key = tuple[str, str | None, int | None]


def document(snapshot: ClusterSnapshot) -> Document:
    parsed: Document = json.loads(json_format.write(snapshot))
    return parsed


def rack_of(cluster: Document, policy: RackPolicy) -> dict[int, str]:
    """The rack each broker counts in; those that count in none are absent."""
    racks = {}
    for broker in cluster["brokers"]:
        if broker["rack"] is not None:
            racks[broker["id"]] = broker["rack"]
        elif policy.unracked is UnrackedPolicy.SHARED:
            racks[broker["id"]] = ""
        elif policy.unracked is UnrackedPolicy.OWN:
            racks[broker["id"]] = f"(broker {broker['id']})"
    return racks


def min_replicas(topic: Document) -> int:
    return int(topic["config"].get("min.insync.replicas", 1))


def required_in_sync(topic: Document, partition: Document) -> int:
    """What a broker counts min.insync.replicas as: one that is met once all replicas are in sync."""
    value, replicas = min_replicas(topic), len(partition["replicas"])
    return replicas if value > replicas else value


def min_racks(topic: Document, policy: RackPolicy) -> int:
    required = policy.topic_min_insync_racks.get(topic["name"], policy.min_insync_racks)
    return max(required, int(topic["config"].get("min.insync.racks", "1")))


def staying(partition: Document) -> list[int]:
    return [broker for broker in partition["replicas"] if broker not in partition["removing_replicas"]]


def can_be_evened(counts: dict[str, int], sizes: Counter[str], places_open: int) -> bool:
    """Whether some racks for the open places leave no rack two above another that has a broker without a replica."""
    names = sorted(sizes)
    if places_open == 0:
        return not any(
            counts.get(high, 0) >= counts.get(low, 0) + 2 and counts.get(low, 0) < sizes[low]
            for high, low in product(names, names)
        )
    return any(
        can_be_evened({**counts, name: counts.get(name, 0) + 1}, sizes, places_open - 1)
        for name in names
        if counts.get(name, 0) < sizes[name]
    ) or (all(counts.get(name, 0) >= sizes[name] for name in names))


def partition_keys(cluster: Document, policy: RackPolicy) -> set[Key]:
    """(constraint, topic, partition) of everything that is wrong with a partition."""
    racks = rack_of(cluster, policy)
    return {
        (constraint, topic["name"], partition["partition"])
        for topic in cluster["topics"]
        for partition in topic["partitions"]
        for constraint in broken(cluster, topic, partition, racks, policy)
    }


def broken(
    cluster: Document, topic: Document, partition: Document, racks: dict[int, str], policy: RackPolicy
) -> set[str]:
    replicas, isr = staying(partition), partition["isr"]
    held = Counter(racks[broker] for broker in replicas if broker in racks)
    isr_racks = {racks[broker] for broker in isr if broker in racks}
    k, listed = min_racks(topic, policy), {broker["id"] for broker in cluster["brokers"]}
    found = set()
    if not can_be_evened(dict(held), Counter(racks.values()), len(replicas) - sum(held.values())):
        found.add("rack-spread")
    if k > 1 and len(held) < k:
        found.add("min-insync-racks-satisfiable")
    if k > 1 and len(held) >= k and min_replicas(topic) < least_forcing([racks.get(one) for one in replicas], k):
        found.add("min-insync-replicas-forces-racks")
    if len(replicas) < min_replicas(topic):
        found.add("min-insync-replicas-satisfiable")
    if partition["leader"] == -1:
        found.add("offline")
    if len(isr) < required_in_sync(topic, partition):
        found.add("under-min-isr")
    if k > 1 and len(isr_racks) < k:
        found.add("under-min-racks")
    if len(isr) < len(partition["replicas"]):
        found.add("under-replicated")
    if set(partition["replicas"]) - listed:
        found.add("unknown-broker")
    if partition["adding_replicas"] or partition["removing_replicas"]:
        found.add("reassignment-in-progress")
    return found


def least_forcing(members: list[str | None], k: int) -> int:
    """Try every in-sync set: one more than the largest that stands on fewer than k racks. None counts in no rack."""
    largest = 0
    for chosen in product((False, True), repeat=len(members)):
        in_sync = [rack for rack, is_in_sync in zip(members, chosen, strict=True) if is_in_sync]
        if len({rack for rack in in_sync if rack is not None}) < k:
            largest = max(largest, len(in_sync))
    return largest + 1


def voters(cluster: Document, policy: RackPolicy) -> dict[int, str | None]:
    brokers = {broker["id"]: broker["rack"] for broker in cluster["brokers"]}
    return {
        one["id"]: policy.controller_racks.get(one["id"]) or one["rack"] or brokers.get(one["id"])
        for one in cluster["controllers"]
        if one["voter"]
    }


def all_racks(cluster: Document, policy: RackPolicy) -> list[str]:
    return sorted({*rack_of(cluster, policy).values(), *(rack for rack in voters(cluster, policy).values() if rack)})


def quorum_lost(cluster: Document, policy: RackPolicy, lost: set[str]) -> bool:
    left = [rack for rack in voters(cluster, policy).values() if rack not in lost]
    return bool(voters(cluster, policy)) and len(left) <= len(voters(cluster, policy)) / 2


def after_loss(cluster: Document, policy: RackPolicy, lost: set[str]) -> dict[str, Any]:
    """Per topic the partitions in each state, and who takes over how many leaderships: Kafka's election, step by step."""
    racks = rack_of(cluster, policy)
    alive = {b["id"] for b in cluster["brokers"] if not b["fenced"] and racks.get(b["id"]) not in lost}
    surge: Counter[int] = Counter()
    topics: dict[str, Counter[str]] = {}
    for topic in cluster["topics"]:
        for partition in topic["partitions"]:
            state = one_after(topic, partition, racks, alive, quorum_lost(cluster, policy, lost), policy, surge)
            topics.setdefault(topic["name"], Counter()).update(state)
    return {"topics": {name: +counts for name, counts in topics.items() if +counts}, "surge": dict(surge)}


def one_after(
    topic: Document,
    partition: Document,
    racks: dict[int, str],
    alive: set[int],
    no_elections: bool,
    policy: RackPolicy,
    surge: Counter[int],
) -> list[str]:
    in_sync = [broker for broker in partition["isr"] if broker in alive]
    leader = partition["leader"]
    if leader != -1 and leader not in alive:
        electable = [] if no_elections else [broker for broker in partition["replicas"] if broker in in_sync]
        leader = electable[0] if electable else -1
        if electable:
            surge[leader] += 1
    if leader == -1 or (not in_sync and not no_elections):
        unclean = not in_sync and any(broker in alive for broker in partition["replicas"])
        return ["offline", "needs_unclean_election"] if unclean else ["offline"]
    states = []
    if len(in_sync) < required_in_sync(topic, partition):
        states.append("under_min_isr")
    k = min_racks(topic, policy)
    if k > 1 and len({racks[broker] for broker in in_sync if broker in racks}) < k:
        states.append("under_min_racks")
    return states
