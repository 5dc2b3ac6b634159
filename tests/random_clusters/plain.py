"""Judges by plain loops over a cluster of states.py: what a loss harms, what a stop harms, what can be carried out and how it ends.

Nothing of rackspan's commands is in them: only documents.
"""

from collections import Counter
from functools import cache
from itertools import product

from tests.random_clusters.states import UNKNOWN_LEADER, Document, RandomCluster

UNRACKED = "(no rack)"


class Impossible(Exception):
    """What a remedy says cannot be done, or never ends."""


def rack_of(cluster: RandomCluster) -> dict[int, str]:
    """The rack that each broker counts in; one that counts in none, and may be in any, is absent."""
    unnamed = {"shared": UNRACKED, "own": "(broker {})", "ignore": ""}[cluster.policy["unracked"]]
    named = {broker["id"]: broker["rack"] or unnamed.format(broker["id"]) for broker in cluster.brokers}
    return {broker: rack for broker, rack in named.items() if rack}


def is_diskless(topic: Document) -> bool:
    return "true" in (topic["config"].get("diskless.enable"), topic["config"].get("inkless.enable"))


def minimum(topic: Document, replicas: int) -> int:
    return min(int(topic["config"].get("min.insync.replicas", "1")), replicas)


def racks_required(cluster: RandomCluster, topic: Document) -> int:
    # Of a topic that may be in one rack on purpose only its own value is required.
    alone = cluster.policy["topic_survive"].get(topic["name"]) == "none"
    general = 1 if alone else cluster.policy["min_insync_racks"]
    required = cluster.policy["topic_min_insync_racks"].get(topic["name"], general)
    return max(int(required), int(topic["config"].get("min.insync.racks", "1")))


def survive_of(cluster: RandomCluster, topic: Document) -> str:
    return str(cluster.policy["topic_survive"].get(topic["name"], cluster.policy["survive"]))


def in_sync(cluster: RandomCluster, topic: Document, partition: Document) -> set[int]:
    """The replicas in sync whose broker and directory are up."""
    key, up = (topic["name"], partition["partition"]), cluster.running
    return {broker for broker in partition["isr"] if broker in up and (*key, broker) not in cluster.failed}


def takes_writes(cluster: RandomCluster, topic: Document, left: set[int], replicas: int) -> bool:
    """Whether those that are left are enough for acks=all."""
    racks, required = rack_of(cluster), racks_required(cluster, topic)
    enough = bool(left) and len(left) >= minimum(topic, replicas)
    return enough and (required == 1 or len({racks[broker] for broker in left if broker in racks}) >= required)


def staying(partition: Document) -> list[int]:
    return [broker for broker in partition["replicas"] if broker not in partition["removing_replicas"]]


def harmed(cluster: RandomCluster, topic: Document, partition: Document, lost: set[int]) -> bool:
    """Whether the loss of these brokers stops a partition: now, or once its reassignment has ended."""
    if is_diskless(topic):
        return False
    now = in_sync(cluster, topic, partition) - lost
    if partition["leader"] == -1 or not takes_writes(cluster, topic, now, len(partition["replicas"])):
        return True
    target = staying(partition)
    moving = partition["adding_replicas"] or partition["removing_replicas"]
    return bool(moving) and not takes_writes(cluster, topic, set(target) - lost, len(target))


def losses(cluster: RandomCluster, survive: str) -> dict[str, set[int]]:
    """The brokers of each loss by its name: of each rack, with those that may be in any, or of each broker."""
    racks, ids = rack_of(cluster), {broker["id"] for broker in cluster.brokers} | cluster.hidden.keys()
    if survive == "broker":
        return {f"broker {broker}": {broker} for broker in ids}
    anywhere = ids - racks.keys()
    if survive == "none":
        return {}
    names = {*racks.values(), *(rack for rack in voters(cluster).values() if rack)}
    return {rack: anywhere | {broker for broker in racks if racks[broker] == rack} for rack in names}


def voters(cluster: RandomCluster) -> dict[int, str | None]:
    named = {broker["id"]: broker["rack"] for broker in cluster.brokers}
    return {one["id"]: named.get(one["id"]) or one["rack"] for one in cluster.document["controllers"] if one["voter"]}


