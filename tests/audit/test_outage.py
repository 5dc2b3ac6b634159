import re
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given

from rackspan.audit import RackPolicy, audit, outage, racks_down
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.constraints.wording import down_list
from rackspan.audit.outage import LOSSES_MAX, losses_to_judge
from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId, UnrackedPolicy
from tests.audit import brute_force
from tests.random_clusters.values import drawn
from tests.snapshots import of_one_topic
from tests.strategies import TOPICS, policies, snapshots, with_known_controllers

A, B, C = map(RackId, "abc")


def test_each_rack_each_pair_or_the_named_ones_together_are_lost() -> None:
    assert losses_to_judge([C, A, B], None, False) == [(A,), (B,), (C,)]
    assert losses_to_judge([C, A, B], None, True) == [(A, B), (A, C), (B, C)]
    assert losses_to_judge([C, A, B], ("c", "a", "c"), True) == [(A, C)]


def test_a_rack_that_is_not_in_the_cluster_is_refused_with_those_that_are() -> None:
    with pytest.raises(UsageError) as refused:
        losses_to_judge([B, A], ("a", "z"), False)
    assert str(refused.value) == "rack 'z': not in this cluster; it has a, b"
    with pytest.raises(UsageError, match="it has no racks"):
        losses_to_judge([], ("z",), False)


def test_so_many_losses_are_judged_and_no_more() -> None:
    racks = [RackId(f"r{number}") for number in range(LOSSES_MAX + 1)]
    assert len(losses_to_judge(racks[1:], None, False)) == LOSSES_MAX
    with pytest.raises(UsageError, match="2001 losses to judge; name the ones you mean with --lose RACK,RACK"):
        losses_to_judge(racks, None, False)
    assert len(losses_to_judge(racks, ("r1", "r2"), False)) == 1


@pytest.mark.slow
@given(snapshots())
def test_a_filter_of_topics_leaves_their_harm_as_it_is_and_no_other(snapshot: ClusterSnapshot) -> None:
    name = TOPICS[0]
    for whole, some in zip(
        outage(snapshot, RackPolicy())[1], outage(snapshot, RackPolicy(), re.compile(re.escape(name)))[1], strict=True
    ):
        assert some.topics == tuple(topic for topic in whole.topics if topic.topic == name)
        assert (some.racks, some.quorum) == (whole.racks, whole.quorum)


def cluster(
    *, racks: str = "abcabc", fenced: tuple[int, ...] = (), voters: tuple[Controller, ...] = ()
) -> ClusterSnapshot:
    """Brokers 1 to 6 in racks a, b and c in turn, and a topic of four partitions, of which broker 2 or 5 holds three."""
    of_topic = of_one_topic(dict(enumerate(racks, 1)), [[1, 2], [3, 5, 2], [1, 3], [4, 5]])
    return replace(
        of_topic,
        brokers=tuple(replace(broker, fenced=int(broker.id) in fenced) for broker in of_topic.brokers),
        controllers=voters,
    )


def voter(number: int, rack: str | None, alive: bool | None) -> Controller:
    return Controller(BrokerId(number), None if rack is None else RackId(rack), alive=alive)


def reasons(snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy()) -> list[str]:
    return [lost.reason for lost in racks_down(snapshot, policy)]


