from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from rackspan.audit import RackPolicy
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, UnrackedPolicy, columns
from rackspan.reassign import ReassignmentRequest, plan
from tests.reassign.instances import cluster
from tests.reassign.plans import cost, targets
from tests.snapshots import of_one_topic


def three_topics(racks: dict[int, str], replicas: list[int], **config: str) -> ClusterSnapshot:
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker), RackId(rack)) for broker, rack in racks.items()),
        topics=tuple(Topic(TopicName(name), config=dotted) for name in ("a", "b", "c")),
        partitions=columns(
            topic=[0, 1, 2],
            partition=[0, 0, 0],
            leader=[replicas[0]] * 3,
            replicas=[replicas] * 3,
            isr=[replicas] * 3,
        ),
    )


FOUR = {1: "a", 2: "a", 3: "b", 4: "b"}


def test_more_replicas_than_brokers_left_names_both_numbers() -> None:
    planned = plan(three_topics(FOUR, [1, 2, 3, 4]), request=ReassignmentRequest(drain=frozenset({4})))
    (conflict,) = cost(planned).infeasible
    assert conflict.reason == "3 topics (a, b, c) have replication factor 4, 3 brokers left to hold replicas"
    assert conflict.remedy == "add brokers, drain fewer, or lower the replication factor"
    assert (conflict.partitions, len(planned)) == (3, 0)


def test_draining_the_last_broker_of_a_rack_that_is_required_is_refused() -> None:
    snapshot = three_topics({1: "a", 2: "a", 3: "b"}, [1, 3], min_insync_racks="2")
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({3})))
    (conflict,) = cost(planned).infeasible
    assert conflict.reason == "3 topics (a, b, c) have min.insync.racks 2, draining 3 leaves 1 rack"
    assert len(planned) == 0


def test_a_drain_that_leaves_one_rack_is_refused_with_what_it_costs_and_made_where_that_is_accepted() -> None:
    snapshot = three_topics({1: "a", 2: "a", 3: "b"}, [1, 3])
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({3})))
    (conflict,) = cost(planned).infeasible
    assert conflict.reason == (
        "3 topics (a, b, c) have 3 partitions that draining 3 would leave in 1 rack instead of 2; "
        "the loss of one rack would then take 3 offline"
    )
    assert conflict.remedy == "drain fewer brokers, or accept it with --allow-fewer-racks"
    assert (conflict.refused, conflict.partitions, len(planned)) == (True, 3, 0)
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({3}), allow_fewer_racks=True))
    assert (cost(planned).infeasible, planned.moves) == ((), 3)


def test_a_drain_that_fills_one_rack_is_refused_where_its_loss_would_stop_writes() -> None:
    """Five replicas in racks of 2, 2 and 3 brokers are spread 2+2+1; without broker 2 and 4 they are 1+1+3."""
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c", 7: "c"}
    snapshot = three_topics(racks, [1, 2, 3, 4, 5], min_insync_replicas="3")
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({2, 4})))
    (conflict,) = cost(planned).infeasible
    assert conflict.reason == (
        "3 topics (a, b, c) have 3 partitions that draining 2,4 would leave "
        "so that the loss of one rack would stop acks=all on 3"
    )


def test_a_broker_that_is_not_listed_is_not_replaced_unless_the_request_says_so() -> None:
    """Before Kafka 4 a broker that restarts is not listed: a plan made meanwhile does not copy what it holds."""
    snapshot = three_topics({1: "a", 2: "b", 4: "c"}, [1, 2, 3])
    planned = plan(snapshot)
    (conflict,) = cost(planned).infeasible
    assert conflict.reason == (
        "3 topics (a, b, c) have 3 partitions on broker 3, which the cluster does not list: "
        "before Kafka 4 that is also a broker that restarts"
    )
    assert conflict.remedy == (
        "wait until it is back; if it is gone for good, add --drain 3, or --replace-missing-brokers"
    )
    assert (conflict.refused, len(planned)) == (True, 0)
    for request in (ReassignmentRequest(drain=frozenset({3})), ReassignmentRequest(replace_missing=True)):
        planned = plan(snapshot, request=request)
        assert (cost(planned).infeasible, planned.moves) == ((), 3)
        assert all(set(one.replicas) == {1, 2, 4} for one in planned.partitions())


