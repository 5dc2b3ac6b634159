"""The remedies of an audit, followed on generated clusters until none is left; then the result, lost rack by rack."""

import os
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random

import pytest

from rackspan import api
from rackspan.audit import Finding, RackPolicy, Severity
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.constraints.remedies import (
    bring_back_racks,
    factor_to_harden,
    move,
    survive_loss,
    target_that_survives,
)
from rackspan.audit.findings import REPAIR_ORDER
from rackspan.audit.policy import Survive
from rackspan.model import ClusterSnapshot, UnrackedPolicy, columns
from rackspan.reassign import ReassignmentRequest
from tests.audit import brute_force, repairs
from tests.snapshots import of_one_topic

STEPS_MAX = 200
"""Far more than any cluster of three topics needs: a remedy that undoes another never ends."""


def violations(snapshot: ClusterSnapshot, policy: RackPolicy) -> list[Finding]:
    return [one for one in api.audit(snapshot, policy).findings if one.severity is Severity.VIOLATION]


def followed(snapshot: ClusterSnapshot, policy: RackPolicy, rng: Random) -> tuple[ClusterSnapshot, list[Finding]]:
    """Follow the first remedy that can be followed, again and again; returns what is left when none can."""
    for _ in range(STEPS_MAX):
        left = violations(snapshot, policy)
        following = (repairs.follow(snapshot, policy, one, rng) for one in left)
        after = next((one for one in following if one is not None), None)
        if after is None:
            return snapshot, left
        snapshot = after
    raise AssertionError(f"after {STEPS_MAX} remedies: {[(one.constraint, one.remedy) for one in left]}")


def follow_to_the_end(seed: int) -> Counter[str]:
    """One generated cluster. Errors: AssertionError, repairs.NothingChanged."""
    rng = Random(seed)
    snapshot, policy = repairs.generated(rng)
    first = violations(snapshot, policy)
    snapshot, left = followed(snapshot, policy, rng)
    ends = Counter({"clean at once" if not first else "clean" if not left else "outside rackspan": 1})
    for finding in left:
        assert cannot_be_met(snapshot, policy, finding), finding
    for _ in range(STEPS_MAX):
        if not left:
            break
        snapshot, policy = repairs.concede(snapshot, policy, left[0])
        snapshot, left = followed(snapshot, policy, rng)
    assert not left
    assert not not_survived(snapshot, policy)
    return ends


def not_survived(snapshot: ClusterSnapshot, policy: RackPolicy) -> list[str]:
    """Everything that a loss the policy names would stop: each rack or broker is lost in turn, by plain loops."""
    cluster = brute_force.document(snapshot)
    racks = brute_force.rack_of(cluster, policy)
    anywhere = {one["id"] for one in cluster["brokers"]} - racks.keys()
    by_rack = [anywhere | {one for one, rack in racks.items() if rack == lost} for lost in sorted(set(racks.values()))]
    losses = {"rack": by_rack, "broker": [{one["id"]} for one in cluster["brokers"]], "none": []}
    alive = {one["id"] for one in cluster["brokers"] if not one["fenced"]}
    stopped = []
    for topic in cluster["topics"]:
        survive = policy.topic_survive.get(topic["name"], policy.survive).value
        k = brute_force.min_racks(topic, policy)
        if survive == "rack" and topic["partitions"] and not by_rack:
            stopped.append(f"{topic['name']}: no rack is known")
        for partition, lost in product(topic["partitions"], losses[survive]):
            left = [one for one in partition["isr"] if one in alive and one not in lost]
            enough = len(left) >= brute_force.required_in_sync(topic, partition)
            if k > 1:
                enough = enough and len({racks[one] for one in left if one in racks}) >= k
            if not left or not enough or partition["leader"] == -1:
                stopped.append(f"{topic['name']}-{partition['partition']} without {sorted(lost)}")
    return stopped + quorum_stopped(cluster, policy)


def quorum_stopped(cluster: brute_force.Document, policy: RackPolicy) -> list[str]:
    """The losses of racks, or of one voter, after which too few voters are left, where any topic has to survive such."""
    survive = {policy.survive.value, *(one.value for one in policy.topic_survive.values())}
    voters = brute_force.voters(cluster, policy)
    racks: list[set[str]] = [set(), *({rack} for rack in voters.values() if rack is not None)]
    left = set(voters) - brute_force.dead_voters(cluster)
    to_lose = racks if "rack" in survive else []
    stopped = [f"quorum without {one}" for one in to_lose if brute_force.quorum_may_be_lost(cluster, policy, one)]
    if "broker" in survive and voters and len(left) - 1 <= len(voters) / 2:
        stopped.append("quorum without a voter")
    return stopped