@pytest.mark.slow
@given(with_known_controllers(), policies())
def test_the_racks_that_are_down_are_those_that_plain_loops_find(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    agrees(snapshot, policy)


def test_in_random_clusters_too() -> None:
    """Hypothesis seldom fences all of a rack: here every broker is with an even chance."""
    found = Counter[int]()
    for seed in range(200):
        rng = Random(seed)
        snapshot, policy = drawn(rng)
        brokers = tuple(replace(broker, fenced=rng.random() < 0.5) for broker in snapshot.brokers)
        found[agrees(replace(snapshot, brokers=brokers), policy)] += 1
    assert min(found[0], found[1], found[2]) >= 10


def agrees(snapshot: ClusterSnapshot, policy: RackPolicy) -> int:
    expected = brute_force.down(brute_force.document(snapshot), policy)
    found = {
        str(lost.rack): {
            "brokers": list(lost.brokers),
            "controllers": list(lost.controllers),
            "controllers_left": list(lost.controllers_left),
            "partitions": lost.partitions,
        }
        for lost in racks_down(snapshot, policy)
    }
    assert found == expected
    assert audit(snapshot, policy).lost_racks == racks_down(snapshot, policy)
    assert {loss.racks[0]: loss.lost for loss in outage(snapshot, policy)[1]} == {
        rack: rack in expected for rack in brute_force.all_racks(brute_force.document(snapshot), policy)
    }
    return len(expected)


@pytest.mark.slow
@given(with_known_controllers(), policies())
def test_the_loss_of_a_rack_that_is_down_changes_no_partition(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    if policy.unracked is UnrackedPolicy.IGNORE:
        return  # Brokers that count in no rack are taken to be lost with every rack.
    now, losses = outage(replace(snapshot, controllers=()), policy)
    present = {harm.topic: replace(harm, after_reassignment=0) for harm in now.topics}
    for loss in losses:
        if loss.lost:
            harmed = {harm.topic: replace(harm, after_reassignment=0) for harm in loss.topics}
            assert {
                name: harm for name, harm in harmed.items() if harm.offline + harm.under_min_isr + harm.under_min_racks
            } == present
            assert loss.leader_surge == now.leader_surge


def test_a_rack_is_down_once_its_last_broker_is_and_the_sentence_names_all_of_it() -> None:
    assert reasons(cluster(fenced=(2,))) == []
    assert reasons(cluster(fenced=(2, 5))) == ["rack b is down: brokers 2,5; 3 partitions lack a replica"]
    voters = (voter(2, "b", False), voter(1, "a", True), voter(3, "c", True))
    assert reasons(cluster(fenced=(2, 5), voters=voters)) == [
        "rack b is down: brokers 2,5, controller 2; 3 partitions lack a replica"
    ]
    assert reasons(cluster(fenced=(1, 4, 2, 5))) == [
        "rack a is down: brokers 1,4; 3 partitions lack a replica",
        "rack b is down: brokers 2,5; 3 partitions lack a replica",
    ]


def test_a_controller_that_may_respond_is_named_beside_the_brokers_that_do_not() -> None:
    for alive in (True, None):
        assert reasons(cluster(fenced=(2, 5), voters=(voter(102, "b", alive),))) == [
            "rack b is down: brokers 2,5, but not controller 102; 3 partitions lack a replica"
        ]


def test_a_rack_of_controllers_is_down_with_the_last_of_them() -> None:
    one_left = (voter(101, "d", False), voter(102, "d", True))
    assert reasons(cluster(voters=one_left)) == []
    none_left = (voter(101, "d", False), voter(102, "d", False))
    assert reasons(cluster(voters=none_left)) == ["rack d is down: controllers 101,102; 0 partitions lack a replica"]


def test_a_broker_in_controlled_shutdown_is_up_and_so_is_its_rack() -> None:
    """A broker that shuts down gives its leaderships away first: it is fenced only once it is gone."""
    leaderless = cluster(fenced=())
    assert not any(row.leader in (2, 5) for row in leaderless.partitions)
    assert reasons(leaderless) == []


def test_brokers_that_are_not_listed_make_no_rack_of_theirs_down() -> None:
    without = cluster()
    listed = tuple(broker for broker in without.brokers if broker.rack != "b")
    assert reasons(replace(without, brokers=listed)) == []


def test_brokers_without_a_rack_count_as_the_policy_says() -> None:
    rackless = replace(cluster(), brokers=tuple(Broker(BrokerId(one), fenced=one in (2, 5)) for one in range(1, 7)))
    assert reasons(rackless) == []
    assert reasons(rackless, RackPolicy(unracked=UnrackedPolicy.IGNORE)) == []
    assert reasons(rackless, RackPolicy(unracked=UnrackedPolicy.OWN)) == [
        "rack (broker 2) is down: broker 2; 2 partitions lack a replica",
        "rack (broker 5) is down: broker 5; 2 partitions lack a replica",
    ]
    all_down = replace(rackless, brokers=tuple(replace(broker, fenced=True) for broker in rackless.brokers))
    assert reasons(all_down) == ["rack (no rack) is down: brokers 1,2,3,4,5,6; 4 partitions lack a replica"]


def test_a_filter_of_topics_counts_their_partitions_only() -> None:
    down = cluster(fenced=(2, 5))
    assert [lost.partitions for lost in racks_down(down, RackPolicy(), re.compile("no such"))] == [0]


def test_two_racks_are_lost_together_only_if_both_are_down() -> None:
    down = cluster(fenced=(1, 4, 2, 5))
    pairs = outage(down, RackPolicy(), pairs=True)[1]
    assert {"".join(loss.racks): loss.lost for loss in pairs} == {"ab": True, "ac": False, "bc": False}
    assert outage(down, RackPolicy())[0].lost is False


@pytest.mark.parametrize(
    ("voters", "happened"),
    [
        ((), True),
        ((voter(101, "b", False), voter(102, "a", True), voter(103, "c", True)), True),
        ((voter(101, "b", True), voter(102, "a", True), voter(103, "c", True)), True),
        ((voter(101, "b", True), voter(102, "b", True), voter(103, "c", True)), False),
        ((voter(101, "b", False), voter(102, None, True), voter(103, "c", True)), False),
        ((voter(101, None, True), voter(102, None, True), voter(103, None, True)), False),
        ((voter(101, "b", False), voter(102, "a", False), voter(103, "c", True)), True),
        ((voter(101, "b", True), voter(102, None, True), voter(103, "c", True)), False),
    ],
)
def test_the_loss_of_a_rack_that_is_down_has_happened_unless_the_majority_needs_its_controllers(
    voters: tuple[Controller, ...], happened: bool
) -> None:
    down = cluster(fenced=(2, 5), voters=voters)
    assert {loss.racks[0]: (loss.lost, loss.happened) for loss in outage(down, RackPolicy())[1]} == {
        "a": (False, False),
        "b": (True, happened),
        "c": (False, False),
    }


def test_brokers_that_are_down_with_their_rack_are_brought_back_with_it() -> None:
    members = snapshot_batch(cluster(fenced=(2, 5, 3)), RackPolicy()).members
    assert down_list(members, [2]) == down_list(members, [2, 5]) == "rack b"
    assert down_list(members, [3]) == "broker 3"
    assert down_list(members, [2, 3, 9]) == "rack b and brokers 3,9"
    # All of rack c is one broker: its id says as much.
    alone = snapshot_batch(cluster(racks="abcabb", fenced=(3,)), RackPolicy()).members
    assert down_list(alone, [3]) == "broker 3"
    dead = cluster(racks="abcabb", fenced=(3,), voters=(voter(103, "c", False),))
    assert down_list(snapshot_batch(dead, RackPolicy()).members, [103], "controller") == "rack c"


def test_a_remedy_names_the_rack_once_for_all_its_brokers() -> None:
    remedies = {
        finding.remedy
        for finding in audit(cluster(fenced=(2, 5)), RackPolicy()).findings
        if finding.constraint == "fenced-broker"
    }
    assert remedies == {"bring back rack b"}
    one_of_two = audit(cluster(fenced=(2,)), RackPolicy()).findings
    assert [finding.remedy for finding in one_of_two if finding.constraint == "fenced-broker"] == [
        "bring back broker 2"
    ]


def test_a_partition_whose_leader_is_behind_another_listener_is_online_and_may_be_lost_with_any_rack() -> None:
    snapshot = of_one_topic({1: "a", 2: "b"}, [[9, 1]], isr=[[9]], leader=[-2])
    now, losses = outage(snapshot, RackPolicy())
    assert now.topics == ()
    assert [loss.total("offline") for loss in losses] == [1, 1]
