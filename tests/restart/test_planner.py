"""plan_restart: its batches stopped in turn by plain loops, and the fewest batches by every order of sets of brokers."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from random import Random

import pytest

from rackspan.audit import RackPolicy
from rackspan.model import BrokerId, ClusterSnapshot, Controller, RackId
from rackspan.model.partitions import padded_lists
from rackspan.restart import RestartPlan, RestartRequest, StopPolicy, judge_stop, plan_restart
from rackspan.restart.planner import all_up, left_over_lines
from rackspan.restart.search import LowerBound
from tests.audit.brute_force import dead_voters, document, judged_topics, rack_of, voters
from tests.depth import at_depth
from tests.random_clusters import states
from tests.restart.brute_force import caught_up, fewest_in_order, forbids, may_stop, with_restarted
from tests.restart.clusters import random_cluster, random_policies
from tests.snapshots import of_one_topic


def all_read(snapshot: ClusterSnapshot, policy: RackPolicy) -> tuple[ClusterSnapshot, RackPolicy]:
    """The snapshot without gaps, and a policy by which no two racks may be one: a plan with a gap only names it."""
    topics = tuple(replace(topic, config={"min.insync.replicas": "1", **topic.config}) for topic in snapshot.topics)
    voter = Controller(BrokerId(99), voter=True, alive=True)
    read = replace(
        snapshot,
        partial=(),
        topics=topics,
        controllers=(*snapshot.controllers, voter) if policy.require_controllers else snapshot.controllers,
    )
    racks = [one.rack for one in read.brokers] + [one.rack for one in read.controllers]
    return read, replace(policy, different_racks=frozenset(rack for rack in racks if rack is not None))


def partly_down(rng: Random, snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Some brokers fenced and some controllers dead, as Kafka leaves them: the last replica in sync stays in the ISR."""
    fenced = {int(broker.id) for broker in snapshot.brokers if broker.fenced or rng.random() < 0.4}
    isr = [[one for one in row.isr if one not in fenced] or list(row.isr[:1]) for row in snapshot.partitions]
    return replace(
        snapshot,
        brokers=tuple(replace(broker, fenced=int(broker.id) in fenced) for broker in snapshot.brokers),
        controllers=tuple(
            replace(one, alive=False) if int(one.id) in fenced or rng.random() < 0.2 else one
            for one in snapshot.controllers
        ),
        partitions=replace(snapshot.partitions, isr=padded_lists(isr)),
    )


def a_request(rng: Random, snapshot: ClusterSnapshot) -> RestartRequest:
    every = [int(broker.id) for broker in snapshot.brokers]
    chosen = frozenset(every if rng.random() < 0.5 else rng.sample(every, rng.randint(1, len(every))))
    return RestartRequest(chosen, by_rack=rng.random() < 0.2, max_batch=rng.choice((None, None, None, 1, 2, 3)))


@dataclass
class Followed:
    """A plan, each of whose batches was stopped in turn."""

    gap: int | None
    """Batches above the fewest; None if no broker can be restarted, or too many for every order to be tried."""

    met: set[str]


