"""Topics with `survive = "none"` of their own stay where they are, judged by plain loops: only what must leave a broker moves, in its rack."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from rackspan import api
from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.plan.reassignment_file import read_reassignment
from rackspan.reassign import ReassignmentRequest, lint
from tests.audit.test_judge import with_diskless

RACKS = {broker: "abc"[broker % 3] for broker in range(1, 10)}
LOCAL, SPREAD = "local", "spread"
POLICY = RackPolicy(topic_survive={LOCAL: Survive.NONE})


def cluster(
    local: list[list[int]],
    spread: Sequence[list[int]] = (),
    *,
    fenced: frozenset[int] = frozenset(),
    gone: bool = False,
) -> ClusterSnapshot:
    """Nine brokers in three racks, and two topics. `gone`: broker 9 is not listed."""
    replicas = [*local, *spread]
    isr = [[one for one in row if one not in fenced and not (gone and one == 9)] for row in replicas]
    return ClusterSnapshot(
        brokers=tuple(
            Broker(BrokerId(one), RackId(rack), one in fenced) for one, rack in RACKS.items() if not (gone and one == 9)
        ),
        topics=tuple(Topic(TopicName(name), config={"min.insync.replicas": "1"}) for name in (LOCAL, SPREAD)),
        partitions=columns(
            topic=[0] * len(local) + [1] * len(spread),
            partition=[*range(len(local)), *range(len(spread))],
            leader=[row[0] if row else -1 for row in isr],
            replicas=replicas,
            isr=isr,
        ),
    )


def moved(snapshot: ClusterSnapshot, request: ReassignmentRequest) -> dict[tuple[str, int], tuple[int, ...]]:
    planned = api.plan_reassignment(snapshot, POLICY, request)
    return {(one.topic, one.partition): one.replicas for one in planned.partitions()}


IN_ONE_RACK = [[3, 6], [6, 3], [1, 4], [4, 1]]


def test_leaders_of_topics_that_stay_count_where_the_others_are_made_even() -> None:
    """Broker 1 leads four that stay. Of the six that others could lead it keeps none, brokers 2 and 3 get three each."""
    there = moved(cluster([[1, 4]] * 4, [[1, 2, 3]] * 6), ReassignmentRequest())
    led = [there.get((SPREAD, number), (1, 2, 3))[0] for number in range(6)]
    assert sorted(led) == [2, 2, 2, 3, 3, 3]
    assert {name for name, _ in there} == {SPREAD}


@pytest.mark.parametrize("request_", [ReassignmentRequest(), ReassignmentRequest(balance=True)])
def test_a_topic_that_may_be_in_one_rack_stays_there_and_others_are_spread(request_: ReassignmentRequest) -> None:
    there = moved(cluster(IN_ONE_RACK, [[3, 6]]), request_)
    assert [name for name, _ in there] == [SPREAD]
    assert len({RACKS[one] for one in there[SPREAD, 0]}) == 2


def test_what_a_drained_broker_holds_goes_to_its_rack_and_nothing_else_moves() -> None:
    rng, blocked = Random(27), 0
    for _ in range(200):
        local = [rng.sample(sorted(RACKS), rng.randint(1, 4)) for _ in range(6)]
        leaving = frozenset(rng.sample(sorted(RACKS), 2))
        fenced = frozenset({rng.randint(1, 9)}) - leaving
        snapshot = cluster(local, fenced=fenced)
        planned = api.plan_reassignment(snapshot, POLICY, ReassignmentRequest(drain=leaving))
        there = {one.partition: list(one.replicas) for one in planned.partitions()}
        for number, row in enumerate(local):
            after = there.get(number, row)
            assert [RACKS[one] for one in after] == [RACKS[one] for one in row]
            assert len(set(after)) == len(after)
            kept = [one for one in row if one not in leaving]
            assert [one for one in after if one in row] == (row if number not in there else kept)
            assert not (set(after) - set(row)) & (leaving | fenced)
            if number not in there and leaving & set(row):
                # It could not: of some rack that a replica has to leave no broker is left, or it has no leader.
                lacking = [
                    one
                    for one in set(row) & leaving
                    if sum(RACKS[other] == RACKS[one] for other in RACKS if other not in {*row, *leaving, *fenced})
                    < sum(RACKS[other] == RACKS[one] for other in set(row) & leaving)
                ]
                assert lacking or not set(row) - fenced
                blocked += 1
        copies = sum(len(set(after) - set(local[number])) for number, after in there.items())
        assert planned.cost is not None
        assert (planned.cost.lower_bound, planned.moves) == (copies, copies)
    assert blocked > 10


def test_a_broker_that_is_gone_is_replaced_in_the_rack_of_the_others() -> None:
    snapshot = cluster([[9, 3], [9, 1]], gone=True)
    assert moved(snapshot, ReassignmentRequest()) == {}
    for request in (ReassignmentRequest(replace_missing=True), ReassignmentRequest(drain=frozenset({9}))):
        there = moved(snapshot, request)
        assert [{RACKS[one] for one in there[LOCAL, number]} for number in (0, 1)] == [{"a"}, {"b"}]


def test_what_is_not_done_has_a_reason_and_a_way_out() -> None:
    alone = cluster([[3, 6, 9]])
    factor = api.plan_reassignment(alone, POLICY, ReassignmentRequest(replication_factor=2))
    full = api.plan_reassignment(alone, POLICY, ReassignmentRequest(drain=frozenset({3})))
    assert [(one.reason, one.remedy) for plan in (factor, full) for one in plan.infeasible] == [
        (
            '1 topic (local) has 1 partition whose placement is left alone (survive = "none"): replication factor 2 is not planned',
            'take survive = "none" for the topic out of rackspan.toml',
        ),
        (
            '1 topic (local) has 1 partition whose placement is left alone (survive = "none"), in a rack where no other broker can receive a replica',
            'add brokers there, bring those that are down back, drain fewer, or take survive = "none" for the topic out of rackspan.toml',
        ),
    ]
    assert full.cost is not None
    assert full.cost.left_out == ('1 topic (local) has survive = "none": each replica stays in its rack',)


def test_one_flag_for_all_topics_leaves_none_alone() -> None:
    """Only a line about the topic itself says that it is in one rack on purpose."""
    everywhere = api.plan_reassignment(cluster(IN_ONE_RACK), RackPolicy(survive=Survive.NONE))
    assert len(everywhere) == len(IN_ONE_RACK)


def test_the_load_of_topics_that_stay_is_no_reason_to_balance() -> None:
    """Brokers 3 and 6 hold six replicas each of the topic, and the other topic is level."""
    level = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    snapshot = cluster([[3, 6], [6, 3]] * 3, level)
    found = {one.constraint for one in api.audit(snapshot, POLICY).findings}
    assert not found & {"rack-spread", "replica-balance", "byte-balance", "leader-balance", "rack-leader-balance"}
    assert "replica-balance" in {one.constraint for one in api.audit(snapshot, RackPolicy()).findings}
    assert moved(snapshot, ReassignmentRequest(balance=True)) == {}


def test_a_file_that_moves_such_a_topic_is_its_owners_business() -> None:
    snapshot = cluster([[3, 1]])
    document = read_reassignment('{"version":1,"partitions":[{"topic":"local","partition":0,"replicas":[3,6]}]}')
    assert [one.constraint for one in lint(snapshot, POLICY, document)] == []
    assert {one.constraint for one in lint(snapshot, RackPolicy(), document)} >= {"rack-spread"}


def test_what_refuses_its_writes_now_is_still_found() -> None:
    behind = cluster([[3, 6]], fenced=frozenset({6}))
    strict = replace(behind, topics=(replace(behind.topics[0], config={"min.insync.replicas": "2"}), behind.topics[1]))
    assert "under-min-isr" in {one.constraint for one in api.audit(strict, POLICY).findings}


def test_racks_that_all_topics_require_are_not_required_of_it_and_its_own_are() -> None:
    snapshot = cluster([[3, 6]])
    general = replace(POLICY, min_insync_racks=2)
    assert not [
        one for one in api.audit(snapshot, general).findings if one.topic == LOCAL and "racks" in one.constraint
    ]
    own = replace(POLICY, topic_min_insync_racks={LOCAL: 2})
    (found,) = (one for one in api.audit(snapshot, own).findings if one.constraint == "min-insync-racks-satisfiable")
    assert found.remedy.startswith(
        'take survive = "none" for the topic out of rackspan.toml; then rackspan reassign plan'
    )


def test_a_minimum_above_its_replicas_is_lowered_since_no_plan_adds_any() -> None:
    snapshot = cluster([[3, 6]])
    above = replace(
        snapshot, topics=(replace(snapshot.topics[0], config={"min.insync.replicas": "3"}), snapshot.topics[1])
    )
    (found,) = (one for one in api.audit(above, POLICY).findings if one.constraint == "min-insync-replicas-satisfiable")
    assert found.remedy.endswith("--entity-name local --add-config min.insync.replicas=2")


def test_nothing_is_planned_for_a_diskless_topic_and_it_is_named() -> None:
    for request in (
        ReassignmentRequest(),
        ReassignmentRequest(drain=frozenset({1})),
        ReassignmentRequest(replication_factor=2),
    ):
        planned = api.plan_reassignment(with_diskless([1, 2, 3]), RackPolicy(), request)
        assert "logs" not in {one.topic for one in planned.partitions()}
        assert not [one for one in planned.infeasible if "logs" in one.topics]
        assert planned.cost is not None
        assert "1 topic (logs) has no data on brokers: a diskless topic" in planned.cost.left_out