def test_several_brokers_that_are_not_listed_are_named_the_first_of_them_and_all_in_the_remedy() -> None:
    snapshot = three_topics({1: "a"}, [1, 9, 7, 8, 6])
    (conflict,) = cost(plan(snapshot)).infeasible
    assert "have 3 partitions on brokers 6, 7, 8, …, which the cluster does not list" in conflict.reason
    assert conflict.remedy == (
        "wait until they are back; if they are gone for good, add --drain 6,7,8,9, or --replace-missing-brokers"
    )
    (three,) = cost(plan(three_topics({1: "a"}, [1, 9, 7, 8]))).infeasible
    assert "3 partitions on brokers 7, 8, 9, which" in three.reason


def test_a_policy_requires_racks_as_a_topic_does() -> None:
    snapshot = three_topics({1: "a", 2: "a", 3: "b"}, [1, 3])
    planned = plan(snapshot, RackPolicy(min_insync_racks=2), ReassignmentRequest(drain=frozenset({3})))
    assert "have min.insync.racks 2" in cost(planned).infeasible[0].reason


def test_a_factor_under_min_insync_replicas_is_refused() -> None:
    snapshot = three_topics(FOUR, [1, 3, 2], min_insync_replicas="2")
    planned = plan(snapshot, request=ReassignmentRequest(replication_factor=1))
    (conflict,) = cost(planned).infeasible
    assert conflict.reason == "3 topics (a, b, c) have min.insync.replicas 2, the requested replication factor is 1"
    assert conflict.remedy == "request 2 or more, or lower min.insync.replicas"
    assert len(planned) == 0


def test_many_topics_are_named_by_the_first_three() -> None:
    snapshot = three_topics({1: "a"}, [1])
    more = ClusterSnapshot(
        brokers=snapshot.brokers,
        topics=tuple(Topic(TopicName(name)) for name in "abcd"),
        partitions=columns(topic=[0, 1, 2, 3], partition=[0] * 4, leader=[1] * 4, replicas=[[1]] * 4, isr=[[1]] * 4),
    )
    planned = plan(more, request=ReassignmentRequest(replication_factor=2))
    assert (
        cost(planned).infeasible[0].reason.startswith("4 topics (a, b, c, …) have replication factor 2, 1 broker left")
    )


def test_partitions_on_the_move_are_left_out_with_a_word() -> None:
    snapshot = three_topics(FOUR, [1, 2])
    moving = ClusterSnapshot(
        brokers=snapshot.brokers,
        topics=snapshot.topics,
        partitions=columns(
            topic=[0, 1, 2],
            partition=[0, 0, 0],
            leader=[1, 1, 1],
            replicas=[[1, 2, 3], [1, 2], [1, 2]],
            isr=[[1, 2]] * 3,
            adding_replicas=[[3], [], []],
            removing_replicas=[[2], [], []],
        ),
    )
    planned = plan(moving)
    assert cost(planned).left_out == (
        "1 partition is moving now: wait for it, or rackspan reassign cancel --in-flight, then plan again",
    )
    assert {topic for topic, _, _ in targets(planned)} == {"b", "c"}


def test_a_partition_under_both_minimums_is_counted_once() -> None:
    snapshot = three_topics({1: "a", 2: "b", 3: "c"}, [1, 2, 3], min_insync_replicas="3", min_insync_racks="3")
    (conflict,) = cost(plan(snapshot, request=ReassignmentRequest(replication_factor=2))).infeasible
    assert conflict.reason == (
        "3 topics (a, b, c) have min.insync.replicas 3 and min.insync.racks 3, the requested replication factor is 2"
    )
    assert conflict.remedy == "request 3 or more, or lower min.insync.replicas and min.insync.racks"
    assert conflict.partitions == 3


def test_a_partition_that_a_drain_and_a_factor_make_impossible_is_counted_once() -> None:
    snapshot = three_topics({1: "a", 2: "b", 3: "c"}, [1, 2, 3], min_insync_replicas="3", min_insync_racks="3")
    request = ReassignmentRequest(replication_factor=2, drain=frozenset({3}))
    assert sum(conflict.partitions for conflict in cost(plan(snapshot, request=request)).infeasible) == 3


