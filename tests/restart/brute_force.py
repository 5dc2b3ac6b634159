"""A second judge of stops, and the fewest batches by trying them all: plain loops over the snapshot's JSON."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import combinations
from typing import Any

from rackspan.audit import RackPolicy
from rackspan.restart import BlockOn, StopPolicy
from tests.audit.brute_force import (
    dead_voters,
    failed,
    judged_topics,
    min_racks,
    min_replicas,
    one_after,
    quorum_lost,
    rack_of,
    racks_alike,
    voters,
)

Document = dict[str, Any]


def is_safe(cluster: Document, stopped: set[int], policy: RackPolicy, stop: StopPolicy) -> bool:
    """Whether nothing suffers that may not, everything was read, and the controllers keep their majority, or nothing is taken that is up."""
    nothing_taken = bool(voters(cluster, policy)) and takes_nothing(cluster, frozenset(stopped))
    if not controllers_hold(cluster, stopped, policy) and not nothing_taken:
        return False
    if any(not note.startswith("sizes") for note in cluster["partial"]):
        return False
    if racks_alike(cluster, policy) and racks_decide(cluster, stopped, policy, stop):
        return False
    return not any(
        forbids(cluster, topic, partition, stopped, policy, stop)
        for topic in judged_topics(cluster)
        if stop.accepted is None or stop.accepted.fullmatch(topic["name"]) is None
        for partition in topic["partitions"]
    )


def racks_decide(cluster: Document, stopped: set[int], policy: RackPolicy, stop: StopPolicy) -> bool:
    """Whether a replica in sync is stopped of a partition that requires several racks, and may not suffer."""
    return any(
        stopped & set(in_sync)
        for topic in judged_topics(cluster)
        if min_racks(topic, policy) > 1 and not (stop.accepted and stop.accepted.fullmatch(topic["name"]))
        for partition in topic["partitions"]
        for in_sync, _, _ in states_of(cluster, partition)
    )


def controllers_hold(cluster: Document, stopped: set[int], policy: RackPolicy) -> bool:
    every = set(voters(cluster, policy))
    if not every:
        return not policy.require_controllers
    return 2 * len(every - dead_voters(cluster) - stopped) > len(every)


def forbids(
    cluster: Document, topic: Document, partition: Document, stopped: set[int], policy: RackPolicy, stop: StopPolicy
) -> bool:
    return any(
        worse(cluster, topic, set(in_sync), replicas, factor(partition), stopped, policy, stop)
        for in_sync, replicas, _ in states_of(cluster, partition)
    )


def states_of(cluster: Document, partition: Document) -> list[tuple[list[int], int, str]]:
    """Who is in sync of how many replicas now, and once its reassignment has ended, with the words for when."""
    up = {broker["id"] for broker in cluster["brokers"] if not broker["fenced"]} - failed(cluster, partition)
    now = [broker for broker in partition["isr"] if broker in up]
    states = [(now, len(partition["replicas"]), "")]
    if partition["adding_replicas"] or partition["removing_replicas"]:
        stays = [replica for replica in partition["replicas"] if replica not in partition["removing_replicas"]]
        at_end = [replica for replica in stays if replica in up & {*partition["isr"], *partition["adding_replicas"]}]
        states.append((at_end, len(stays), ", once its reassignment has ended"))
    return states


def factor(partition: Document) -> int:
    return len([one for one in partition["replicas"] if one not in partition["removing_replicas"]])


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
    if config is None and replicas > 1:
        return True
    blocked_by = {one.value for one in stop.block_on}
    if not left:
        return replicas > 1 or "rf1" in blocked_by
    minimum = min(int(config or 1), replicas)
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
    after = {**cluster, "brokers": brokers}
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
                {**partition, "isr": [one for one in partition["replicas"] if one in up - failed(after, partition)]}
                for partition in topic["partitions"]
            ],
        }
        for topic in cluster["topics"]
    ]
    return {**after, "controllers": controllers, "topics": topics}


def caught_up(cluster: Document) -> Document:
    """The cluster with every replica on a broker that is up in sync."""
    return restarted(cluster, frozenset())


def with_restarted(cluster: Document, batch: frozenset[int]) -> Document:
    """The cluster once these brokers are back: up, in sync, and their controllers alive. All else is as it was."""
    brokers = [{**broker, "fenced": broker["fenced"] and broker["id"] not in batch} for broker in cluster["brokers"]]
    after = {**cluster, "brokers": brokers}
    controllers = [
        {**controller, "alive": True if controller["id"] in batch else controller["alive"]}
        for controller in cluster["controllers"]
    ]
    topics = [
        {
            **topic,
            "partitions": [
                {
                    **partition,
                    "isr": [
                        *partition["isr"],
                        *(
                            one
                            for one in partition["replicas"]
                            if one in batch and one not in partition["isr"] and one not in failed(after, partition)
                        ),
                    ],
                }
                for partition in topic["partitions"]
            ],
        }
        for topic in cluster["topics"]
    ]
    return {**after, "controllers": controllers, "topics": topics}


def takes_nothing(cluster: Document, batch: frozenset[int]) -> bool:
    """Whether every broker of a batch is fenced, and none is in the process of a voter that is alive."""
    fenced = {broker["id"] for broker in cluster["brokers"] if broker["fenced"]}
    living = {one["id"] for one in cluster["controllers"] if one["voter"]} - dead_voters(cluster)
    return batch <= fenced and not batch & living


def may_stop(cluster: Document, batch: frozenset[int], policy: RackPolicy, stop: StopPolicy) -> bool:
    return takes_nothing(cluster, batch) or is_safe(cluster, set(batch), policy, stop)


def fewest_in_order(
    cluster: Document,
    chosen: frozenset[int],
    fits: Callable[[frozenset[int]], bool],
    policy: RackPolicy,
    stop: StopPolicy,
) -> tuple[frozenset[int], int]:
    """The brokers that can be restarted in any order, and the least number of batches, each safe after those before it.

    By every order of all sets that `fits` allows. More brokers that are up forbid nothing, so that one after the other reaches all.
    """
    start, free = caught_up(cluster), frozenset[int]()
    grown = True
    while grown:
        state = with_restarted(start, free)
        more = {one for one in chosen - free if may_stop(state, frozenset({one}), policy, stop)}
        grown, free = bool(more), free | more

    @cache
    def fewest(left: frozenset[int]) -> int:
        if not left:
            return 0
        state = with_restarted(start, free - left)
        batches = (frozenset(batch) for batch in subsets(left) if batch)
        return 1 + min(
            (fewest(left - batch) for batch in batches if fits(batch) and may_stop(state, batch, policy, stop)),
            default=len(free),
        )

    return free, fewest(free)


def subsets(brokers: Iterable[int]) -> Iterable[set[int]]:
    every = sorted(brokers)
    return (set(chosen) for size in range(len(every) + 1) for chosen in combinations(every, size))


Lists = dict[str, list[tuple[str, int, str]]]
GRAVEST_FIRST = ("loses_leader", "refuses_writes", "below_margin", "single_replica", "one_copy")


def lists(cluster: Document, stopped: set[int], policy: RackPolicy, stop: StopPolicy) -> Lists:
    """Topic, partition and reason of what a stop does harm to, by the list that it belongs in; each list sorted."""
    found: Lists = {name: [] for name in (*GRAVEST_FIRST, "without_margin", "accepted", "already")}
    blocking = {"loses_leader", "refuses_writes", "below_margin"}
    blocking |= {"one_copy"} if BlockOn.ONE_COPY in stop.block_on else set()
    blocking |= {"single_replica"} if BlockOn.RF1 in stop.block_on else set()
    for topic in judged_topics(cluster):
        spared = stop.accepted is not None and stop.accepted.fullmatch(topic["name"]) is not None
        for partition in topic["partitions"]:
            name, at = topic["name"], partition["partition"]
            states = [
                (
                    *harm(cluster, topic, in_sync, replicas, factor(partition), stopped, policy, stop.margin),
                    no_margin(topic, replicas, factor(partition), stop.margin),
                    end,
                )
                for in_sync, replicas, end in states_of(cluster, partition)
                if set(in_sync) & stopped
            ]
            harms = [(harmed, reason + end) for harmed, reason, _, end in states if harmed]
            if harms:
                gravest, reason = min(harms, key=lambda one: GRAVEST_FIRST.index(one[0]))
                found["accepted" if spared and gravest in blocking else gravest].append((name, at, reason))
            elif now := harmed_now(cluster, topic, partition, policy):
                found["already"].append((name, at, now))
            kept = [why for harmed, _, why, _ in states if why and harmed in ("", "one_copy", "below_margin")]
            found["without_margin"] += [(name, at, why) for why in kept[:1] if not spared]
    return {name: sorted(partitions) for name, partitions in found.items()}


def harm(
    cluster: Document,
    topic: Document,
    in_sync: list[int],
    replicas: int,
    factor: int,
    stopped: set[int],
    policy: RackPolicy,
    margin: int,
) -> tuple[str, str]:
    """The list of the harm, and the reason; both empty without harm."""
    left = [broker for broker in in_sync if broker not in stopped]
    minimum, racks, required = min(min_replicas(topic), replicas), rack_of(cluster, policy), min_racks(topic, policy)
    if not left and replicas == 1:
        return "single_replica", f"its only replica is on broker {in_sync[0]}"
    if not left:
        return "loses_leader", f"no replica left in sync: in sync now {','.join(map(str, in_sync))}"
    remaining = f"{brokers_in_words(left)} left in sync"
    if len(left) < minimum:
        return "refuses_writes", f"{remaining}, min.insync.replicas requires {minimum}"
    racks_left = len({racks[broker] for broker in left if broker in racks})
    if required > 1 and racks_left < min(required, len({racks[broker] for broker in in_sync if broker in racks})):
        noun = "1 rack" if racks_left == 1 else f"{racks_left} racks"
        return "refuses_writes", f"{noun} left in sync, min.insync.racks requires {required}"
    if not no_margin(topic, replicas, factor, margin) and len(left) < minimum + margin:
        return "below_margin", f"{remaining}, the minimum is {minimum} and the margin {margin}"
    return ("one_copy", remaining) if len(left) == 1 else ("", "")


def no_margin(topic: Document, replicas: int, factor: int, margin: int) -> str:
    """Why the replication factor allows no margin; empty if it does, or if none is required."""
    minimum = min(min_replicas(topic), replicas)
    if not margin or factor - 1 >= minimum + margin:
        return ""
    return f"replication factor {replicas} and minimum {minimum} leave no margin"


def harmed_now(cluster: Document, topic: Document, partition: Document, policy: RackPolicy) -> str:
    """The harm that a partition has without any stop, in words; empty if it has none."""
    up = {broker["id"] for broker in cluster["brokers"] if not broker["fenced"]}
    if partition["leader"] == -2:
        # Its leader is up and not listed, and so is every such broker that is in sync.
        up |= {*partition["isr"]} - {broker["id"] for broker in cluster["brokers"]}
    lost = quorum_lost(cluster, policy, set())
    states = one_after(
        topic, partition, rack_of(cluster, policy), up, failed(cluster, partition), lost, policy, Counter()
    )
    in_sync = brokers_in_words([broker for broker in partition["isr"] if broker in up])
    if "offline" in states:
        return f"it has no leader now; in sync: {in_sync}"
    if "under_min_isr" in states:
        minimum = min(min_replicas(topic), len(partition["replicas"]))
        return f"{in_sync} in sync now, min.insync.replicas requires {minimum}"
    return f"{in_sync} in sync now, min.insync.racks requires {min_racks(topic, policy)}" if states else ""


def brokers_in_words(brokers: list[int]) -> str:
    if not brokers:
        return "no broker"
    return f"broker{'s' if len(brokers) > 1 else ''} {','.join(map(str, brokers))}"