def cannot_be_met(snapshot: ClusterSnapshot, policy: RackPolicy, finding: Finding) -> bool:
    """Whether no replicas on these brokers, with no value of min.insync.replicas, meet what is required of the topic."""
    cluster = brute_force.document(snapshot)
    racks = Counter(brute_force.rack_of(cluster, policy).values())
    if finding.constraint == "controller-quorum-spread":
        return bool(quorum_stopped(cluster, policy))
    if finding.topic is None:
        return len(racks) < 2
    topic = next(one for one in cluster["topics"] if one["name"] == finding.topic)
    survive = policy.topic_survive.get(finding.topic, policy.survive).value
    if brute_force.left_alone(topic, policy) and finding.remedy.startswith("take survive"):
        # No plan changes where it is, and where it is it does not meet its own racks.
        return True
    required = brute_force.min_racks(topic, policy)
    forced = topic["config"].get("min.insync.racks") != str(required)
    return not some_placement(tuple(sorted(racks.values())), required, forced, survive)


@cache
def some_placement(sizes: tuple[int, ...], k: int, forced: bool, survive: str) -> bool:
    """Try every number of replicas in every rack, with every minimum: lose each rack or broker, try each set in sync."""
    for counts in product(*(range(size + 1) for size in sizes)):
        replicas = [rack for rack, count in enumerate(counts) for _ in range(count)]
        if not replicas:
            continue
        lost_racks = [[one for one in replicas if one != rack] for rack in set(replicas)]
        lost_one = [replicas[:place] + replicas[place + 1 :] for place in range(len(replicas))]
        after = {"rack": lost_racks, "broker": lost_one, "none": [replicas]}[survive]
        least = brute_force.least_forcing([str(one) for one in replicas], k) if forced and k > 1 else 1
        if all(one and len(one) >= least and (k == 1 or len(set(one)) >= k) for one in after):
            return True
    return False


def seeds(first: int, count: int) -> Counter[str]:
    ends = Counter[str]()
    for seed in range(first, first + count):
        try:
            ends += follow_to_the_end(seed)
        except (AssertionError, repairs.NothingChanged) as error:
            raise AssertionError(f"follow_to_the_end({seed}): {error}") from error
    return ends


@pytest.mark.slow
def test_following_every_remedy_ends_clean_or_with_what_no_command_can_do() -> None:
    ends = seeds(0, 60)
    # Each end is reached, so that none of them is passed for want of a case.
    assert min(ends["clean"], ends["outside rackspan"]) > 10


def test_a_value_for_replicas_in_no_rack_is_not_raised_and_lowered_for_ever() -> None:
    assert follow_to_the_end(115_361)["outside rackspan"] == 1


def test_a_replica_that_is_being_copied_has_a_remedy_that_is_a_whole_command_or_none() -> None:
    assert follow_to_the_end(100_108).total() == 1


@pytest.mark.slow
def test_following_every_remedy_of_hundreds_of_clusters_ends_clean_or_with_what_no_command_can_do() -> None:
    assert sum(seeds(1_000, 150).values()) == 150


@pytest.mark.soak
@pytest.mark.skipif("RACKSPAN_SOAK" not in os.environ, reason="RACKSPAN_SOAK=1 runs it")
def test_following_every_remedy_of_twenty_thousand_clusters_ends_clean_or_with_what_no_command_can_do() -> None:
    assert sum(seeds(100_000, 20_000).values()) == 20_000


@pytest.mark.slow
def test_every_constraint_of_a_violation_has_its_place_in_the_order_of_repair() -> None:
    found = {one.constraint for seed in range(200) for one in violations(*repairs.generated(Random(seed)))}
    assert found <= set(REPAIR_ORDER)
    assert len(found) > 9


def one_partition(
    racks: str, replicas: list[int], config: dict[str, str], isr: list[int] | None = None
) -> ClusterSnapshot:
    """Brokers from 1 on, one a letter, a blank for one without a rack; one partition of topic `t`."""
    by_broker = {broker: None if rack == " " else rack for broker, rack in enumerate(racks, start=1)}
    return of_one_topic(by_broker, [replicas], isr=[replicas if isr is None else isr], topic="t", config=config)