def test_a_partition_without_a_leader_is_impossible_and_names_who_was_in_sync() -> None:
    snapshot = three_topics(FOUR, [9], min_insync_replicas="1")
    leaderless = replace(snapshot, partitions=replace(snapshot.partitions, leader=np.full(3, -1, dtype=np.int32)))
    planned = plan(leaderless)
    (conflict,) = cost(planned).infeasible
    assert (
        conflict.reason == "3 topics (a, b, c) have 3 partitions without a leader, which a new replica cannot copy from"
    )
    assert "bring back a replica that was in sync (broker 9)" in conflict.remedy
    assert (conflict.partitions, len(planned), cost(planned).lower_bound) == (3, 0, 0)


def test_a_partition_whose_leader_has_just_stopped_is_without_a_leader() -> None:
    """Broker 2 is still reported as the leader. It is fenced, and nobody else is in sync."""
    snapshot = three_topics({1: "a", 2: "b", 3: "c"}, [2])
    stopped = tuple(replace(one, fenced=one.id == 2) for one in snapshot.brokers)
    planned = plan(replace(snapshot, brokers=stopped), request=ReassignmentRequest(drain=frozenset({2})))
    (conflict,) = cost(planned).infeasible
    assert "3 partitions without a leader" in conflict.reason
    assert len(planned) == 0


def test_a_rack_whose_brokers_are_cordoned_is_named_with_how_that_ends() -> None:
    snapshot = three_topics({1: "a", 2: "a", 3: "b"}, [1, 2])
    cordoned = tuple(replace(one, cordoned=one.id == 3) for one in snapshot.brokers)
    (conflict,) = cost(plan(replace(snapshot, brokers=cordoned))).infeasible
    assert conflict.reason.endswith("need rack b, whose broker 3 is cordoned and can receive nothing")
    assert conflict.remedy == "uncordon broker 3, or --drain 3"


def test_a_rack_of_excluded_brokers_is_named_with_how_the_exclusion_ends() -> None:
    snapshot = three_topics({1: "a", 2: "a", 3: "b"}, [1, 2])
    (conflict,) = cost(plan(snapshot, RackPolicy(excluded_brokers=frozenset({3})))).infeasible
    assert conflict.reason == (
        "3 topics (a, b, c) have partitions that need rack b, whose broker 3 is excluded and can receive nothing"
    )
    assert conflict.remedy == "end the exclusion of 3, or --drain 3"


def test_racks_of_fenced_and_of_excluded_brokers_are_named_with_both_remedies() -> None:
    snapshot = three_topics({1: "a", 2: "a", 3: "b", 4: "c", 5: "c"}, [1, 2])
    fenced = tuple(replace(one, fenced=one.id in (4, 5)) for one in snapshot.brokers)
    policy = RackPolicy(excluded_brokers=frozenset({3}))
    (conflict,) = cost(plan(replace(snapshot, brokers=fenced), policy)).infeasible
    assert conflict.reason == (
        "3 topics (a, b, c) have partitions that need rack b,c, "
        "whose brokers 4,5 are fenced and broker 3 is excluded and can receive nothing"
    )
    assert conflict.remedy == "bring brokers 4,5 back, end the exclusion of 3, or --drain 3,4,5"


def test_a_partition_without_a_leader_takes_no_move_from_those_that_can_be_balanced() -> None:
    snapshot = cluster([[0], [0], [0], [0]], {0: "a", 1: "a"})
    leader = np.array([-1, 0, 0, 0], dtype=np.int32)
    leaderless = replace(snapshot, partitions=replace(snapshot.partitions, leader=leader))
    planned = plan(leaderless, request=ReassignmentRequest(balance=True))
    assert [(partition, replicas) for _, partition, replicas in targets(planned)] == [(1, (1,)), (2, (1,))]
    assert [step.reason for step in planned.steps] == ["in no order yet"]


def test_a_plan_that_states_no_cost_has_nothing_impossible_to_report() -> None:
    planned = plan(three_topics(FOUR, [9], min_insync_replicas="1"))
    assert planned.infeasible == cost(planned).infeasible
    assert len(planned.infeasible) > 0
    assert replace(planned, cost=None).infeasible == ()