def live_voters(cluster: RandomCluster) -> set[int]:
    """Those that run; where that was not read, those that are not in the process of a broker that is down."""
    down = {broker["id"] for broker in cluster.brokers if broker["fenced"]}
    state = {one["id"]: one["alive"] for one in cluster.document["controllers"] if one["voter"]}
    return {voter for voter, alive in state.items() if alive or (alive is None and voter not in down)}


def majority_may_fall(cluster: RandomCluster, rack: str | None, voter: bool = False) -> bool:
    """Whether too few voters are left without a rack, in which each of unknown rack may be, or without any one voter."""
    racks, one_machine = voters(cluster), all(broker["host"] == "127.0.0.1" for broker in cluster.brokers)
    left = [one for one in live_voters(cluster) if rack is None or racks[one] not in (rack, None)]
    if one_machine and rack is not None:
        left += [one for one in live_voters(cluster) if racks[one] is None]
    return bool(racks) and 2 * (len(left) - voter) <= len(racks)


def harm_of_loss(cluster: RandomCluster, rack: str, survive: str | None = None) -> list[str]:
    """All that the loss of a rack stops, of topics that must `survive` it, or of every one."""
    lost = losses(cluster, "rack").get(rack, set())
    found = [
        f"{topic['name']}-{partition['partition']} at the loss of {rack}"
        for topic, partition in cluster.partitions()
        if survive in (None, survive_of(cluster, topic)) and harmed(cluster, topic, partition, lost)
    ]
    return found + [f"the quorum at the loss of {rack}"] * majority_may_fall(cluster, rack)


def harm_of_losses(cluster: RandomCluster, topics: set[str] | None = None) -> list[str]:
    """All that is stopped by a loss that the policy names, of all topics and the quorum or of these topics."""
    found = []
    for topic, partition in cluster.partitions():
        if topics is None or topic["name"] in topics:
            survive = survive_of(cluster, topic)
            by_loss = {"nothing": set[int](), **losses(cluster, survive)}
            found += [
                f"{topic['name']}-{partition['partition']} at the loss of {name}"
                for name, lost in by_loss.items()
                if harmed(cluster, topic, partition, lost) and (name != "nothing" or survive != "none")
            ]
    required = {cluster.policy["survive"], *cluster.policy["topic_survive"].values()}
    if topics is None and "rack" in required:
        found += [
            f"quorum at the loss of {rack}" for rack in losses(cluster, "rack") if majority_may_fall(cluster, rack)
        ]
    if topics is None and "broker" in required and majority_may_fall(cluster, None, voter=True):
        found.append("quorum at the loss of a voter")
    return found


def writable(cluster: RandomCluster) -> set[str]:
    """Partitions that take acks=all now, and those that do after any loss that they have to survive."""
    return {
        f"{topic['name']}-{partition['partition']} {when}"
        for topic, partition in cluster.partitions()
        for when, lost in (
            ("now", [set[int]()]),
            ("after a loss", losses(cluster, survive_of(cluster, topic)).values()),
        )
        if lost and not any(harmed(cluster, topic, partition, brokers) for brokers in lost)
    }


def harm_of_stop(cluster: RandomCluster, stopped: set[int]) -> list[str]:
    """What a stop of brokers stops that goes on now. A partition of one replica may stop with its broker."""
    found = []
    racks = rack_of(cluster)
    for topic, partition in cluster.partitions():
        now, replicas = in_sync(cluster, topic, partition), len(partition["replicas"])
        left = now - stopped
        if is_diskless(topic) or left == now or (replicas == 1 and not left):
            continue
        few = len(left) < max(1, minimum(topic, replicas))
        spans = [len({racks[broker] for broker in brokers if broker in racks}) for brokers in (now, left)]
        if few or min(spans[0], racks_required(cluster, topic)) > max(1, spans[1]):
            found.append(f"{topic['name']}-{partition['partition']}")
    alive = live_voters(cluster)
    if alive & stopped and 2 * len(alive - stopped) <= len(voters(cluster)):
        found.append("the quorum")
    return found