def follow(seed: int, brokers_most: int, orders_most: int = 6) -> Followed:
    """Asserts everything that a plan states, by plain loops that stop its batches in turn."""
    rng = Random(seed)
    snapshot, (policy, stop) = random_cluster(rng, brokers_most), random_policies(rng)
    snapshot, policy = all_read(partly_down(rng, snapshot) if rng.random() < 0.5 else snapshot, policy)
    request = a_request(rng, snapshot)
    chosen, most = request.brokers or frozenset(), request.max_batch or len(snapshot.brokers)
    plan = plan_restart(snapshot, policy, stop, request)
    cluster, met = document(snapshot), set[str]()
    racks = rack_of(cluster, policy)
    fenced = {broker["id"] for broker in cluster["brokers"] if broker["fenced"]} & chosen
    dead = set(voters(cluster, policy)) & dead_voters(cluster) & chosen
    assert set(plan.down) == fenced | dead, seed
    batches = [frozenset(batch.brokers) for batch in plan.batches]

    def fits(batch: frozenset[int]) -> bool:
        return len(batch) <= most and (not request.by_rack or len({racks.get(broker) for broker in batch}) == 1)

    for number, (brokers, planned) in enumerate(zip(batches, plan.batches, strict=True)):
        assert fits(brokers), seed
        waits = [
            f"{topic['name']}-{partition['partition']}"
            for topic in judged_topics(cluster)
            if stop.accepted is None or stop.accepted.fullmatch(topic["name"]) is None
            for partition in topic["partitions"]
            if forbids(cluster, topic, partition, set(brokers), policy, stop)
        ]
        # What is up and lags is the only thing that a batch may wait for, and then it says so.
        assert may_stop(caught_up(cluster), brokers, policy, stop), (seed, number)
        assert list(planned.waits_for) == waits, (seed, number)
        assert may_stop(cluster, brokers, policy, stop) == (not waits), (seed, number)
        met |= {"waits"} if waits else set()
        cluster = with_restarted(cluster, brokers)
    restarted = frozenset().union(*batches)
    assert sum(map(len, batches)) == len(restarted), seed
    assert {blocked.broker for blocked in plan.blocked if blocked.remedy} == chosen - restarted, seed
    if not request.by_rack:
        assert fenced & restarted <= frozenset().union(*batches[: -(-len(fenced) // most)]), seed
    met |= ({"fenced"} if fenced else set()) | ({"dead voter"} if dead else set())
    free = frozenset(chosen) if len(chosen) > orders_most else None
    if free is not None:
        return Followed(None, met)
    free, fewest = fewest_in_order(document(snapshot), chosen, fits, policy, stop)
    assert free == restarted, seed
    assert plan.lower_bound.batches <= fewest <= len(batches), (seed, plan.lower_bound, fewest)
    return Followed(len(batches) - fewest if free else None, met)


def check_plans(seeds: range, brokers_most: int, orders_most: int = 6) -> Counter[str]:
    followed = [follow(seed, brokers_most, orders_most) for seed in seeds]
    gaps = Counter(plan.gap for plan in followed if plan.gap is not None)
    met = Counter(each for plan in followed for each in plan.met)
    print(f"{len(followed)} plans; batches above the fewest: {dict(gaps)}; with {dict(met)}")
    assert gaps.total() > len(seeds) / 5
    assert max(gaps) <= 1
    assert gaps[0] >= 0.97 * gaps.total()
    return met


@pytest.mark.slow
def test_plans_of_small_clusters_can_be_followed_and_have_the_fewest_batches() -> None:
    met = check_plans(range(at_depth(test=300, check=100)), 7, 5)
    assert met.keys() >= {"fenced", "dead voter", "waits"}


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, 5_000, 500))
def test_plans_of_larger_clusters_can_be_followed_and_have_the_fewest_batches(first: int) -> None:
    check_plans(range(100_000 + first, 100_500 + first), 10, 7)


def brokers_of(plan: RestartPlan) -> list[tuple[int, ...]]:
    return [batch.brokers for batch in plan.batches]


def test_two_brokers_that_are_down_come_first_together() -> None:
    """One of each rack: with either in a batch of its rack, neither batch could begin."""
    snapshot = of_one_topic(
        {1: "a", 2: "b", 3: "a", 4: "b"},
        [[1, 2], [3, 4]],
        isr=[[1], [4]],
        leader=[1, 4],
        fenced={2, 3},
        config={"min.insync.replicas": "1"},
    )
    plan = plan_restart(snapshot)
    assert brokers_of(plan) == [(2, 3), (1, 4)]
    assert (plan.down, plan.batches_if_up) == ((2, 3), 2)
    assert plan.lower_bound == LowerBound(2, "one batch starts what is down, then one batch at least")
    assert [batch.forecast.leaders_moved for batch in plan.batches] == [0, 2]


def test_a_broker_whose_controller_is_dead_comes_first() -> None:
    snapshot = of_one_topic(
        {1: "a", 2: "b", 3: "c"},
        [[3, 1, 2]],
        config={"min.insync.replicas": "1"},
        controllers=tuple(Controller(BrokerId(voter), alive=voter != 3) for voter in (1, 2, 3)),
    )
    plan = plan_restart(snapshot)
    assert brokers_of(plan) == [(3,), (1,), (2,)]
    assert plan.down == (3,)
    assert plan.lower_bound == LowerBound(3, "one batch starts what is down, then 2 controllers, 1 may stop together")


def test_what_is_down_costs_a_batch_if_nobody_may_stop_before_it_is_up() -> None:
    """The only two batches of four have one of each pair that is down; 1 and 4 may never stop together."""
    pairs = [[1, 2], [3, 4], [1, 4]]
    config = {"min.insync.replicas": "1"}
    up = of_one_topic(dict.fromkeys(range(1, 5), "a"), pairs, config=config)
    assert len(plan_restart(up).batches) == 2
    down = of_one_topic(dict.fromkeys(range(1, 5), "a"), pairs, isr=[[1], [4], [1, 4]], fenced={2, 3}, config=config)
    plan = plan_restart(down)
    assert brokers_of(plan)[0] == (2, 3)
    assert (len(plan.batches), plan.lower_bound.batches, plan.batches_if_up) == (3, 3, 2)


def test_what_is_down_stops_with_others_if_that_saves_a_batch() -> None:
    """Broker 3 has a copy elsewhere, so that it may stop before broker 2 is up; broker 1 may not."""
    snapshot = of_one_topic(
        {1: "a", 2: "b", 3: "c"},
        [[1, 2], [1, 3]],
        isr=[[1], [1, 3]],
        fenced={2},
        config={"min.insync.replicas": "1"},
    )
    assert brokers_of(plan_restart(snapshot)) == [(2, 3), (1,)]


def test_a_broker_that_is_down_may_be_restarted_though_it_might_not_stop() -> None:
    """Two replicas and a minimum of two: neither broker may stop while both are up."""
    snapshot = of_one_topic({1: "a", 2: "b"}, [[1, 2]], isr=[[1]], fenced={2}, config={"min.insync.replicas": "2"})
    plan = plan_restart(snapshot)
    assert brokers_of(plan) == [(2,)]
    assert [blocked.broker for blocked in plan.blocked] == [1]
    assert plan.batches_if_up is None


def test_without_a_majority_only_what_is_fenced_is_restarted() -> None:
    """Voters 2 and 3 are dead. Broker 2 is up: its stop would leave partitions without a leader, as nobody elects one."""
    controllers = tuple(Controller(BrokerId(voter), alive=voter not in (2, 3)) for voter in (1, 2, 3))
    one = of_one_topic(
        dict.fromkeys((1, 2, 3), "a"), [[1, 2, 3]], config={"min.insync.replicas": "1"}, controllers=controllers
    )
    assert [blocked.broker for blocked in plan_restart(one).blocked] == [1, 2, 3]
    fenced = of_one_topic(
        dict.fromkeys((1, 2, 3), "a"),
        [[1, 2, 3]],
        isr=[[1, 2]],
        fenced={3},
        config={"min.insync.replicas": "1"},
        controllers=controllers,
    )
    assert brokers_of(plan_restart(fenced))[0] == (3,)
    assert judge_stop(fenced, {3}, RackPolicy()).safe
    assert not judge_stop(fenced, {2}, RackPolicy()).safe


def test_a_batch_names_the_partitions_that_it_waits_for_and_comes_late() -> None:
    """Broker 2 is up and not in sync. Its own restart needs nobody, and that of broker 1 needs it."""
    snapshot = of_one_topic({1: "a", 2: "b"}, [[1, 2]], isr=[[1]], leader=[1], config={"min.insync.replicas": "1"})
    assert [(batch.brokers, batch.waits_for) for batch in plan_restart(snapshot).batches] == [((2,), ()), ((1,), ())]
    only = plan_restart(snapshot, request=RestartRequest(frozenset({1})))
    assert [(batch.brokers, batch.waits_for) for batch in only.batches] == [((1,), ("orders-0",))]


def test_where_all_is_in_sync_no_batch_waits_though_some_topics_are_diskless() -> None:
    clusters = (states.random_cluster(Random(seed), only="diskless topics") for seed in range(20))
    batches = [batch for cluster in clusters for batch in plan_restart(cluster.snapshot()).batches]
    assert {batch.waits_for for batch in batches} == {()}


def test_a_dead_controller_waits_for_those_of_other_racks() -> None:
    """By racks, of five voters one alive: that of broker 1, which is up, may stop only once both racks have brought theirs back."""
    racks = {1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    down = of_one_topic(
        racks,
        [[1]],
        fenced={2, 3, 4, 5},
        config={"min.insync.replicas": "1"},
        controllers=tuple(Controller(BrokerId(voter), alive=voter == 1) for voter in racks),
    )
    plan = plan_restart(down, stop=StopPolicy(accepted=re.compile("orders")), request=RestartRequest(by_rack=True))
    assert brokers_of(plan) == [(2, 3), (4, 5), (1,)]


def test_a_replica_in_a_failed_log_directory_is_not_one_that_will_be_in_sync() -> None:
    racks = {1: "a", 2: "b", 3: "c"}
    snapshot = of_one_topic(
        racks, [[3, 1, 2]], isr=[[1, 2]], config={"min.insync.replicas": "2"}, more={"offline_replicas": [[3]]}
    )
    (row,) = all_up(snapshot, RackPolicy(), frozenset()).partitions
    assert (row.isr, row.leader) == ((1, 2), 1)
    planned = plan_restart(snapshot)
    # Whichever of the two others stops, one is left.
    assert [blocked.broker for blocked in planned.blocked] == [1, 2]
    assert [batch.brokers for batch in planned.batches] == [(3,)]
    repaired = of_one_topic(racks, [[3, 1, 2]], isr=[[1, 2]], config={"min.insync.replicas": "2"})
    assert plan_restart(repaired).blocked == ()


def test_what_nothing_can_restart_is_left_out_unless_it_is_named() -> None:
    """Broker 9 is a registration that Kafka keeps of a process that is a controller only, 4 of one that was taken away."""
    voters = tuple(Controller(BrokerId(one), RackId("a"), alive=True) for one in (9, 11, 12))
    snapshot = of_one_topic({1: "a", 2: "b", 4: "b", 9: "a"}, [[1, 2]], fenced={4, 9}, controllers=voters)
    assert sorted(sum(brokers_of(plan_restart(snapshot)), ())) == [1, 2]
    named = plan_restart(snapshot, request=RestartRequest(frozenset({1, 2, 4, 9})))
    assert sorted(sum(brokers_of(named), ())) == [1, 2, 4, 9]
    warned = " ".join(left_over_lines(snapshot, RackPolicy()))
    assert "broker 4 is fenced" in warned
    assert "broker 9 is fenced" in warned
    # What could not be read may be on it, and a voter that is down is a process that somebody runs.
    assert sorted(sum(brokers_of(plan_restart(replace(snapshot, partial=("topics",)))), ())) == [1, 2, 4, 9]
    dead = replace(snapshot, controllers=(replace(voters[0], alive=False), *voters[1:]))
    assert sorted(sum(brokers_of(plan_restart(dead)), ())) == [1, 2, 9]
