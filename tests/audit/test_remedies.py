"""The remedies of an audit on worked cases. `tests/random_clusters/` follows those of random clusters to their end."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from rackspan import api
from rackspan.audit import Finding, RackPolicy, Severity
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.constraints.remedies import (
    bring_back_racks,
    end_of_reassignment,
    factor_to_harden,
    move,
    survive_loss,
    target_that_survives,
)
from rackspan.audit.findings import REPAIR_ORDER
from rackspan.audit.policy import Survive
from rackspan.model import ClusterSnapshot, UnrackedPolicy, columns
from rackspan.reassign import ReassignmentRequest
from tests.audit import brute_force
from tests.random_clusters.judged import JUDGES
from tests.random_clusters.states import RandomCluster
from tests.random_clusters.values import drawn
from tests.snapshots import of_one_topic


def violations(snapshot: ClusterSnapshot, policy: RackPolicy) -> list[Finding]:
    return [one for one in api.audit(snapshot, policy).findings if one.severity is Severity.VIOLATION]


TWO_RACKS = RackPolicy(min_insync_racks=2)


def test_a_value_for_replicas_in_no_rack_is_not_raised_and_lowered_for_ever() -> None:
    racks = {1: "r1", 2: "r1", 3: "r1", 4: None, 5: "r2", 6: "r2", 7: "r3"}
    replicas, isr = [[3, 900, 2, 5], [900, 5, 1, 4]], [[3], [5, 1, 4]]
    of_none = of_one_topic(racks, replicas, isr=isr, config={"min.insync.replicas": "2"})
    assert not faults_of("remedies to their end", of_none, replace(TWO_RACKS, unracked=UnrackedPolicy.IGNORE))


def test_a_replica_that_is_being_copied_has_a_remedy_that_is_a_whole_command_or_none() -> None:
    racks = {1: "r1", 5: "r2", 6: None, 11: "r4", 12: "r4", 13: "r4"}
    config, more = {"min.insync.replicas": "3"}, {"adding_replicas": [[], [6]], "removing_replicas": [[], [13]]}
    copied = of_one_topic(racks, [[11, 1], [6, 13]], isr=[[11, 1], [13]], config=config, more=more)
    assert not faults_of("remedies", copied, TWO_RACKS)
    assert not faults_of("remedies to their end", copied, TWO_RACKS)


def faults_of(name: str, snapshot: ClusterSnapshot, policy: RackPolicy) -> list[str]:
    cluster = RandomCluster(
        Random(1),
        brute_force.document(snapshot),
        {
            "unracked": policy.unracked.value,
            "min_insync_racks": policy.min_insync_racks,
            "topic_min_insync_racks": {},
            "survive": policy.survive.value,
            "topic_survive": {},
        },
    )
    return list(JUDGES[name](cluster))


@pytest.mark.slow
def test_every_constraint_of_a_violation_has_its_place_in_the_order_of_repair() -> None:
    found = {one.constraint for seed in range(200) for one in violations(*drawn(Random(seed)))}
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
    for fenced, words in (({1}, f"{PLAN}"), ({1, 2}, f"bring back rack a; then {PLAN}, or add brokers")):
        brokers = tuple(replace(one, fenced=int(one.id) in fenced) for one in crowded.brokers)
        batch = snapshot_batch(replace(crowded, brokers=brokers), RackPolicy())
        assert str(move(batch, 0, 4)) == words


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


def test_brokers_that_are_excluded_or_cordoned_are_not_brought_back() -> None:
    """One that is fenced and holds nothing may be a registration that was left behind."""
    crowded = one_partition("aabb", [3, 4], {})
    fenced = tuple(replace(one, fenced=one.id == 1) for one in crowded.brokers)
    cordoned = tuple(replace(one, cordoned=one.id == 1) for one in crowded.brokers)
    for brokers, policy, words in (
        (crowded.brokers, {1, 2}, f"stop excluding brokers 1,2; then {PLAN}"),
        (fenced, {2}, f"bring back broker 1 and stop excluding broker 2; then {PLAN}, or add brokers"),
        (cordoned, {2}, f"uncordon broker 1 and stop excluding broker 2; then {PLAN}"),
    ):
        batch = snapshot_batch(replace(crowded, brokers=brokers), RackPolicy(excluded_brokers=frozenset(policy)))
        assert str(move(batch, 0, 2)) == words


def test_what_a_reassignment_waits_for_is_brought_back_with_the_last_in_sync() -> None:
    """Both are down: with the first of them there is a leader, and it ends once the other is in sync too."""
    rows = columns(topic=[0], partition=[0], leader=[-1], replicas=[[1, 2]], isr=[[1]], adding_replicas=[[2]])
    moving = replace(one_partition("ab", [1, 2], {}), partitions=rows)
    down = replace(moving, brokers=tuple(replace(one, fenced=True) for one in moving.brokers))
    words = end_of_reassignment(snapshot_batch(down, RackPolicy()), 0)
    assert words == "bring back broker 1; then bring back broker 2 and wait for the reassignment to end"


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


def test_a_reassignment_waits_for_each_replica_that_stays_and_is_down() -> None:
    """Kafka before 4.3 ends it once all of the target is in sync; 4.3 too where it removes more than it adds."""
    racks, config = {1: "a", 2: "b", 3: "c", 4: "c"}, {"min.insync.replicas": "1"}
    for replicas, isr, added in (([1, 2, 3, 4], [1, 2, 4], [4]), ([1, 2, 3], [1, 2], [])):
        more = {"adding_replicas": [added], "removing_replicas": [[1]]}
        moving = of_one_topic(racks, [replicas], isr=[isr], fenced={3}, config=config, more=more)
        assert remedies(moving, RackPolicy())["reassignment-in-progress"] == (
            "bring back broker 3 and wait for it, or rackspan reassign cancel --in-flight"
        )
        lagging = of_one_topic(racks, [replicas], isr=[isr], config=config, more=more)
        assert remedies(lagging, RackPolicy())["reassignment-in-progress"].startswith("wait for it")


@pytest.mark.parametrize(
    ("parts", "first"),
    [
        # Rack c is needed for three replicas, and its only broker receives nothing.
        ({"replicas": [[2, 3, 1], [4, 5]], "isr": [[2, 1], [4, 5]], "fenced": {3}}, "bring back broker 3"),
        ({"replicas": [[2, 3, 1], [4, 5]], "isr": [[2, 3, 1], [4]], "leader": [2, -1]}, "see the log of broker 4, which is alive"),
        ({"replicas": [[2, 3, 1], [4, 9]], "isr": [[2, 3, 1], [4]]}, "bring back broker 9"),
        ({"replicas": [[2, 3, 1], [4, 5]], "isr": [[2, 1], [4, 5]]}, ""),
    ],
)  # fmt: skip
def test_mixed_replication_factors_have_a_plan_that_does_something_at_once(parts: dict[str, Any], first: str) -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
    mixed = of_one_topic(racks, parts.pop("replicas"), topic="t", config={"min.insync.replicas": "2"}, **parts)
    command = f"{PLAN} --replication-factor 3"
    more = ", or add brokers" if mixed.brokers[2].fenced else ""
    assert remedies(mixed, RackPolicy())["mixed-replication-factors"] == (
        f"{first}; then {command}{more}" if first else command
    )
    planned = api.plan_reassignment(mixed, RackPolicy(), ReassignmentRequest(replication_factor=3))
    assert {one.partition for one in planned.partitions() if len(one.replicas) != len(one.undo)} == (
        set() if first else {1}
    )