def restarted(cluster: RandomCluster, brokers: set[int]) -> RandomCluster:
    """The cluster once these brokers have been stopped and started."""
    after = cluster.copy()
    for broker in after.document["brokers"]:
        broker["fenced"] = broker["fenced"] and broker["id"] not in brokers
    for controller in after.document["controllers"]:
        controller["alive"] = True if controller["id"] in brokers else controller["alive"]
    return settled(after)


def settled(cluster: RandomCluster) -> RandomCluster:
    """What Kafka does by itself: it elects leaders among those in sync, lets live replicas catch up, and ends reassignments."""
    after = cluster.copy()
    for topic, partition in after.partitions():
        key = topic["name"], partition["partition"]
        able = {broker for broker in after.running if (*key, broker) not in after.failed}
        led = partition["leader"] if partition["leader"] in able else None
        first = (broker for broker in partition["replicas"] if broker in partition["isr"] and broker in able)
        if led is None and (led := next(first, None)) is None:
            partition["leader"] = -1
            continue
        partition["isr"] = [broker for broker in partition["replicas"] if broker in able]
        target = staying(partition)
        if set(target) <= able:
            partition.update(replicas=target, adding_replicas=[], removing_replicas=[])
            partition["isr"] = [broker for broker in target if broker in able]
        leader = led if led in partition["isr"] else partition["isr"][0]
        partition["leader"] = UNKNOWN_LEADER if leader in after.hidden else leader
    return after


def reassigned(cluster: RandomCluster, targets: dict[tuple[str, int], list[int]]) -> RandomCluster:
    """The cluster after a reassignment, each partition on its target and in sync there as far as brokers are up.

    Errors: Impossible for one that Kafka refuses, or that never ends.
    """
    after = cluster.copy()
    for topic, partition in after.partitions():
        key = topic["name"], partition["partition"]
        target = targets.get(key)
        if target is None:
            continue
        new = [broker for broker in target if broker not in partition["replicas"]]
        where = f"{key[0]}-{key[1]} to {target}"
        if down := [broker for broker in new if broker not in cluster.up]:
            raise Impossible(f"{where}: brokers {down} are not up, so that it never ends")
        if new and partition["leader"] == -1:
            raise Impossible(f"{where}: there is no leader to copy from")
        if not set(target) & (in_sync(cluster, topic, partition) | set(new)):
            raise Impossible(f"{where}: no replica of it would be in sync")
        partition.update(replicas=target, adding_replicas=[], removing_replicas=[])
        partition["isr"] = [broker for broker in target if broker in {*partition["isr"], *new}]
        partition["offline_replicas"] = [one for one in partition.get("offline_replicas", ()) if one in target]
        after.failed = {one for one in after.failed if one[:2] != key or one[2] in target}
        if partition["leader"] not in partition["isr"] and partition["leader"] != -1:
            partition["leader"] = partition["isr"][0]
    return settled(after)


def can_be_met(cluster: RandomCluster, topic: Document) -> bool:
    """Whether any number of replicas in each rack, with any minimum, does what is required of a topic: by trying all."""
    sizes, required = Counter(rack_of(cluster).values()), racks_required(cluster, topic)
    enforced = topic["config"].get("min.insync.racks") == str(required)
    return some_placement(tuple(sorted(sizes.values())), required, not enforced, survive_of(cluster, topic))


@cache
def some_placement(sizes: tuple[int, ...], k: int, forced: bool, survive: str) -> bool:
    """Lose each rack or broker, and try each set in sync. `forced`: min.insync.replicas has to force the racks."""
    for counts in product(*(range(size + 1) for size in sizes)):
        replicas = [rack for rack, count in enumerate(counts) for _ in range(count)]
        if not replicas:
            continue
        lost_racks = [[one for one in replicas if one != rack] for rack in set(replicas)]
        lost_one = [replicas[:place] + replicas[place + 1 :] for place in range(len(replicas))]
        after = {"rack": lost_racks, "broker": lost_one, "none": [replicas]}[survive]
        # The k - 1 fullest racks may acknowledge with one fewer.
        least = sum(sorted(counts)[::-1][: k - 1]) + 1 if forced and k > 1 else 1
        if all(one and len(one) >= least and (k == 1 or len(set(one)) >= k) for one in after):
            return True
    return False
