"""The differ beside a second one in plain loops, and what must hold of any history."""

from collections import Counter
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.drift.causes import SEVERAL
from rackspan.audit.drift.changes import CHANGES, Change
from rackspan.audit.drift.compare import drift
from rackspan.audit.durability import STATES, states
from rackspan.model import ClusterSnapshot
from tests.audit import brute_force, brute_force_drift
from tests.snapshots import of_one_topic
from tests.strategies import policies, snapshots, successors

POLICY = RackPolicy()


def in_order(rows: list[dict[str, object]]) -> list[str]:
    return sorted(map(repr, ({name: row[name] for name in sorted(row)} for row in rows)))


def check_against_plain_loops(before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy) -> None:
    wanted = brute_force_drift.drift(brute_force.document(before), brute_force.document(after), policy)
    made = [asdict(change) for change in drift(before, after, policy)]
    for change in made:
        event(f"{change['change']} {change['cause'] or ''}")
    assert in_order(made) == in_order(wanted)


@pytest.mark.slow
@given(snapshots(), snapshots(), policies())
def test_the_changes_are_those_that_plain_loops_find(
    before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy
) -> None:
    check_against_plain_loops(before, after, policy)


@pytest.mark.slow
@given(snapshots(), snapshots(), policies(), st.tuples(st.booleans(), st.booleans()))
def test_what_either_could_not_read_is_no_change(
    before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy, hidden: tuple[bool, bool]
) -> None:
    note = ("topics t: on disk but not shown to this user",)
    before, after = (replace(one, partial=note * lacks) for one, lacks in zip((before, after), hidden, strict=True))
    check_against_plain_loops(before, after, policy)


@pytest.mark.slow
@given(st.data(), snapshots(), policies())
def test_so_are_those_of_a_cluster_that_mostly_stayed_as_it_was(
    data: st.DataObject, before: ClusterSnapshot, policy: RackPolicy
) -> None:
    check_against_plain_loops(before, data.draw(successors(before)), policy)


@pytest.mark.slow
@given(snapshots(), policies())
def test_nothing_changed_between_a_snapshot_and_itself(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    assert drift(snapshot, snapshot, policy) == []


@pytest.mark.slow
@given(snapshots(), snapshots(), policies())
def test_changes_add_up_to_the_states_that_are_counted(
    before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy
) -> None:
    counted = [
        Counter(STATES[code] for code in states(snapshot_batch(one, policy)).tolist()) for one in (before, after)
    ]
    for change in drift(before, after, policy):
        if change.change.startswith("safety-"):
            counted[0][change.before or ""] -= 1
            counted[0][change.after or ""] += 1
    for state in STATES[:-1]:
        assert counted[0][state] == counted[1][state]


@pytest.mark.slow
@given(snapshots(), snapshots(), policies())
def test_a_cause_is_a_change_between_the_same_two_snapshots(
    before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy
) -> None:
    changes = drift(before, after, policy)
    there = {(one.change, one.topic, one.partition, one.broker) for one in changes}
    for one in changes:
        if one.cause not in (None, SEVERAL):
            about = [(one.topic, one.partition, None), (one.topic, None, None), (None, None, one.cause_broker)]
            assert there & {(one.cause, *what) for what in about}
        assert (one.cause is None) == (not one.change.startswith("safety-"))


@pytest.mark.slow
@given(snapshots(), snapshots(), policies())
def test_every_change_is_reported_once_and_has_a_documented_name(
    before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy
) -> None:
    changes = drift(before, after, policy)
    assert {one.change for one in changes} <= set(CHANGES)
    assert len({(one.change, one.topic, one.partition, one.broker) for one in changes}) == len(changes)


def cluster(
    racks: str = "abc", isr: tuple[int, ...] = (1, 2, 3), leader: int = 1, required: int = 2
) -> ClusterSnapshot:
    """Brokers from 1 on, one a letter; a blank for one that is not there. One partition on 1, 2 and 3."""
    there = {broker: rack for broker, rack in enumerate(racks, start=1) if rack != " "}
    config = {"min.insync.replicas": str(required)}
    return of_one_topic(there, [[1, 2, 3]], isr=[isr], leader=[leader], topic="t", config=config)


def safety(before: ClusterSnapshot, after: ClusterSnapshot) -> list[Change]:
    return [change for change in drift(before, after, POLICY) if change.change.startswith("safety-")]


def lost(state: str, cause: str, broker: int | None = None, was: str = "ok") -> list[Change]:
    return [Change("safety-lost", "t", 0, None, was, state, cause, broker)]


def test_brokers_that_die_are_the_cause_of_what_their_partitions_lost() -> None:
    assert safety(cluster(), cluster(" b ", (2,), 2)) == lost("under-min-isr", "broker-gone", 1)
    assert safety(cluster(), cluster("   d", (), -1)) == lost("offline", "broker-gone", 1)


def test_a_follower_that_falls_behind_is_a_change_of_the_isr() -> None:
    assert safety(cluster(), cluster(isr=(1,))) == lost("under-min-isr", "isr-shrunk")


def test_a_fenced_broker_is_another_cause_than_a_slow_one() -> None:
    after = cluster(isr=(1,))
    fenced = replace(after, brokers=tuple(replace(one, fenced=one.id == 3) for one in after.brokers))
    assert safety(cluster(), fenced) == lost("under-min-isr", "broker-fenced", 3)


def test_a_broker_with_a_new_rack_is_the_cause_where_two_racks_become_one() -> None:
    assert safety(cluster("aabc"), cluster("aaac")) == lost("one-rack", "broker-rack-changed", 3)


def test_a_minimum_that_was_raised_is_the_cause() -> None:
    assert safety(cluster(isr=(1, 2)), cluster(isr=(1, 2), required=3)) == lost(
        "under-min-isr", "min-insync-replicas-changed"
    )


def test_where_two_changes_are_needed_neither_is_the_cause() -> None:
    assert safety(cluster(), cluster(isr=(1, 2), required=3)) == lost("under-min-isr", SEVERAL)


def test_a_broker_that_returns_gives_safety_back() -> None:
    assert safety(cluster(" b ", (2,), 2), cluster()) == [
        Change("safety-gained", "t", 0, None, "under-min-isr", "ok", "broker-appeared", 1)
    ]


def test_a_replica_that_is_added_under_a_minimum_above_them_all_refuses_until_it_is_in_sync() -> None:
    grown = cluster(isr=(1,), required=9)
    alone = replace(grown, partitions=replace(grown.partitions, replicas=np.array([[1]], dtype=np.int32)))
    assert safety(alone, grown) == lost("under-min-isr", "replicas-moved", was="one-rack")


def test_a_minimum_of_racks_that_was_raised_is_the_cause() -> None:
    before = cluster("aab")
    after = replace(before, topics=(replace(before.topics[0], config={"min.insync.racks": "3"}),))
    assert safety(before, after) == lost("under-min-racks", "min-insync-racks-changed")


def test_a_broker_that_is_unfenced_gives_safety_back() -> None:
    after = cluster()
    before = replace(cluster(isr=(1,)), brokers=tuple(replace(one, fenced=one.id == 3) for one in after.brokers))
    assert safety(before, after) == [Change("safety-gained", "t", 0, None, "under-min-isr", "ok", "broker-unfenced", 3)]


def test_a_leader_that_is_not_known_is_no_change() -> None:
    known, unknown = (of_one_topic({1: "a", 2: "b"}, [[1, 2]], leader=[leader]) for leader in (1, -2))
    assert list(drift(known, unknown, RackPolicy())) == []
    assert list(drift(unknown, known, RackPolicy())) == []
