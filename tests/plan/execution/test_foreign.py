"""Throttles of others, distinguished from those of a run by the rates in its journal and the replicas of its plan."""

from dataclasses import replace

import pytest

from rackspan.model.ids import TopicPartition
from rackspan.model.topic import FOLLOWER_REPLICAS, LEADER_REPLICAS
from rackspan.plan.execution.events import RunState
from rackspan.plan.execution.foreign import foreign_changes, foreign_throttles, plan_in_flight, throttle_configs
from rackspan.plan.execution.observed import InFlight, ObservedCluster
from rackspan.plan.execution.throttle import (
    FOLLOWER_RATE,
    LEADER_RATE,
    ConfigKey,
    Holder,
)
from rackspan.reassign import PartitionReassignment, ReassignmentPlan, Step

MOVE = PartitionReassignment("orders", 0, (4, 2), (1, 2))
PLAN = ReassignmentPlan("c", {}, (Step.of(1, "", (MOVE,)),))
RATE, LISTED = ConfigKey(Holder.BROKER, "1", LEADER_RATE), ConfigKey(Holder.TOPIC, "orders", LEADER_REPLICAS)
THROTTLED = RunState(PLAN, own={RATE: "77", LISTED: None}, throttled_step=1, rates=(9, 15))


def showing(**values: str | None) -> ObservedCluster:
    return ObservedCluster(
        "c", frozenset(), configs={{"rate": RATE, "listed": LISTED}[key]: values[key] for key in values}
    )


def test_the_configs_of_a_plan_are_those_of_its_brokers_and_topics() -> None:
    rates = {ConfigKey(Holder.BROKER, broker, key) for broker in "124" for key in (LEADER_RATE, FOLLOWER_RATE)}
    lists = {ConfigKey(Holder.TOPIC, "orders", key) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)}
    assert throttle_configs(PLAN) == rates | lists


@pytest.mark.parametrize(
    ("shown", "theirs"),
    [
        # Rates of the run, the earlier one too, and what was there before it.
        ("9", False),
        ("15", False),
        ("77", False),
        ("5", True),
        (None, True),
    ],
)
def test_a_rate_that_the_run_never_had_is_of_others(shown: str | None, theirs: bool) -> None:
    assert foreign_changes(THROTTLED, showing(rate=shown)) == ({RATE: shown} if theirs else {})


@pytest.mark.parametrize(
    ("own", "shown", "theirs"),
    [
        (None, "0:1,0:2", None),
        (None, None, None),
        ("7:1", "0:4,7:1", None),
        ("*", "*", None),
        (None, "*", "*"),
        (None, "0:1,7:1", "7:1"),
        ("8:1", "0:1,7:1,8:1", "7:1,8:1"),
        # A replica that the plan does not move, and words that are no replica.
        (None, "0:3", "0:3"),
        (None, "x:y", "x:y"),
    ],
)
def test_what_the_plan_never_lists_is_of_others(own: str | None, shown: str | None, theirs: str | None) -> None:
    state = replace(THROTTLED, own={LISTED: own})
    assert foreign_changes(state, showing(listed=shown)) == ({} if theirs is None else {LISTED: theirs})


def test_nothing_is_foreign_where_the_rate_is_not_in_the_journal() -> None:
    assert foreign_changes(replace(THROTTLED, unknown_rate=True), showing(rate="5")) == {}
    assert foreign_changes(replace(THROTTLED, rates=()), showing(rate="5")) == {}


def test_throttles_of_others_are_those_behind_the_runs_own_and_those_beside_it() -> None:
    beside = ConfigKey(Holder.BROKER, "2", LEADER_RATE)
    shown = replace(showing(rate="15", listed="0:1"), configs={RATE: "15", LISTED: "0:1", beside: "3"})
    assert foreign_throttles(THROTTLED, shown) == {RATE: "77", beside: "3"}
    assert foreign_throttles(RunState(PLAN), showing(rate="15", listed=None)) == {RATE: "15"}


def test_what_is_under_way_is_a_plan_whose_undo_is_what_a_cancel_leaves() -> None:
    moving = {
        TopicPartition("b", 1): InFlight((4, 2, 1), (4,), (1,)),
        TopicPartition("a", 2): InFlight((3, 1), (3,)),
        TopicPartition("c", 0): InFlight((3, 1), (3,)),
    }
    cluster = ObservedCluster("c", frozenset(), in_flight=moving)
    plan = plan_in_flight(cluster, [TopicPartition("b", 1), TopicPartition("a", 2)])
    assert [(one.name, one.replicas, one.undo) for one in plan.partitions()] == [
        ("a-2", (3, 1), (1,)),
        ("b-1", (4, 2), (2, 1)),
    ]
    assert len(plan_in_flight(cluster, [])) == 0
