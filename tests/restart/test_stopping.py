"""Single rules of a stop and of a plan, each on the smallest cluster that shows it."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rackspan.audit import RackPolicy
from rackspan.audit.batch import snapshot_batch
from rackspan.errors import UsageError
from rackspan.model import BrokerId, ClusterSnapshot, Controller
from rackspan.restart import RestartRequest, StopPolicy, brokers_in_racks, judge_stop, plan_restart
from rackspan.restart.gain import ReassignmentGain
from rackspan.restart.planner import all_up
from rackspan.restart.stopping import in_sync_rows
from tests.snapshots import of_one_topic


def cluster(
    replicas: Sequence[Sequence[int]],
    minimum: int = 2,
    brokers: int = 6,
    racks: int = 3,
    fenced: frozenset[int] = frozenset(),
    controllers: tuple[Controller, ...] = (),
) -> ClusterSnapshot:
    """Brokers 1 to `brokers` in racks r1, r2, … in turn."""
    return of_one_topic(
        {broker: f"r{(broker - 1) % racks + 1}" for broker in range(1, brokers + 1)},
        replicas,
        isr=[[broker for broker in row if broker not in fenced] for row in replicas],
        leader=[row[0] for row in replicas],
        fenced=fenced,
        config={"min.insync.replicas": str(minimum)},
        controllers=controllers,
    )


def voters(*ids: int, active: int) -> tuple[Controller, ...]:
    return tuple(Controller(BrokerId(voter), voter=True, alive=True, active=voter == active) for voter in ids)


SPREAD = [[1, 2, 3], [4, 5, 6], [1, 5, 3], [4, 2, 6]]
ALL_TRIPLES = [[a, b, c] for a in range(1, 9) for b in range(a + 1, 9) for c in range(b + 1, 9)]


def test_three_racks_are_three_batches_however_many_brokers() -> None:
    for brokers in (6, 30):
        spread = [[at, at + 1, at + 2] for at in range(1, brokers - 1)]
        plan = plan_restart(cluster(spread, brokers=brokers))
        assert (len(plan.batches), plan.lower_bound.batches) == (3, 3)
        assert plan.forcing is None


def test_sets_of_three_need_more_batches_than_any_pair_does() -> None:
    """Of eight brokers no two conflict and any three do: four batches of two."""
    plan = plan_restart(cluster(ALL_TRIPLES, minimum=1, brokers=8))
    assert (len(plan.batches), plan.lower_bound.batches) == (4, 4)
    assert plan.lower_bound.reason == "of 8 brokers no three may stop together"


def test_controllers_come_last_and_the_active_one_last_of_all() -> None:
    plan = plan_restart(cluster(SPREAD, controllers=voters(1, 2, 3, active=1)), request=RestartRequest(max_batch=1))
    assert [batch.brokers[0] for batch in plan.batches][-1] == 1
    assert {batch.brokers[0] for batch in plan.batches[:3]} == {4, 5, 6}


def test_brokers_that_are_down_come_first() -> None:
    plan = plan_restart(cluster(SPREAD, fenced=frozenset({6})), request=RestartRequest(max_batch=1))
    assert plan.batches[0].brokers == (6,)


def test_one_rack_at_a_time() -> None:
    plan = plan_restart(cluster([[1, 4, 2], [3, 6, 5]], minimum=1), request=RestartRequest(by_rack=True))
    assert sorted(batch.brokers for batch in plan.batches) == [(1, 4), (2, 5), (3, 6)]


def test_a_partition_that_holds_two_replicas_in_one_rack_forces_a_further_batch() -> None:
    every_spread = [[first, second, third] for first in (1, 4) for second in (2, 5) for third in (3, 6)]
    plan = plan_restart(cluster([*every_spread, [1, 4, 2]]))
    assert len(plan.batches) == plan.lower_bound.batches == 4
    assert plan.forcing is not None
    assert plan.forcing.partitions == ("orders-8",)
    assert plan.forcing.gain == ReassignmentGain("rackspan reassign plan --topic orders", moves=1, batches=3)


def test_a_reassignment_that_saves_no_batch_is_not_proposed() -> None:
    """Four replicas in three racks with three required in sync stop one by one, spread over the racks or not."""
    for replicas in ([1, 4, 2, 3], [1, 4, 2, 5]):
        plan = plan_restart(cluster([replicas], minimum=3))
        assert plan.forcing is not None
        assert plan.forcing.gain is None


def test_a_broker_that_can_never_stop_is_named_with_a_remedy_that_works() -> None:
    snapshot = cluster([[1, 2]])
    (first, second) = plan_restart(snapshot).blocked
    assert (first.broker, second.broker, first.partition_count) == (1, 2, 1)
    (pattern,) = re.findall(r"--accept '(.*)'", first.remedy)
    assert plan_restart(snapshot, stop=StopPolicy(accepted=re.compile(pattern))).blocked == ()


def test_a_lost_majority_blocks_every_broker() -> None:
    dead = tuple(Controller(BrokerId(voter), voter=True, alive=False) for voter in (101, 102))
    plan = plan_restart(cluster(SPREAD, controllers=(*dead, Controller(BrokerId(103), voter=True, alive=True))))
    assert len(plan.blocked) == 6
    assert plan.blocked[0].remedy == "start the controllers that are down: 1 of 3 controllers are up, no majority"


@pytest.mark.parametrize(
    ("down", "remedy"),
    [
        ((103,), "bring back controller 103: without controller 1, 1 of 3 controllers are left, no majority"),
        ((), "add controllers: without controller 1, 1 of 2 controllers are left, no majority"),
    ],
)
def test_a_controller_that_is_down_is_brought_back_and_none_is_added(down: tuple[int, ...], remedy: str) -> None:
    up = tuple(Controller(BrokerId(voter), voter=True, alive=True) for voter in (1, 2))
    dead = tuple(Controller(BrokerId(voter), voter=True, alive=False) for voter in down)
    blocked = plan_restart(cluster(SPREAD, controllers=(*up, *dead))).blocked
    assert [one.broker for one in blocked] == [1, 2]
    assert blocked[0].remedy == remedy
    back = tuple(replace(controller, alive=True) for controller in dead)
    assert (plan_restart(cluster(SPREAD, controllers=(*up, *back))).blocked == ()) is bool(down)


def test_required_controllers_that_are_not_known_make_nothing_safe() -> None:
    policy = RackPolicy(require_controllers=True)
    assert judge_stop(cluster(SPREAD), {1}, RackPolicy()).safe
    assert not judge_stop(cluster(SPREAD), {1}, policy).safe
    assert plan_restart(cluster(SPREAD), policy).partial


def test_two_checks_at_once_both_say_yes() -> None:
    """A check is no lock: each broker may stop, both together may not."""
    snapshot = cluster(SPREAD)
    assert judge_stop(snapshot, {1}, RackPolicy()).safe
    assert judge_stop(snapshot, {2}, RackPolicy()).safe
    assert not judge_stop(snapshot, {1, 2}, RackPolicy()).safe


def test_a_margin_is_required_where_the_factor_allows_it_and_counted_elsewhere() -> None:
    four, three = cluster([[1, 2, 3, 4]]), cluster([[1, 2, 3]])
    assert judge_stop(four, {1, 2}, RackPolicy()).safe
    judged = judge_stop(four, {1, 2}, RackPolicy(), StopPolicy(margin=1))
    assert [partition.reason for partition in judged.below_margin] == [
        "brokers 3,4 left in sync, the minimum is 2 and the margin 1"
    ]
    judged = judge_stop(three, {1}, RackPolicy(), StopPolicy(margin=1))
    assert judged.safe
    assert len(judged.without_margin) == 1


def test_the_forecast_names_who_leads_while_a_batch_is_down() -> None:
    plan = plan_restart(cluster(SPREAD), request=RestartRequest(frozenset({1})))
    (batch,) = plan.batches
    assert batch.forecast.leaders_moved == 2
    assert {(load.broker, load.leaders_now, load.leaders) for load in batch.forecast.survivors} == {
        (2, 0, 1),
        (5, 0, 1),
    }
    assert batch.forecast.at_minimum == 2
    assert batch.forecast.most_bytes is None, "the snapshot has no sizes"


def test_bytes_of_empty_partitions_stay_as_they_are() -> None:
    snapshot = cluster(SPREAD)
    empty = replace(snapshot, partitions=replace(snapshot.partitions, size_bytes=np.zeros(len(SPREAD), dtype=np.int64)))
    (batch,) = plan_restart(empty, request=RestartRequest(frozenset({1}))).batches
    assert batch.forecast.most_bytes == 1.0


def test_racks_are_named_as_they_are_shown() -> None:
    assert brokers_in_racks(cluster(SPREAD), ("r1", "r3"), RackPolicy()) == {1, 3, 4, 6}
    with pytest.raises(UsageError, match="rack 'r9': not in this cluster"):
        brokers_in_racks(cluster(SPREAD), ("r9",), RackPolicy())


def test_a_plan_is_made_for_the_cluster_with_the_chosen_brokers_up_and_all_replicas_in_sync() -> None:
    snapshot = of_one_topic(
        {1: "a", 2: "b", 3: "c", 4: "a"},
        [[1, 2, 3], [4, 2, 1], [3, 2], [4]],
        isr=[[2], [2, 4], [3], []],
        leader=[2, 4, -1, -1],
        fenced={1, 4},
    )
    up = all_up(snapshot, RackPolicy(), frozenset({1, 3}))
    assert [(int(broker.id), broker.fenced) for broker in up.brokers] == [(1, False), (2, False), (3, False), (4, True)]
    rows = [up.partitions.row(at) for at in range(4)]
    assert [tuple(map(int, row.isr)) for row in rows] == [(1, 2, 3), (2, 1), (3, 2), ()]
    assert up.partitions.leader.tolist() == [2, 2, 3, -1], "who leads and is up goes on, else the first in sync leads"
    assert len(all_up(cluster([]), RackPolicy(), frozenset({1})).partitions) == 0


def test_of_batches_alike_the_one_that_moves_the_least_leadership_comes_first() -> None:
    snapshot = cluster([[1, 2, 3], [1, 3, 2], [2, 3, 1]])
    plan = plan_restart(snapshot, request=RestartRequest(frozenset({1, 2, 3})))
    assert [batch.brokers for batch in plan.batches] == [(3,), (2,), (1,)]
    plan = plan_restart(cluster([]), request=RestartRequest(frozenset({5, 2, 4}), max_batch=1))
    assert [batch.brokers for batch in plan.batches] == [(2,), (4,), (5,)], "then by id"


def test_a_batch_says_where_it_is_and_which_controllers_stop_with_it() -> None:
    quorum = voters(1, 2, 4, 101, 102, active=2)
    plan = plan_restart(cluster([], controllers=quorum), request=RestartRequest(frozenset({2, 3, 5, 6}), by_rack=True))
    assert [(batch.brokers, batch.reason) for batch in plan.batches] == [
        ((3, 6), "rack r3"),
        ((2, 5), "rack r2, controller 2, controller 2 is active"),
    ]
    plan = plan_restart(cluster([], controllers=quorum), request=RestartRequest(frozenset({1, 4, 5})))
    assert [batch.reason for batch in plan.batches] == ["2 racks, controllers 1,4"]


def test_only_a_majority_of_the_voters_that_are_up_stays_up() -> None:
    """Of five voters two may stop together, and of those one if one is down already."""
    quorum = voters(1, 2, 3, 4, 5, active=1)
    assert plan_restart(cluster([], controllers=quorum)).lower_bound.reason == "5 controllers, 2 may stop together"
    down = (*quorum[:4], replace(quorum[4], id=BrokerId(105), alive=False))
    assert plan_restart(cluster([], controllers=down)).lower_bound.reason == "4 controllers, 1 may stop together"


def test_what_has_no_margin_is_counted_once_for_the_chosen_brokers() -> None:
    snapshot = cluster([[1, 2, 3], [4, 5, 6], [1, 2, 3, 4]])
    for chosen, count in (({1}, 1), ({1, 2, 6}, 2), (set[int](), 0)):
        plan = plan_restart(snapshot, stop=StopPolicy(margin=1), request=RestartRequest(frozenset(chosen)))
        assert plan.without_margin == count
    assert plan_restart(snapshot).without_margin == 0


def test_a_plan_names_what_could_not_be_read() -> None:
    partial = ("racks: unknown", "sizes of broker 1: unknown")
    snapshot = of_one_topic({1: "a", 2: "b", 3: "b"}, [[1, 2]], partial=partial)
    unread = "min.insync.replicas of orders: not in the snapshot; take it with rackspan snapshot"
    assert plan_restart(snapshot).partial == ("racks: unknown", unread)
    assert plan_restart(snapshot, request=RestartRequest(frozenset({3}))).partial == ("racks: unknown",)


def test_a_batch_of_no_broker_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^a batch of 0 brokers restarts nothing; allow at least 1$"):
        RestartRequest(max_batch=0)
    assert RestartRequest(max_batch=1).max_batch == 1


def test_batches_that_lead_as_much_come_by_their_least_id() -> None:
    snapshot = of_one_topic({1: "b", 2: "a", 3: "a", 8: "b"}, [])
    plan = plan_restart(snapshot, request=RestartRequest(by_rack=True))
    assert [batch.brokers for batch in plan.batches] == [(1, 8), (2, 3)]


def test_a_copy_into_a_failed_log_directory_is_not_in_sync_at_the_end_of_its_reassignment() -> None:
    def stopping_the_leader(offline: list[int]) -> bool:
        moving = {"adding_replicas": [[3]], "removing_replicas": [[]], "offline_replicas": [offline]}
        snapshot = of_one_topic(
            {1: "a", 2: "b", 3: "c"},
            [[1, 2, 3]],
            isr=[[1, 2]],
            config={"min.insync.replicas": "2"},
            more=moving,
        )
        rows = in_sync_rows(snapshot_batch(snapshot, RackPolicy()), StopPolicy())
        (target,) = rows.brokers[rows.by_target].tolist()
        return 2 in target

    # Index 2 is broker 3.
    assert stopping_the_leader([])
    assert not stopping_the_leader([3])


def test_the_last_replica_in_sync_on_a_failed_disk_is_not_one_that_a_stop_takes_away() -> None:
    snapshot = of_one_topic(
        {1: "a", 2: "b"},
        [[2, 1]],
        isr=[[2]],
        leader=[-1],
        config={"min.insync.replicas": "1"},
        more={"offline_replicas": [[2]]},
    )
    judged = judge_stop(snapshot, {2}, RackPolicy())
    assert judged.safe
    (already,) = judged.already
    assert already.reason == "it has no leader now; in sync: no broker"


def test_the_last_replica_in_sync_on_a_failed_disk_is_not_in_sync_at_the_end_of_a_reassignment_either() -> None:
    moving = {"adding_replicas": [[1]], "removing_replicas": [[]], "offline_replicas": [[2]]}
    snapshot = of_one_topic({1: "a", 2: "b"}, [[2, 1]], isr=[[2]], leader=[-1], more=moving)
    rows = in_sync_rows(snapshot_batch(snapshot, RackPolicy()), StopPolicy())
    # Index 1 is broker 2.
    assert 1 not in rows.brokers[rows.by_target].ravel().tolist()