def remedies(snapshot: ClusterSnapshot, policy: RackPolicy) -> dict[str, str]:
    return {one.constraint: one.remedy for one in api.audit(snapshot, policy).findings}


PLAN = "rackspan reassign plan --topic t"


def test_replicas_on_a_broker_that_is_gone_are_moved_and_their_minimum_is_left() -> None:
    gone = one_partition("aabbcc", [9, 5], {"min.insync.replicas": "1"})
    assert str(survive_loss(snapshot_batch(gone, RackPolicy()), 0)) == PLAN


def test_racks_that_no_replica_is_on_need_a_plan_and_those_of_lagging_replicas_their_brokers() -> None:
    required = {"min.insync.racks": "2"}
    crowded = snapshot_batch(one_partition("aabbcc", [1, 2], required), RackPolicy())
    assert str(bring_back_racks(crowded, 0)) == f"{PLAN} --replication-factor 3, or lower min.insync.racks"
    lagging = one_partition("abc", [1, 2, 3], required, isr=[1])
    assert remedies(lagging, RackPolicy())["under-min-racks"] == "wait until brokers 2,3 are in sync"
    in_another_order = one_partition("abc", [1, 3, 2], required, isr=[1])
    assert remedies(in_another_order, RackPolicy()) == remedies(lagging, RackPolicy())


def test_brokers_that_are_down_are_brought_back_and_live_ones_are_waited_for() -> None:
    behind = one_partition("abc", [1, 2, 3], {"min.insync.replicas": "2"}, isr=[1])
    fenced = replace(behind, brokers=tuple(replace(one, fenced=one.id == 3) for one in behind.brokers))
    mixed = "bring back broker 3 and wait until broker 2 is in sync"
    assert remedies(fenced, RackPolicy())["under-min-isr"] == mixed
    gone = one_partition("abc", [1, 2, 9], {}, isr=[1, 2])
    assert remedies(gone, RackPolicy())["unknown-broker"] == "bring back broker 9, or rackspan reassign plan --drain 9"


def test_a_broker_that_is_gone_is_not_drained_to_bring_back_others() -> None:
    in_sync_once = one_partition("abcd", [1, 2, 9], {"min.insync.replicas": "2"}, isr=[9])
    assert remedies(in_sync_once, RackPolicy())["under-min-isr"] == "wait until brokers 1,2 are in sync"


def test_a_live_broker_whose_partition_is_offline_is_not_brought_back() -> None:
    """A log directory that failed: the broker is alive, and the ISR still names it."""
    rows = columns(topic=[0], partition=[0], leader=[-1], replicas=[[1, 2]], isr=[[1]])
    failed = replace(one_partition("abc", [1, 2], {}), partitions=rows)
    alive = "see the log of broker 1, which is alive"
    assert remedies(failed, RackPolicy())["offline"] == alive
    down = replace(failed, brokers=tuple(replace(one, fenced=one.id == 1) for one in failed.brokers))
    assert remedies(down, RackPolicy())["offline"] == "bring back broker 1"


def test_harden_names_the_minimum_of_all_topics_and_leaves_out_one_of_the_topic() -> None:
    even, forces = one_partition("abc", [1, 2, 3], {"min.insync.replicas": "1"}), "min-insync-replicas-forces-racks"
    harden = "rackspan acks harden --topic t"
    assert remedies(even, RackPolicy(min_insync_racks=2))[forces] == f"{harden} --min-insync-racks 2"
    assert remedies(even, RackPolicy(topic_min_insync_racks={"t": 2}))[forces] == harden


def target(snapshot: ClusterSnapshot, policy: RackPolicy) -> str:
    return str(target_that_survives(snapshot_batch(snapshot, policy), 0))


