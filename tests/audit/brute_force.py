"""A second judge: the rules in plain loops over the snapshot's JSON, sharing nothing with the columns it is held against."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot, UnrackedPolicy, json_format
from tests.random_clusters.plain import is_diskless
from tests.random_clusters.states import ZONE_IDS, ZONE_NAMES

Document = dict[str, Any]
Key = tuple[str, str | None, int | None]


def document(snapshot: ClusterSnapshot) -> Document:
    parsed: Document = json.loads(json_format.write(snapshot))
    return parsed


def judged_topics(cluster: Document) -> list[Document]:
    """The topics but for diskless ones, whose replicas say nothing."""
    return [topic for topic in cluster["topics"] if not is_diskless(topic)]


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
    general = 1 if left_alone(topic, policy) else policy.min_insync_racks
    required = policy.topic_min_insync_racks.get(topic["name"], general)
    return max(required, int(topic["config"].get("min.insync.racks", "1")))


def left_alone(topic: Document, policy: RackPolicy) -> bool:
    """Whether the topic may be in one rack on purpose: a line of its own says that it need not survive anything."""
    return topic["name"] in policy.topic_survive and policy.topic_survive[topic["name"]].value == "none"


def failed(cluster: Document, partition: Document) -> set[int]:
    """The replicas in a failed log directory of a broker that is up."""
    up = {broker["id"] for broker in cluster["brokers"] if not broker["fenced"]}
    return up & set(partition.get("offline_replicas", []))


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
        for topic in judged_topics(cluster)
        for partition in topic["partitions"]
        for constraint in reported(cluster, topic, partition, racks, policy)
    }


WARNINGS = ("reassignment-in-progress", "under-replicated", "min-insync-replicas-satisfiable")
"""What needs no repair by itself. All else is a violation, but what the brokers enforce in place of a config."""


def severity(cluster: Document, policy: RackPolicy, key: Key) -> str:
    constraint, name, _ = key
    (topic,) = (one for one in judged_topics(cluster) if one["name"] == name)
    own = topic["config"].get("min.insync.racks")
    enforced = own is not None and int(own) == min_racks(topic, policy)
    is_warning = constraint in WARNINGS or (constraint == "min-insync-replicas-forces-racks" and enforced)
    return "warning" if is_warning else "violation"


def cluster_findings(cluster: Document, policy: RackPolicy) -> Iterator[tuple[str, str]]:
    """Constraint and severity of everything that is wrong with brokers, controllers and racks; goals are left out."""
    wanted = {policy.survive.value, *(one.value for one in policy.topic_survive.values())}
    rackless = [one for one in cluster["brokers"] if one["rack"] is None]
    partly = len(rackless) < len(cluster["brokers"]) and policy.unracked is not UnrackedPolicy.IGNORE
    for _ in rackless:
        yield "unracked-broker", "violation" if partly else "warning"
    for _ in range(racks_alike(cluster, policy)):
        yield "rack-names-alike", "violation"
    alive = set(voters(cluster, policy)) - dead_voters(cluster)
    stands = not quorum_lost(cluster, policy, set())
    if not stands:
        yield "controller-quorum-spread", "violation"
    one_less = len(alive) - 1 <= len(voters(cluster, policy)) / 2
    if stands and "broker" in wanted and voters(cluster, policy) and one_less:
        yield "controller-quorum-spread", "violation"
    if "rack" in wanted and stands:
        for rack in all_racks(cluster, policy):
            if quorum_lost(cluster, policy, {rack}):
                yield "controller-quorum-spread", "violation"
        lost = [{rack} for rack in all_racks(cluster, policy)] or [set()]
        doubtful = [
            one for one in lost if quorum_may_be_lost(cluster, policy, one) and not quorum_lost(cluster, policy, one)
        ]
        unknown = any(rack is None for one, rack in voters(cluster, policy).items() if one in alive)
        if unknown and (doubtful or on_one_machine(cluster)):
            yield "controller-quorum-spread", "violation" if doubtful else "warning"
    fenced = {one["id"] for one in cluster["brokers"] if one["fenced"]}
    for _ in dead_voters(cluster) - fenced:
        yield "dead-controller", "warning"
    held = {
        broker for topic in judged_topics(cluster) for partition in topic["partitions"] for broker in staying(partition)
    }
    for one in cluster["brokers"]:
        if one["fenced"]:
            yield "fenced-broker", "warning"
        broken = any(
            one["id"] in failed(cluster, row) for topic in judged_topics(cluster) for row in topic["partitions"]
        )
        if not one["fenced"] and (one.get("failed_log_dirs") or broken):
            yield "failed-log-dir", "warning"
        if one.get("cordoned") and one["id"] in held:
            yield "excluded-broker", "warning"
    survives = {
        topic["name"]: policy.topic_survive.get(topic["name"], policy.survive) for topic in judged_topics(cluster)
    }
    required = any(survives[topic["name"]].value == "rack" and topic["partitions"] for topic in judged_topics(cluster))
    if required and len(set(rack_of(cluster, policy).values())) < 2:
        yield "survives-rack-loss", "violation"


def racks_alike(cluster: Document, policy: RackPolicy) -> int:
    """How many groups of names may be fewer racks than names, but for those that the policy says are different."""
    names = {*(one["rack"] for one in cluster["brokers"]), *voters(cluster, policy).values()} - {None}
    spelt: dict[str, set[str]] = {}
    for name in names:
        spelt.setdefault(same_name(name), set()).add(name)
    groups = [together for together in spelt.values() if len(together) > 1]
    schemes = (
        (lambda name: name.startswith("rack"), lambda name: name[1:].isdecimal()),
        (ZONE_NAMES.__contains__, ZONE_IDS.__contains__),
        (ZONE_NAMES.__contains__, lambda name: len(name) == 1 and name.isalpha()),
    )
    for sides in schemes:
        by_scheme = [{name for plain in spelt if side(plain) for name in spelt[plain]} for side in sides]
        groups += [set().union(*by_scheme)] if all(by_scheme) else []
    return sum(not policy.different_racks.issuperset(group) for group in groups)


def mixed_topics(cluster: Document) -> set[str]:
    """Topics with partitions of several replication factors; a reassignment in flight counts by its target."""
    factors: dict[str, set[int]] = {}
    for topic in judged_topics(cluster):
        factors[topic["name"]] = {len(staying(partition)) for partition in topic["partitions"]}
    return {name for name, of_topic in factors.items() if len(of_topic) > 1}


def topic_warnings(cluster: Document, policy: RackPolicy) -> Iterator[tuple[str, str]]:
    """Topic and constraint of every warning about a whole topic that has partitions."""
    for name in mixed_topics(cluster):
        if not any(left_alone(topic, policy) for topic in judged_topics(cluster) if topic["name"] == name):
            yield name, "mixed-replication-factors"
    racks = rack_of(cluster, policy)
    for topic in judged_topics(cluster):
        if topic["partitions"] and "min.insync.replicas" not in topic["config"]:
            yield topic["name"], "min-insync-replicas-unknown"
        elif topic["partitions"] and two_would_do(cluster, topic, racks, policy):
            yield topic["name"], "min-insync-replicas-one"
    moving = any(note.startswith("reassignments under way") for note in cluster["partial"]) or any(
        partition["adding_replicas"] or partition["removing_replicas"]
        for topic in judged_topics(cluster)
        for partition in topic["partitions"]
    )
    for topic in judged_topics(cluster):
        config, survive = topic["config"], policy.topic_survive.get(topic["name"], policy.survive).value
        if not topic["partitions"]:
            continue
        if config.get("unclean.leader.election.enable") == "true" and survive != "none":
            yield topic["name"], "unclean-leader-election"
        if not moving and any(key.endswith("throttled.replicas") for key in config):
            yield topic["name"], "throttle-left-behind"


def two_would_do(cluster: Document, topic: Document, racks: dict[int, str], policy: RackPolicy) -> bool:
    """Whether min.insync.replicas is 1 where 2 refuses nothing now, and nothing after the loss that has to be survived."""
    survive = policy.topic_survive.get(topic["name"], policy.survive).value
    if min_replicas(topic) != 1 or min_racks(topic, policy) != 1 or survive == "none":
        return False
    if survive == "rack" and len(set(racks.values())) < 2:
        return False
    raised = {**topic, "config": {**topic["config"], "min.insync.replicas": "2"}}
    return all(
        min(len(staying(partition)), len(partition["isr"])) >= 2
        and lost_by(cluster, raised, partition, racks, policy, present=False) is None
        for partition in topic["partitions"]
    )


PRESENT = ("offline", "under-min-isr", "under-min-racks", "unknown-broker")
PLACED = ("rack-spread", "min-insync-replicas-forces-racks", "min-insync-replicas-satisfiable")


def reported(
    cluster: Document, topic: Document, partition: Document, racks: dict[int, str], policy: RackPolicy
) -> set[str]:
    """One name for each cause: of the present states the worst, and of the placement what it does at a loss."""
    found = broken(cluster, topic, partition, racks, policy)
    repairable = not {"offline", "unknown-broker"} & found
    if not repairable:
        found -= {*PLACED, "min-insync-racks-satisfiable"}
    if "min-insync-racks-satisfiable" in found:
        found -= {*PLACED, "under-min-racks"}
    present = [name for name in PRESENT if name in found]
    found -= set(present[1:])
    if repairable and "min-insync-racks-satisfiable" not in found:
        lost = lost_by(cluster, topic, partition, racks, policy, present=bool(present))
        if lost:
            found = {*found - set(PLACED), lost}
            present.append(lost)
    return found - {"under-replicated"} if present or "min-insync-racks-satisfiable" in found else found


def lost_by(
    cluster: Document,
    topic: Document,
    partition: Document,
    racks: dict[int, str],
    policy: RackPolicy,
    *,
    present: bool,
) -> str | None:
    """The constraint on losses that is broken by the placement, or, unless a `present` state is reported, at present."""
    survive, listed = policy.topic_survive.get(topic["name"], policy.survive).value, cluster["brokers"]
    if survive == "none" or (survive == "rack" and len(set(racks.values())) < 2):
        return None
    anywhere = {one["id"] for one in listed if one["id"] not in racks}
    by_rack = [anywhere | {one for one, rack in racks.items() if rack == lost} for lost in set(racks.values())]
    losses = by_rack if survive == "rack" else [{one["id"]} for one in listed]
    ids = {one["id"] for one in listed}
    placed = [broker for broker in staying(partition) if broker in ids]
    alive = {one["id"] for one in listed if not one["fenced"]}
    now = [broker for broker in partition["isr"] if broker in alive - failed(cluster, partition)]
    k = min_racks(topic, policy)
    need_placed = min(min_replicas(topic), len(staying(partition)))
    worst = worst_of(losses, placed, need_placed, k, racks)
    if worst is None and not present:
        worst = worst_of(losses, now, required_in_sync(topic, partition), k, racks)
    names = {"offline": f"survives-{survive}-loss", "refused": f"accepts-writes-after-{survive}-loss"}
    return None if worst is None else names[worst]


def worst_of(losses: list[set[int]], in_sync: list[int], need: int, k: int, racks: dict[int, str]) -> str | None:
    """Lose each in turn: `offline` if any leaves nobody, `refused` if any leaves too few, None if all are survived."""
    left = [[broker for broker in in_sync if broker not in lost] for lost in losses]
    if any(not one for one in left):
        return "offline"
    spans = [len({racks[broker] for broker in one if broker in racks}) for one in left]
    short = any(len(one) < need for one in left) or (k > 1 and any(span < k for span in spans))
    return "refused" if short else None


def broken(
    cluster: Document, topic: Document, partition: Document, racks: dict[int, str], policy: RackPolicy
) -> set[str]:
    replicas, isr = staying(partition), partition["isr"]
    held = Counter(racks[broker] for broker in replicas if broker in racks)
    isr_racks = {racks[broker] for broker in isr if broker in racks}
    k, listed = min_racks(topic, policy), {broker["id"] for broker in cluster["brokers"]}
    found = set()
    even = can_be_evened(dict(held), Counter(racks.values()), len(replicas) - sum(held.values()))
    if not even and not left_alone(topic, policy):
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
    alive = {broker["id"] for broker in cluster["brokers"] if not broker["fenced"]}
    if set(replicas) - set(isr) - (set(partition["adding_replicas"]) & alive - failed(cluster, partition)):
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
        one["id"]: brokers.get(one["id"]) or policy.controller_racks.get(one["id"]) or one["rack"]
        for one in cluster["controllers"]
        if one["voter"]
    }


def all_racks(cluster: Document, policy: RackPolicy) -> list[str]:
    return sorted({*rack_of(cluster, policy).values(), *(rack for rack in voters(cluster, policy).values() if rack)})


def same_name(rack: str) -> str:
    return unicodedata.normalize("NFKC", rack).casefold().strip()


def dead_voters(cluster: Document) -> set[int]:
    """The voters that do not run now; where nobody reported it, those in the process of a fenced broker."""
    fenced = {broker["id"] for broker in cluster["brokers"] if broker["fenced"]}
    found = set()
    for one in cluster["controllers"]:
        down = one["id"] in fenced if one["alive"] is None else not one["alive"]
        if one["voter"] and down:
            found.add(one["id"])
    return found


def quorum_lost(cluster: Document, policy: RackPolicy, lost: set[str]) -> bool:
    dead = dead_voters(cluster)
    left = [rack for one, rack in voters(cluster, policy).items() if rack not in lost and one not in dead]
    return bool(voters(cluster, policy)) and len(left) <= len(voters(cluster, policy)) / 2


def on_one_machine(cluster: Document) -> bool:
    return all((one["host"] or "").startswith("127.") for one in cluster["brokers"])


def quorum_may_be_lost(cluster: Document, policy: RackPolicy, lost: set[str]) -> bool:
    """Whether no majority is left if every voter of unknown rack stood in a lost rack; on one machine none does."""
    racks = voters(cluster, policy)
    simulated, dead = on_one_machine(cluster), dead_voters(cluster)
    alive = [rack for one, rack in racks.items() if one not in dead]
    left = [rack for rack in alive if (rack is None and simulated) or (rack is not None and rack not in lost)]
    return bool(racks) and len(left) <= len(racks) / 2


def after_loss(cluster: Document, policy: RackPolicy, lost: set[str], *, targets: bool = True) -> dict[str, Any]:
    """Per topic the partitions in each state, and who takes over how many leaderships: Kafka's election, step by step."""
    racks = rack_of(cluster, policy)
    unknown = {b["id"] for b in cluster["brokers"] if b["id"] not in racks} if lost else set()
    alive = {b["id"] for b in cluster["brokers"] if not b["fenced"] and racks.get(b["id"]) not in lost} - unknown
    ended = {b["id"] for b in cluster["brokers"] if racks.get(b["id"]) not in lost} - unknown
    surge: Counter[int] = Counter()
    topics: dict[str, Counter[str]] = {}
    for topic in judged_topics(cluster):
        for partition in topic["partitions"]:
            broken_disks = failed(cluster, partition)
            if partition["leader"] == -2 and not lost:
                # The leader is up, listed or not.
                here = alive | set(partition["isr"]) - {b["id"] for b in cluster["brokers"]}
            else:
                here = alive
            state = one_after(
                topic, partition, racks, here, broken_disks, quorum_lost(cluster, policy, lost), policy, surge
            )
            if targets and lost and not state and (partition["adding_replicas"] or partition["removing_replicas"]):
                target = {**partition, "replicas": staying(partition), "isr": staying(partition)}
                later = one_after(topic, target, racks, ended, broken_disks, False, policy, Counter())
                state = ["after_reassignment"] if later else []
            topics.setdefault(topic["name"], Counter()).update(state)
    return {"topics": {name: +counts for name, counts in topics.items() if +counts}, "surge": dict(surge)}