def mixed(*rows: tuple[list[int], dict[str, str]], racks: Mapping[int, str | None] = FOUR) -> ClusterSnapshot:
    """A topic of one partition for each of `rows`: its replicas and its config."""
    return ClusterSnapshot(
        brokers=tuple(
            Broker(BrokerId(broker), None if rack is None else RackId(rack)) for broker, rack in racks.items()
        ),
        topics=tuple(Topic(TopicName(f"t{code}"), config=config) for code, (_, config) in enumerate(rows)),
        partitions=columns(
            topic=range(len(rows)),
            partition=[0] * len(rows),
            leader=[replicas[0] for replicas, _ in rows],
            replicas=[replicas for replicas, _ in rows],
            isr=[replicas for replicas, _ in rows],
        ),
    )


def words(snapshot: ClusterSnapshot, request: ReassignmentRequest) -> list[tuple[str, str, int]]:
    return [(one.reason, one.remedy, one.partitions) for one in cost(plan(snapshot, request=request)).infeasible]


def test_each_replication_factor_that_is_too_large_is_a_conflict_of_its_own() -> None:
    snapshot = mixed(([1, 2, 3, 4], {}), ([1, 2, 3], {}), ([1, 2, 3], {}), ([1, 3], {}))
    remedy = "add brokers, drain fewer, or lower the replication factor"
    assert words(snapshot, ReassignmentRequest(drain=frozenset({2, 4}))) == [
        ("2 topics (t1, t2) have replication factor 3, 2 brokers left to hold replicas", remedy, 2),
        ("1 topic (t0) has replication factor 4, 2 brokers left to hold replicas", remedy, 1),
    ]


def test_a_lower_factor_that_costs_safety_names_the_request_and_more_replicas() -> None:
    racks = {1: "a", 2: "b", 3: "c"}
    snapshot = mixed(([1, 2, 3], {}), ([1, 2], {}), racks=racks)
    assert words(snapshot, ReassignmentRequest(replication_factor=2)) == [
        (
            "1 topic (t0) has 1 partition that the request would leave in 2 racks instead of 3",
            "request more replicas, or accept it with --allow-fewer-racks",
            1,
        )
    ]
    assert words(snapshot, ReassignmentRequest(replication_factor=1, drain=frozenset({3}))) == [
        (
            "2 topics (t0, t1) have 2 partitions that draining 3 would leave in 1 rack instead of 2 to 3; "
            "the loss of one rack would then take 2 offline",
            "drain fewer brokers, or request more replicas, or accept it with --allow-fewer-racks",
            2,
        )
    ]


def test_what_is_less_safe_only_once_another_partition_stays_is_left_and_counted_too() -> None:
    racks = {1: "a", 2: "a", 3: "c", 4: None}
    snapshot = mixed(([3, 4, 2], {}), ([4, 2, 3], {"min.insync.replicas": "2"}), racks=racks)
    planned = plan(snapshot, RackPolicy(unracked=UnrackedPolicy.IGNORE), ReassignmentRequest(balance=True))
    assert [(one.reason, one.partitions) for one in cost(planned).infeasible] == [
        (
            "2 topics (t0, t1) have 2 partitions that the request would leave in 1 rack instead of 2; "
            "the loss of one rack would then take 2 offline",
            2,
        )
    ]
    assert targets(planned) == []


def test_each_pair_of_minimums_above_a_requested_factor_is_a_conflict_of_its_own() -> None:
    replicas, racks = {"min.insync.replicas": "3"}, {"min.insync.racks": "2"}
    snapshot = mixed(
        ([1, 3, 2], replicas),
        ([1, 3, 2], racks),
        ([1, 3, 2], {**replicas, **racks}),
        # Above its own factor already: nothing that the request breaks.
        ([1, 3, 2], {"min.insync.replicas": "4"}),
        ([1, 3, 2], {"min.insync.replicas": "1"}),
    )
    request = ReassignmentRequest(replication_factor=1, allow_fewer_racks=True)
    assert words(snapshot, request) == [
        (
            "1 topic (t2) has min.insync.replicas 3 and min.insync.racks 2, the requested replication factor is 1",
            "request 3 or more, or lower min.insync.replicas and min.insync.racks",
            1,
        ),
        (
            "1 topic (t0) has min.insync.replicas 3, the requested replication factor is 1",
            "request 3 or more, or lower min.insync.replicas",
            1,
        ),
        (
            "1 topic (t1) has min.insync.racks 2, the requested replication factor is 1",
            "request 2 or more, or lower min.insync.racks",
            1,
        ),
    ]
    assert [topic for topic, _, _ in targets(plan(snapshot, request=request))] == ["t3", "t4"]