def test_a_target_that_does_not_survive_is_replaced_by_one_that_does() -> None:
    one_each = one_partition("abc", [1, 2], {"min.insync.replicas": "2"})
    assert target(one_each, RackPolicy()) == f"{PLAN} --replication-factor 3"
    no_more = one_partition("ab", [1, 2], {"min.insync.replicas": "2"})
    assert target(no_more, RackPolicy()).endswith("--entity-name t --add-config min.insync.replicas=1")
    nowhere = one_partition("aa", [1, 2], {"min.insync.racks": "2"})
    assert target(nowhere, RackPolicy()).startswith("add racks (min.insync.racks 2 needs 3 to lose one)")
    unnamed = one_partition("a b", [1, 2], {"min.insync.replicas": "1"})
    assert target(unnamed, RackPolicy(unracked=UnrackedPolicy.IGNORE)) == (
        "set broker.rack on broker 2: replicas there count in no rack"
    )


def test_a_target_out_of_reach_names_what_to_add_to_lower_or_to_accept() -> None:
    accept = 'or accept it with survive = "{}" for the topic in rackspan.toml'
    alone, pair = one_partition("a", [1], {}), one_partition("ab", [1], {})
    assert target(alone, RackPolicy(survive=Survive.BROKER)) == f"add brokers, {accept.format('none')}"
    assert target(pair, RackPolicy(survive=Survive.BROKER, min_insync_racks=2)) == (
        f"add brokers, or lower min.insync.racks, {accept.format('none')}"
    )
    assert target(pair, RackPolicy(min_insync_racks=2)) == (
        f"add racks (min.insync.racks 2 needs 3 to lose one), or lower min.insync.racks to 1, {accept.format('none')}"
    )
    assert target(alone, RackPolicy(survive=Survive.NONE, min_insync_racks=2)) == (
        "add racks (min.insync.racks 2 needs 2), or lower min.insync.racks to 1"
    )


@pytest.mark.parametrize(("racks", "factor"), [("abc", 3), ("abcd", 4)])
def test_a_topic_is_hardened_with_its_usual_factor_unless_a_partition_would_end_in_fewer_racks(
    racks: str, factor: int
) -> None:
    extra = "d" if len(racks) == 4 else "c"
    by_broker = {**dict(enumerate("abc", start=1)), 4: extra}
    mixed = of_one_topic(by_broker, [[1, 2, 3], [2, 3, 1], [1, 2, 3, 4]], config={"min.insync.replicas": "1"})
    batch = snapshot_batch(mixed, RackPolicy(min_insync_racks=2))
    assert [factor_to_harden(batch, row) for row in range(3)] == [factor] * 3


def test_a_fenced_broker_that_an_even_spread_can_do_without_is_not_brought_back() -> None:
    """Four replicas over three racks: rack a has one broker left, which is as few as an even spread puts there."""
    crowded = one_partition("aabbcc", [3, 4, 5, 6], {})
    for fenced, words in (({1}, ""), ({1, 2}, "bring back rack a; then ")):
        brokers = tuple(replace(one, fenced=int(one.id) in fenced) for one in crowded.brokers)
        batch = snapshot_batch(replace(crowded, brokers=brokers), RackPolicy())
        assert str(move(batch, 0, 4)) == f"{words}{PLAN}"


def test_a_fenced_broker_is_not_brought_back_if_there_are_just_as_many_others_as_a_spread_needs() -> None:
    """Three replicas over two racks: two in rack a and one in rack b, which has one broker left."""
    alone = one_partition("aabb", [1, 2], {})
    brokers = tuple(replace(one, fenced=one.id == 4) for one in alone.brokers)
    batch = snapshot_batch(replace(alone, brokers=brokers), RackPolicy())
    assert str(move(batch, 0, 3)) == f"{PLAN} --replication-factor 3"


def test_brokers_that_are_gone_are_drained_only_where_others_can_receive() -> None:
    gone = one_partition("abc", [1, 16, 9], {}, isr=[1])
    assert remedies(gone, RackPolicy())["unknown-broker"] == (
        "bring back brokers 9,16, or rackspan reassign plan --drain 9,16"
    )
    fenced = replace(gone, brokers=tuple(replace(one, fenced=one.id == 3) for one in gone.brokers))
    assert remedies(fenced, RackPolicy())["unknown-broker"] == "bring back brokers 9,16"


def test_of_several_that_may_have_been_the_last_in_sync_one_is_enough() -> None:
    rows = columns(topic=[0], partition=[0], leader=[-1], replicas=[[1, 2]], isr=[[]])
    none_in_sync = replace(one_partition("abc", [1, 2], {}), partitions=rows)
    assert remedies(none_in_sync, RackPolicy())["offline"] == "see the logs of brokers 1,2, which are alive"
    down = replace(none_in_sync, brokers=tuple(replace(one, fenced=one.id < 3) for one in none_in_sync.brokers))
    assert remedies(down, RackPolicy())["offline"] == "bring back one of brokers 1,2"