def one_after(
    topic: Document,
    partition: Document,
    racks: dict[int, str],
    alive: set[int],
    broken_disks: set[int],
    no_elections: bool,
    policy: RackPolicy,
    surge: Counter[int],
) -> list[str]:
    in_sync = [broker for broker in partition["isr"] if broker in alive - broken_disks]
    leader = partition["leader"]
    if leader == -2:
        # Whichever leads is not known: one that is in sync, if any is left.
        leader = in_sync[0] if in_sync else -1
    if leader != -1 and leader not in alive:
        electable = [] if no_elections else [broker for broker in partition["replicas"] if broker in in_sync]
        leader = electable[0] if electable else -1
        if electable:
            surge[leader] += 1
    if leader == -1 or (not in_sync and not no_elections):
        unclean = not in_sync and any(broker in alive - broken_disks for broker in partition["replicas"])
        return ["offline", "needs_unclean_election"] if unclean else ["offline"]
    states = []
    if len(in_sync) < required_in_sync(topic, partition):
        states.append("under_min_isr")
    k = min_racks(topic, policy)
    if k > 1 and len({racks[broker] for broker in in_sync if broker in racks}) < k:
        states.append("under_min_racks")
    return states


def down(cluster: Document, policy: RackPolicy) -> dict[str, dict[str, Any]]:
    """The racks that are down, with their members and the partitions that lack a replica for it."""
    racks, voting, dead = rack_of(cluster, policy), voters(cluster, policy), dead_voters(cluster)
    fenced = {one["id"] for one in cluster["brokers"] if one["fenced"]}
    found = {}
    for rack in all_racks(cluster, policy):
        brokers = sorted(one for one in racks if racks[one] == rack)
        of_rack = sorted(one for one in voting if voting[one] == rack)
        judged_by, out = (brokers, fenced) if brokers else (of_rack, dead)
        if any(one not in out for one in judged_by):
            continue
        lacking = [
            partition
            for topic in judged_topics(cluster)
            for partition in topic["partitions"]
            if any(one in brokers for one in staying(partition))
        ]
        found[rack] = {
            "brokers": brokers,
            "controllers": [one for one in of_rack if one in dead],
            "controllers_left": [one for one in of_rack if one not in dead],
            "partitions": len(lacking),
        }
    return found
