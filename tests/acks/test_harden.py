"""Harden held against every in-sync set there can be, and against worked cases."""

import re
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.acks import HardenAdvice, HardenOutcome
from rackspan.acks.harden import harden, stopped_once_set, values_to_set
from rackspan.acks.wording import remedies
from rackspan.audit import RackPolicy, audit
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.constraints import PARTITION_CONSTRAINTS
from rackspan.audit.constraints.remedies import factor_to_harden, plan_before_hardening
from rackspan.audit.findings import PlanRemedy
from rackspan.audit.policy import Survive
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot, Topic, UnrackedPolicy, columns
from tests.audit.brute_force import Document, document, min_racks, min_replicas, rack_of, staying
from tests.snapshots import of_one_topic
from tests.strategies import broker_ids, policies, snapshots


def cluster(
    racks: str, *replicas: list[int], min_insync_replicas: int = 1, removing: list[int] | None = None
) -> ClusterSnapshot:
    """Broker i is in rack racks[i], `-` for none."""
    return of_one_topic(
        {broker: None if rack == "-" else rack for broker, rack in enumerate(racks)},
        replicas,
        config={"min.insync.replicas": str(min_insync_replicas)},
        more={"removing_replicas": [removing or []] * len(replicas)},
    )


def advice(snapshot: ClusterSnapshot, k: int, unracked: UnrackedPolicy = UnrackedPolicy.SHARED) -> HardenAdvice:
    (one,) = harden(snapshot, RackPolicy(min_insync_racks=k, unracked=unracked))
    return one


def racks_in(brokers: tuple[int, ...], racks: dict[int, str]) -> int:
    return len({racks[broker] for broker in brokers if broker in racks})


def forces(value: int, replica_sets: list[list[int]], racks: dict[int, str], k: int) -> bool:
    """Whether no in-sync set of any partition has `value` members, or all there are, on fewer than k racks."""
    return all(
        racks_in(in_sync, racks) >= k
        for replicas in replica_sets
        for size in range(min(value, len(replicas)), len(replicas) + 1)
        for in_sync in combinations(replicas, size)
    )


@pytest.mark.slow
@given(snapshots(), policies())
def test_the_least_value_is_the_least_of_all_that_force_the_racks(
    snapshot: ClusterSnapshot, policy: RackPolicy
) -> None:
    plain = document(snapshot)
    racks, topics = rack_of(plain, policy), {topic["name"]: topic for topic in plain["topics"]}
    advised = harden(snapshot, policy)
    assert [one.topic for one in advised] == [name for name, topic in topics.items() if topic["partitions"]]
    for one in advised:
        sets = [staying(partition) for partition in topics[one.topic]["partitions"]]
        k = min_racks(topics[one.topic], policy)
        assert one.current == min_replicas(topics[one.topic])
        if k == 1:
            assert (one.outcome, one.least, one.losses, one.better) == (HardenOutcome.NOTHING_REQUIRED, 1, (), ())
            continue
        least = next((value for value in range(1, 99) if forces(value, sets, racks, k)), None)
        assert (one.outcome is HardenOutcome.IMPOSSIBLE) == (least is None)
        assert least in (None, one.least)
        assert (one.outcome is HardenOutcome.SUFFICES) == forces(one.current, sets, racks, k)
        assert one.too_few_racks == sum(racks_in(tuple(held), racks) < k for held in sets)