def test_a_minimum_above_the_brokers_there_are_is_lowered_and_one_that_they_can_hold_may_be_kept() -> None:
    above, broken = "min-insync-replicas-satisfiable", RackPolicy(survive=Survive.NONE)
    lowered = remedies(one_partition("abc", [1, 2], {"min.insync.replicas": "4"}), broken)[above]
    assert lowered.endswith("--entity-name t --add-config min.insync.replicas=2")
    kept = remedies(one_partition("abc", [1, 2], {"min.insync.replicas": "3"}), broken)[above]
    assert kept == f"{PLAN} --replication-factor 3, or lower min.insync.replicas"


def test_brokers_that_are_excluded_are_not_brought_back() -> None:
    crowded = one_partition("aabb", [3, 4], {})
    brokers = tuple(replace(one, fenced=one.id == 1) for one in crowded.brokers)
    for snapshot, policy, words in (
        (crowded, {1, 2}, "stop excluding brokers 1,2"),
        (replace(crowded, brokers=brokers), {2}, "bring back broker 1 and stop excluding broker 2"),
    ):
        batch = snapshot_batch(snapshot, RackPolicy(excluded_brokers=frozenset(policy)))
        assert str(move(batch, 0, 2)) == f"{words}; then {PLAN}"


def test_a_plan_that_would_end_under_the_minimum_waits_until_it_is_lowered() -> None:
    def wanted(minimum: str) -> str:
        alone = one_partition("ab", [1], {"min.insync.replicas": minimum})
        return str(survive_loss(snapshot_batch(alone, RackPolicy()), 0))

    assert wanted("2") == f"{PLAN} --replication-factor 2"
    assert wanted("3").endswith("--entity-name t --add-config min.insync.replicas=1")


def test_the_last_copies_in_sync_are_not_replaced_and_a_broker_whose_listener_is_missing_is_not_down() -> None:
    racks = {1: "a", 2: "b", 3: "c"}

    def remedies(isr: list[int], leader: int, offline: list[int]) -> list[str]:
        snapshot = of_one_topic(racks, [[1, 9, 2]], isr=[isr], leader=[leader], more={"offline_replicas": [offline]})
        return [one.remedy for one in violations(snapshot, RackPolicy())]

    assert remedies([1, 2], 1, []) == ["bring back broker 9, or rackspan reassign plan --drain 9"]
    # Nobody else is in sync: there is nothing to copy from.
    assert remedies([9], 9, []) == ["bring back broker 9"]
    hidden = ["give the address of a listener that every broker has"]
    assert remedies([1, 9], 1, []) == hidden
    # Broker 9, which is not listed, is the last in sync and leads, since the partition has a leader.
    assert remedies([9], -2, []) == hidden


@pytest.mark.parametrize(
    ("racks", "replicas", "minimum", "factor", "refused"),
    [
        ("abca", [[1, 2], [2, 3], [3, 1, 2]], "1", 3, [2]),
        ("abca", [[1, 4], [1, 4], [1, 4, 2]], "1", 2, []),
        ("abbab", [[1, 2, 3], [4, 2, 3], [1, 4, 2, 5]], "2", 4, [2, 3]),
        ("abbab", [[1, 2, 3], [4, 2, 3], [1, 4, 2, 5]], "1", 3, []),
    ],
)
def test_one_factor_for_all_partitions_is_one_that_can_be_planned(
    racks: str, replicas: list[list[int]], minimum: str, factor: int, refused: list[int]
) -> None:
    """Fewer racks for a partition, or no acks=all after the loss of a rack, is refused without --allow-fewer-racks."""
    config = {"min.insync.replicas": minimum}
    mixed = of_one_topic(dict(enumerate(racks, start=1)), replicas, topic="t", config=config)
    assert remedies(mixed, RackPolicy())["mixed-replication-factors"] == f"{PLAN} --replication-factor {factor}"
    requests = [ReassignmentRequest(topics="t", replication_factor=tried) for tried in range(2, factor + 1)]
    infeasible = [each for each in requests if api.plan_reassignment(mixed, request=each).infeasible]
    assert [each.replication_factor for each in infeasible] == refused