def test_each_minimum_of_racks_that_a_drain_breaks_is_a_conflict_and_one_that_was_not_met_is_none() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "d"}
    held, stays = ([1, 3], [1, 2])
    minimums = [(held, 2), (held, 3), (held, 4), (held, 5), (stays, 3)]
    snapshot = mixed(*((on, {"min.insync.racks": str(least)}) for on, least in minimums), racks=racks)
    request = ReassignmentRequest(drain=frozenset({3, 4}), allow_fewer_racks=True)
    remedy = "drain fewer brokers, or lower min.insync.racks"
    assert words(snapshot, request) == [
        ("1 topic (t1) has min.insync.racks 3, draining 3,4 leaves 2 racks", remedy, 1),
        ("1 topic (t2) has min.insync.racks 4, draining 3,4 leaves 2 racks", remedy, 1),
    ]


def test_in_sync_replicas_of_partitions_without_a_leader_are_named_the_first_of_them() -> None:
    snapshot = mixed(([9, 8], {}), ([7, 8], {}), ([6], {}))
    leaderless = replace(snapshot, partitions=replace(snapshot.partitions, leader=np.full(3, -1, dtype=np.int32)))
    (_, remedy, _), *_ = words(leaderless, ReassignmentRequest())
    assert remedy == "bring back a replica that was in sync (brokers 6, 7, 8, …); then plan again"
    nobody = np.full_like(snapshot.partitions.isr, -1)
    lost = replace(leaderless, partitions=replace(leaderless.partitions, isr=nobody))
    assert words(lost, ReassignmentRequest())[0][1] == "bring back a replica that was in sync; then plan again"


def test_where_some_brokers_of_every_rack_can_receive_all_that_cannot_are_named() -> None:
    snapshot = mixed(([1, 2, 3], {}), racks={1: "a", 2: "a", 3: "b", 4: "b"})
    policy = RackPolicy(excluded_brokers=frozenset({4}))
    (conflict,) = cost(plan(snapshot, policy, ReassignmentRequest(replication_factor=4))).infeasible
    assert conflict.reason == (
        "1 topic (t0) has partitions that need rack b, whose broker 4 is excluded and can receive nothing"
    )


def without_leader(isr: list[int], offline: list[int], fenced: tuple[int, ...] = ()) -> str:
    """The remedy of a partition on brokers 1, 2 and 3 that has no leader and is drained from broker 3."""
    snapshot = of_one_topic(
        {1: "a", 2: "b", 3: "c", 4: "c"},
        [[1, 2, 3]],
        isr=[isr],
        leader=[-1],
        fenced=fenced,
        more={"offline_replicas": [offline]},
    )
    (conflict,) = cost(plan(snapshot, request=ReassignmentRequest(drain=frozenset({3})))).infeasible
    return conflict.remedy


def test_an_unclean_election_comes_last_with_its_condition_and_what_it_loses() -> None:
    lost = "only if the disk of broker 3 is lost for good, an unclean election, which loses the records that the other replicas lack"
    assert without_leader([3], [], fenced=(3,)) == (
        f"bring back a replica that was in sync (broker 3); {lost}; then plan again"
    )
    assert without_leader([3], [3]) == (
        f"bring back a replica that was in sync (broker 3), which needs the disk of broker 3 repaired with what is on it; {lost}; then plan again"
    )


def test_no_unclean_election_is_named_where_a_replica_in_sync_is_up_or_none_is_known_or_none_else_is_up() -> None:
    assert without_leader([1], []) == "bring back a replica that was in sync (broker 1); then plan again"
    assert without_leader([], [3]) == "bring back a replica that was in sync; then plan again"
    assert "unclean" not in without_leader([3], [3], fenced=(1, 2))