@pytest.mark.slow
@given(snapshots(), policies())
def test_a_loss_costs_what_the_survivors_of_each_partition_say(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    plain = document(snapshot)
    racks, topics = rack_of(plain, policy), {topic["name"]: topic for topic in plain["topics"]}
    for one in harden(snapshot, policy):
        value, k = max(one.least, one.current), one.min_insync_racks
        expected: dict[str, list[int]] = {}
        if k == 1 or one.outcome is HardenOutcome.IMPOSSIBLE:
            assert one.losses == ()
            continue
        for lost, partition in product(sorted(set(racks.values())), topics[one.topic]["partitions"]):
            left = tuple(broker for broker in staying(partition) if racks.get(broker) != lost)
            rule_allows = racks_in(left, racks) >= k
            if len(left) < min(value, len(staying(partition))):
                expected.setdefault(lost, [0, 0])[0 if rule_allows else 1] += 1
            else:
                assert rule_allows, "a forcing value lets nothing through that the rack rule refuses"
        assert {loss.rack: [loss.stopped_by_value, loss.stopped_by_both] for loss in one.losses} == expected


@pytest.mark.slow
@given(snapshots(), policies())
def test_audit_finds_nothing_left_to_force_once_the_advice_is_taken(
    snapshot: ClusterSnapshot, policy: RackPolicy
) -> None:
    raised = {one.topic: str(one.least) for one in harden(snapshot, policy) if one.outcome is HardenOutcome.RAISE}
    hardened = ClusterSnapshot(
        brokers=snapshot.brokers,
        partitions=snapshot.partitions,
        topics=tuple(
            Topic(
                topic.name, topic.topic_id, topic.internal, {**topic.config, "min.insync.replicas": raised[topic.name]}
            )
            if topic.name in raised
            else topic
            for topic in snapshot.topics
        ),
    )
    assert raised.keys() <= not_forced(snapshot, policy)
    assert not raised.keys() & not_forced(hardened, policy)


def not_forced(snapshot: ClusterSnapshot, policy: RackPolicy) -> set[str | None]:
    batch = snapshot_batch(snapshot, policy)
    (forces,) = (one for one in PARTITION_CONSTRAINTS if one.name == "min-insync-replicas-forces-racks")
    return {one.topic for one in forces.findings(batch)}


WORKED = [
    # racks, replicas, k, current -> outcome, least, racks stopped by the value alone, by both, spreads that do better
    ("abcabc", [0, 3, 1, 4, 2], 2, 2, "raise", 3, "", "", []),
    ("abcabc", [0, 3, 1, 4, 2], 2, 3, "suffices", 3, "", "", []),
    ("abcabc", [0, 3, 1, 4, 2], 3, 2, "raise", 5, "", "abc", [(2, 2, 2)]),
    ("abc", [0, 1, 2], 2, 1, "raise", 2, "", "", []),
    ("abc", [0, 1, 2], 2, 3, "suffices", 2, "abc", "", []),
    ("abc", [0, 1, 2], 3, 2, "raise", 3, "", "abc", []),
    ("abcabc", [0, 3, 1, 2], 2, 2, "unsafe", 3, "a", "", [(2, 2, 1)]),
    ("abab", [0, 2, 1], 2, 2, "raise", 3, "", "ab", [(2, 2)]),
    ("abab", [0, 2, 1, 3], 2, 2, "raise", 3, "", "ab", []),
    ("ababc", [0, 2], 2, 1, "impossible", 3, "", "", [(1, 1), (1, 1, 1)]),
    ("abab", [0, 2], 2, 1, "impossible", 3, "", "", [(1, 1), (2, 2)]),
    ("aaaa", [0, 1, 2], 2, 2, "impossible", 4, "", "", []),
    ("aaaabc", [0, 1, 2, 3], 2, 2, "impossible", 5, "", "", [(1, 1, 1)]),
    ("abc", [0, 1, 2], 2, 4, "suffices", 2, "abc", "", []),
    ("abc", [0, 1, 2], 1, 2, "nothing-asked", 1, "", "", []),
    ("a--", [0, 1, 2], 2, 2, "raise", 3, "", "-a", []),
    ("abc", [0, 1, 9], 2, 2, "raise", 3, "", "ab", [(1, 1, 1)]),
]


@pytest.mark.parametrize(("racks", "replicas", "k", "current", "outcome", "least", "price", "both", "better"), WORKED)
def test_worked_case(
    racks: str,
    replicas: list[int],
    k: int,
    current: int,
    outcome: str,
    least: int,
    price: str,
    both: str,
    better: list[tuple[int, ...]],
) -> None:
    one = advice(cluster(racks, replicas, min_insync_replicas=current), k)
    assert (one.outcome, one.least) == (outcome, least)
    assert "".join(loss.rack or "-" for loss in one.losses if loss.stopped_by_value) == price
    assert "".join(loss.rack or "-" for loss in one.losses if loss.stopped_by_both) == both
    assert [spread.counts for spread in one.better] == better


def test_the_most_demanding_partition_decides_for_the_topic() -> None:
    one = advice(cluster("abcabc", [0, 1, 2], [0, 3, 1], [1, 4, 2]), 2)
    assert (one.least, one.decided_by, one.spread, one.partitions) == (3, 1, (2, 1), 3)


def test_a_value_above_a_smaller_replication_factor_forces_its_racks_too() -> None:
    one = advice(cluster("abcabc", [0, 3, 1, 4, 2], [0, 1]), 2)
    assert (one.outcome, one.least, one.smallest_replication_factor, one.too_few_racks) == ("raise", 3, 2, 0)
    assert [(loss.rack, loss.stopped_by_value, loss.stopped_by_both) for loss in one.losses] == [
        ("a", 0, 1),
        ("b", 0, 1),
    ]


def test_a_value_above_a_replication_factor_cannot_force_racks_its_replicas_are_not_on() -> None:
    one = advice(cluster("abcabc", [0, 3, 1, 4, 2], [0, 3], min_insync_replicas=9), 2)
    assert (one.outcome, one.too_few_racks, one.losses) == ("impossible", 1, ())


def test_a_rackless_replica_that_counts_in_no_rack_raises_the_value() -> None:
    snapshot = cluster("ab-", [0, 1, 2])
    assert advice(snapshot, 2, UnrackedPolicy.IGNORE).least == 3
    assert advice(snapshot, 2, UnrackedPolicy.OWN).least == 2


@pytest.mark.parametrize("unracked", [0, 1, 2])
def test_no_better_placement_is_named_before_each_broker_with_a_replica_counts_in_a_rack(unracked: int) -> None:
    """No plan moves a replica that counts in no rack, whichever broker has it."""
    racks = "abc"[:unracked] + "-" + "abc"[unracked:]
    one = advice(cluster(racks, [0, 1, 2]), 2, UnrackedPolicy.IGNORE)
    assert (one.first, one.better) == (
        f"set broker.rack on broker {unracked}: replicas there count in no rack",
        (),
    )


def test_a_partition_on_the_move_is_judged_by_where_it_leads() -> None:
    one = advice(cluster("aab", [0, 1, 2], removing=[1]), 2)
    assert (one.least, one.smallest_replication_factor, one.moving) == (2, 2, 1)


def test_topics_are_chosen_by_their_whole_name() -> None:
    snapshot = cluster("ab", [0, 1])
    policy = RackPolicy(min_insync_racks=2)
    assert [one.topic for one in harden(snapshot, policy, re.compile("ord.*"))] == ["orders"]
    assert harden(snapshot, policy, re.compile("ord")) == []


def test_a_policy_that_allows_no_rackless_broker_is_obeyed() -> None:
    with pytest.raises(UsageError) as refusal:
        harden(cluster("a-", [0, 1]), RackPolicy(unracked=UnrackedPolicy.ERROR, min_insync_racks=2))
    assert str(refusal.value) == (
        "brokers without a rack: 1; set broker.rack on them, or choose --unracked shared, own or ignore"
    )


def test_a_value_that_a_lost_rack_brings_the_topic_under_is_reported_before_it_is_set() -> None:
    uneven, policy = cluster("abca", [0, 3, 1]), RackPolicy(min_insync_racks=2)
    (stopped,) = stopped_once_set(uneven, policy, harden(uneven, policy))
    assert stopped.constraint == "accepts-writes-after-rack-loss"
    assert stopped.remedy == "rackspan reassign plan --topic orders"
    even = cluster("abca", [0, 1, 2])
    assert stopped_once_set(even, policy, harden(even, policy)) == []


def test_a_value_that_stops_what_a_loss_does_not_stop_now_is_not_set() -> None:
    """2/1/1 without its fullest rack: two racks and two replicas, which 2 accepts and 3 refuses."""
    snapshot, policy = cluster("abcabc", [0, 3, 1, 2], min_insync_replicas=2), RackPolicy(min_insync_racks=2)
    assert [one.constraint for one in audit(snapshot, policy).findings if "-loss" in one.constraint] == []
    advised = harden(snapshot, policy)
    assert [(one.outcome, one.stopped) for one in advised] == [(HardenOutcome.UNSAFE, 1)]
    assert values_to_set(advised) == {}
    # Where the loss need not be survived, the value costs nothing that is required.
    assert values_to_set(harden(snapshot, replace(policy, survive=Survive.NONE))) == {"orders": 3}


def test_a_value_that_refuses_at_once_waits_for_the_replica_that_is_missing() -> None:
    whole = cluster("abc", [0, 1, 2])
    short = replace(whole, partitions=columns(topic=[0], partition=[0], leader=[0], replicas=[[0, 1, 2]], isr=[[0]]))
    assert advice(whole, 2).outcome is HardenOutcome.RAISE
    one = advice(short, 2)
    assert (one.outcome, one.stopped, one.refused_at_once) == (HardenOutcome.UNSAFE, 0, 1)
    assert one.first == "wait until brokers 1,2 are in sync"


def test_one_partition_with_more_replicas_is_brought_to_the_factor_of_the_others_first() -> None:
    eleven = [[at % 6, (at + 1) % 6, (at + 2) % 6] for at in range(11)]
    one = advice(cluster("abcabc", *eleven, [0, 3, 1, 2]), 2)
    assert (one.outcome, one.least, one.stopped) == (HardenOutcome.UNSAFE, 3, 12)
    assert one.first == "rackspan reassign plan --topic orders --replication-factor 3"


@pytest.mark.slow
@given(snapshots(), policies(), st.frozensets(broker_ids, max_size=2))
def test_the_first_partition_that_blocks_the_plan_before_hardening_is_named(
    snapshot: ClusterSnapshot, policy: RackPolicy, excluded: frozenset[int]
) -> None:
    policy = replace(policy, excluded_brokers=excluded)
    batch, plain = snapshot_batch(snapshot, policy), document(snapshot)
    for topic, code in zip(plain["topics"], range(len(plain["topics"])), strict=True):
        rows = np.flatnonzero(batch.rows.topic == code)
        if len(rows) and (factor := factor_to_harden(batch, int(rows[0]))) is not None:
            blocked = [blocks(plain, policy, partition, factor) for partition in topic["partitions"]]
            found, alone = plan_before_hardening(batch, rows), blocked.index(True) if any(blocked) else 0
            assert isinstance(found, PlanRemedy) == (not any(blocked))
            assert found == plan_before_hardening(batch, rows[[alone]])


def blocks(cluster: Document, policy: RackPolicy, partition: Document, factor: int) -> bool:
    """Whether no plan can spread a partition evenly now, by every way to spread so many replicas over the racks."""
    racks, held = rack_of(cluster, policy), staying(partition)
    if partition["adding_replicas"] or partition["removing_replicas"]:
        return True
    brokers = [broker["id"] for broker in cluster["brokers"]]
    if racks and any(broker in brokers and broker not in racks for broker in held):
        return True
    racks = racks or dict.fromkeys(brokers, "")
    down = {broker["id"] for broker in cluster["brokers"] if broker["fenced"]} | policy.excluded_brokers
    names = sorted(set(racks.values()))
    sizes = [list(racks.values()).count(name) for name in names]
    able = [sum(racks[one] == name and (one not in down or one in held) for one in racks) for name in names]
    ways = [way for way in product(*(range(size + 1) for size in sizes)) if sum(way) == min(factor, sum(sizes))]
    evenest = min(sum(count**2 for count in way) for way in ways)
    return not any(
        sum(count**2 for count in way) == evenest and all(count <= can for count, can in zip(way, able, strict=True))
        for way in ways
    )


@pytest.mark.slow
@given(snapshots(), policies())
def test_what_is_not_reported_before_a_value_is_set_is_not_found_after_it(
    snapshot: ClusterSnapshot, policy: RackPolicy
) -> None:
    advised = harden(snapshot, policy)
    values = values_to_set(advised)
    reported = {(one.topic, one.partition) for one in stopped_once_set(snapshot, policy, advised)}
    topics = tuple(
        replace(one, config={**one.config, "min.insync.replicas": str(values.get(one.name, min_replicas_of(one)))})
        for one in snapshot.topics
    )
    found = audit(replace(snapshot, topics=topics), policy).findings
    lost = {(one.topic, one.partition) for one in found if "-loss" in one.constraint and one.topic in values}
    assert reported == lost


def min_replicas_of(topic: Topic) -> int:
    return int(topic.config.get("min.insync.replicas", 1))


def test_a_value_that_a_broker_which_is_down_is_needed_for_waits_until_it_is_back() -> None:
    """Replicas in racks a, a, b, b, c: 3 force two racks. The brokers that are down are in the ISR still."""
    five = cluster("aabbc", [0, 1, 2, 3, 4])
    assert advice(five, 2).outcome is HardenOutcome.RAISE
    # With the loss of rack a two are left in sync, in racks b and c; without three brokers there are two now.
    for down, stopped, at_once, words in (({3}, 1, 0, "broker 3"), ({1, 3, 4}, 0, 1, "brokers 1,3,4")):
        fenced = tuple(replace(one, fenced=one.id in down) for one in five.brokers)
        one = advice(replace(five, brokers=fenced), 2)
        assert (one.outcome, one.least, one.stopped, one.refused_at_once) == (HardenOutcome.UNSAFE, 3, stopped, at_once)
        assert one.first == f"bring back {words}"


def test_a_topic_whose_placement_is_left_alone_is_placed_anew_first() -> None:
    alone = RackPolicy(topic_survive={"orders": Survive.NONE}, topic_min_insync_racks={"orders": 2})
    (one,) = harden(cluster("ab", [0]), alone)
    assert one.outcome is HardenOutcome.IMPOSSIBLE
    assert one.first == 'take survive = "none" for the topic out of rackspan.toml'


def test_a_topic_of_which_one_rack_is_required_gains_nothing_from_another_placement() -> None:
    crowded = cluster("aabb", [0, 1])
    assert advice(crowded, 2).better
    assert (advice(crowded, 1).losses, advice(crowded, 1).better) == ((), ())


def test_a_placement_with_fewer_replicas_than_are_required_in_sync_is_not_proposed() -> None:
    """Replication factor 3 would survive a rack, and no plan takes four replicas in sync from a topic that requires them."""
    one = advice(cluster("abcab", [0, 3, 1, 4], min_insync_replicas=4), 2)
    assert {spread.replication_factor for spread in one.better} <= {4, 5}
    in_one_rack = advice(cluster("aaaabc", [0, 1, 2, 3], min_insync_replicas=4), 2)
    assert in_one_rack.outcome is HardenOutcome.IMPOSSIBLE
    assert [spread.replication_factor for spread in in_one_rack.better] == [4]


def test_more_in_sync_replicas_than_there_are_brokers_are_lowered_first() -> None:
    too_many = advice(cluster("aab", [0, 1], min_insync_replicas=4), 2)
    assert too_many.outcome is HardenOutcome.IMPOSSIBLE
    assert remedies(too_many) == [
        "first: lower min.insync.replicas to 3, as many as there are brokers in racks; then harden again"
    ]
