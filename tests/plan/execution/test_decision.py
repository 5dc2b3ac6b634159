"""Single decisions. That they add up is for tests/apply/test_executor.py to show."""

from dataclasses import replace
from typing import Any

import pytest

from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.decision import RunLimits, decide, observation_request
from rackspan.plan.execution.effects import (
    CancelMoves,
    Effect,
    ElectPreferredLeaders,
    Finished,
    Paused,
    Record,
    SetConfigs,
    StartMoves,
    Stop,
    Wait,
)
from rackspan.plan.execution.events import (
    ForeignThrottleRecorded,
    RunCompleted,
    RunState,
    StepCompleted,
    StepDeferred,
    ThrottleRecorded,
    ThrottleRemoved,
)
from rackspan.plan.execution.observed import InFlight, ObservedCluster
from rackspan.plan.execution.throttle import FOLLOWER_RATE, LEADER_RATE, ConfigKey, Holder
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step

MOVE = PartitionReassignment("orders", 0, (4, 2), (1, 2))
NEXT = PartitionReassignment("orders", 1, (2, 3), (3, 2))
PLAN = ReassignmentPlan("c", {}, (Step.of(1, "", (MOVE,)), Step.of(2, "", (NEXT,))))
STATE = RunState(PLAN)
RATE = ConfigKey(Holder.BROKER, "1", LEADER_RATE)

BEFORE = {MOVE.topic_partition: MOVE.undo, NEXT.topic_partition: NEXT.undo}
IN_FLIGHT = InFlight((4, 2, 1), (4,), (1,))


def observed(replicas: dict[TopicPartition, tuple[int, ...]] = BEFORE, **more: Any) -> ObservedCluster:
    shown: dict[str, Any] = {"brokers": frozenset({1, 2, 3, 4}), "topic_ids": {"orders": None}, **more}
    return ObservedCluster("c", replicas=replicas, **shown)


def moving(how: InFlight = IN_FLIGHT) -> ObservedCluster:
    return observed({**BEFORE, MOVE.topic_partition: how.replicas}, in_flight={MOVE.topic_partition: how})


@pytest.mark.parametrize(
    ("state", "shown", "effect"),
    [
        (STATE, observed(), StartMoves({MOVE.topic_partition: (4, 2)}, copies=1)),
        (STATE, moving(), Wait()),
        # Between both ends, and nothing moves: a broker that is behind.
        (STATE, observed({**BEFORE, MOVE.topic_partition: (4, 2, 1)}), None),
        (STATE, observed({**BEFORE, MOVE.topic_partition: (4, 2)}), Record(StepCompleted(1))),
        # A cancel leaves the replicas in Kafka's order; what is started is the order too, and copies nothing.
        (
            STATE,
            observed({**BEFORE, MOVE.topic_partition: (2, 4)}),
            StartMoves({MOVE.topic_partition: (4, 2)}, copies=0),
        ),
        (replace(STATE, done=frozenset({1})), observed(), StartMoves({NEXT.topic_partition: (2, 3)}, copies=0)),
        (replace(STATE, done=frozenset({1, 2})), observed(), Record(RunCompleted())),
        (replace(STATE, done=frozenset({1, 2}), completed=True), observed(), Finished()),
        (replace(STATE, direction=Direction.ORIGINALS), moving(), CancelMoves((MOVE.topic_partition,))),
        (replace(STATE, cancelled=True), moving(), CancelMoves((MOVE.topic_partition,))),
        (
            replace(STATE, cancelled=True),
            observed({MOVE.topic_partition: (2, 1)}),
            StartMoves({MOVE.topic_partition: (1, 2)}, copies=0),
        ),
        (replace(STATE, cancelled=True), observed(), Finished()),
        # Broker 4 is away: the step behind goes on, and at the end it is waited for.
        (STATE, observed(brokers=frozenset({1, 2, 3})), Record(StepDeferred(1))),
        (STATE, observed(leaderless=frozenset({MOVE.topic_partition})), Record(StepDeferred(1))),
        (STATE, replace(moving(), leaderless=frozenset({MOVE.topic_partition})), Record(StepDeferred(1))),
        (
            replace(STATE, deferred=frozenset({1})),
            observed(brokers=frozenset({1, 2, 3})),
            StartMoves({NEXT.topic_partition: (2, 3)}, copies=0),
        ),
        (replace(STATE, deferred=frozenset({1})), observed(), StartMoves({MOVE.topic_partition: (4, 2)}, copies=1)),
        (replace(STATE, deferred=frozenset({1}), done=frozenset({2})), observed(brokers=frozenset({1, 2, 3})), None),
        (replace(STATE, done=frozenset({2})), observed(leaderless=frozenset({MOVE.topic_partition})), None),
        # Broker 2 receives nothing, but Kafka ends no reassignment before all replicas of the target are in sync.
        (STATE, observed(brokers=frozenset({1, 3, 4})), Record(StepDeferred(1))),
        (STATE, replace(moving(), brokers=frozenset({1, 3, 4})), Record(StepDeferred(1))),
    ],
)
def test_the_next_effect(state: RunState, shown: ObservedCluster, effect: Effect | None) -> None:
    decided = decide(state, shown, RunLimits())
    if effect is None:
        assert isinstance(decided, Wait)
        assert decided.stalled is not None
    else:
        assert decided == effect


def test_a_throttle_is_recorded_then_set_then_the_step_starts() -> None:
    limits = RunLimits(bytes_per_second=9)
    own: dict[ConfigKey, str | None] = {**dict.fromkeys(observation_request(STATE, limits).configs), RATE: "77"}
    assert decide(STATE, observed(configs=own), limits) == Record(ThrottleRecorded(1, own))
    throttling = replace(STATE, own=own, throttled_step=1)
    wanted = decide(throttling, observed(configs=own), limits)
    assert isinstance(wanted, SetConfigs)
    assert {config for config, value in wanted.values.items() if value == "9"} == {
        ConfigKey(Holder.BROKER, broker, key) for broker in "124" for key in (LEADER_RATE, FOLLOWER_RATE)
    }
    assert decide(throttling, observed(configs=wanted.values), limits) == StartMoves(
        {MOVE.topic_partition: (4, 2)}, copies=1
    )
    ended = observed({**BEFORE, MOVE.topic_partition: MOVE.replicas}, configs=wanted.values)
    assert decide(throttling, ended, limits) == SetConfigs(own)
    assert decide(throttling, replace(ended, configs=own), limits) == Record(ThrottleRemoved(tuple(own)))


def test_a_rate_in_the_journal_throttles_until_another_is_given() -> None:
    state = replace(STATE, rates=(9,))
    own: dict[ConfigKey, str | None] = dict.fromkeys(observation_request(state, RunLimits()).configs)
    throttling = replace(state, own=own, throttled_step=1)
    for limits, rate in ((RunLimits(), "9"), (RunLimits(bytes_per_second=5), "5")):
        effect = decide(throttling, observed(configs=own), limits)
        assert isinstance(effect, SetConfigs)
        assert {value for key, value in effect.values.items() if key.holder is Holder.BROKER} == {rate}


def test_a_throttle_that_is_ended_is_removed_while_moves_are_under_way() -> None:
    state = replace(STATE, own={RATE: None}, throttled_step=1, rates=(9, 0))
    assert decide(state, replace(moving(), configs={RATE: "9"}), RunLimits()) == SetConfigs({RATE: None})
    assert decide(replace(state, rates=(9,)), replace(moving(), configs={RATE: "9"}), RunLimits(0)) == SetConfigs(
        {RATE: None}
    )
    assert decide(replace(state, own={}), moving(), RunLimits()) == Wait()


def test_what_others_set_meanwhile_is_recorded_before_anything_else() -> None:
    state = replace(STATE, own={RATE: None}, throttled_step=1, rates=(9,))
    for shown in (observed(configs={RATE: "5"}), replace(moving(), configs={RATE: "5"})):
        for found in (state, replace(state, cancelled=True)):
            assert decide(found, shown, RunLimits()) == Record(ForeignThrottleRecorded({RATE: "5"}))


def test_a_run_without_a_rate_sets_no_throttle_and_observes_none() -> None:
    configs = observation_request(STATE, RunLimits(bytes_per_second=9)).configs
    assert observation_request(STATE, RunLimits()).configs == frozenset()
    assert decide(STATE, observed(configs=dict.fromkeys(configs)), RunLimits()) == StartMoves(
        {MOVE.topic_partition: (4, 2)}, copies=1
    )


def test_a_cancelled_run_observes_the_configs_that_it_has_to_restore_and_no_others() -> None:
    listed = ConfigKey(Holder.TOPIC, "payments", "leader.replication.throttled.replicas")
    request = observation_request(
        replace(STATE, own={RATE: "77", listed: None}, cancelled=True), RunLimits(bytes_per_second=9)
    )
    assert request.configs == {RATE, listed}
    # A config of a topic can be read where the topic is observed, and that of another step's topic has to be restored too.
    assert request.topics == {"orders", "payments"}


def test_throttles_of_another_direction_are_restored_before_anything_starts() -> None:
    state = replace(STATE, direction=Direction.ORIGINALS, own={RATE: "77"}, throttled_step=None)
    limits = RunLimits(bytes_per_second=9)
    ended = {MOVE.topic_partition: MOVE.replicas, NEXT.topic_partition: NEXT.replicas}
    others = dict.fromkeys(observation_request(state, limits).configs)
    shown = observed(ended, configs={**others, RATE: "9"})
    assert decide(state, shown, limits) == SetConfigs({RATE: "77"})
    restored = observed(ended, configs={**others, RATE: "77"})
    assert decide(state, restored, limits) == Record(ThrottleRemoved((RATE,)))


def test_a_throttle_that_outlives_its_step_is_recorded_for_the_next() -> None:
    """Step 1 was deferred and copies again while step 2 is under way: nothing is restored between them."""
    limits, state = RunLimits(bytes_per_second=9), replace(STATE, deferred=frozenset({1}))
    own: dict[ConfigKey, str | None] = dict.fromkeys(observation_request(state, limits).configs)
    throttled = replace(state, own=own, throttled_step=1)
    shown = replace(moving(), configs=dict.fromkeys(own, "9"))
    assert decide(throttled, shown, limits) == Record(ThrottleRecorded(2, {}))


def test_a_deleted_topic_has_nothing_to_restore() -> None:
    listed = ConfigKey(Holder.TOPIC, "orders", "leader.replication.throttled.replicas")
    state = replace(STATE, own={listed: "0:1"}, cancelled=True)
    gone = observed({}, topic_ids={})
    assert decide(state, gone, RunLimits()) == Record(ThrottleRemoved((listed,)))


def test_a_step_of_which_all_that_is_left_cannot_finish_is_deferred_whatever_of_it_is_done() -> None:
    done = PartitionReassignment("orders", 2, (3, 2), (1, 2))
    state = RunState(ReassignmentPlan("c", {}, (Step.of(1, "", (MOVE, done)), Step.of(2, "", (NEXT,)))))
    replicas = {**BEFORE, done.topic_partition: done.replicas}
    assert decide(state, observed(replicas, brokers=frozenset({1, 2, 3})), RunLimits()) == Record(StepDeferred(1))


def test_a_run_that_may_copy_nothing_more_pauses_beside_a_move_that_cannot_finish() -> None:
    more = PartitionReassignment("orders", 2, (3, 2), (1, 2))
    state = RunState(ReassignmentPlan("c", {}, (Step.of(1, "", (MOVE, more)),)))
    shown = {**BEFORE, MOVE.topic_partition: IN_FLIGHT.replicas, more.topic_partition: more.undo}
    cluster = observed(shown, in_flight={MOVE.topic_partition: IN_FLIGHT}, brokers=frozenset({1, 2, 3}))
    assert decide(state, cluster, RunLimits(moves=1)) == StartMoves({more.topic_partition: (3, 2)}, copies=1)
    assert decide(state, cluster, RunLimits(moves=0)) == Paused()


def test_a_run_that_may_copy_nothing_more_pauses_and_reordering_continues() -> None:
    assert decide(STATE, observed(), RunLimits(moves=0)) == Paused()
    free = decide(replace(STATE, done=frozenset({1})), observed(), RunLimits(moves=0))
    assert free == StartMoves({NEXT.topic_partition: (2, 3)}, copies=0)


def test_a_stop_restores_throttles_first_unless_something_of_ours_moves() -> None:
    state, away = (
        replace(STATE, own={RATE: None}, throttled_step=1),
        {MOVE.topic_partition: (3, 2), NEXT.topic_partition: NEXT.undo},
    )
    assert decide(state, observed(away, configs={RATE: "9"}), RunLimits()) == SetConfigs({RATE: None})
    assert isinstance(decide(state, observed(away, brokers=frozenset({2, 3, 4})), RunLimits()), Stop)


@pytest.mark.parametrize(
    ("shown", "elected"),
    [
        ({"leaders": 3, "isr": (2, 3)}, True),
        ({"leaders": 3, "isr": (3,)}, False),
        ({"leaders": 3, "isr": (2, 3), "brokers": frozenset({1, 3, 4})}, False),
        ({"leaders": 2, "isr": (2, 3)}, False),
        # Of a topic that was deleted nothing is observed.
        ({"leaders": 3}, False),
        ({"isr": (2, 3)}, False),
    ],
)
def test_a_new_preferred_leader_is_elected_where_it_does_not_lead_and_could(
    shown: dict[str, Any], elected: bool
) -> None:
    name = NEXT.topic_partition
    of_partition = {key: {name: shown[key]} for key in ("leaders", "isr") if key in shown}
    brokers = {"brokers": shown["brokers"]} if "brokers" in shown else {}
    ended = replace(STATE, plan=ReassignmentPlan("c", {}, PLAN.steps[1:]), done=frozenset({2}))
    effect = decide(ended, observed({name: NEXT.replicas}, **of_partition, **brokers), RunLimits())
    assert effect == (ElectPreferredLeaders((name,)) if elected else Record(RunCompleted()))


def test_only_topics_of_the_current_step_are_observed() -> None:
    other = PartitionReassignment("payments", 0, (1,), (2,))
    plan = ReassignmentPlan("c", {}, (Step.of(1, "", (MOVE,)), Step.of(2, "", (other,))))
    assert observation_request(RunState(plan), RunLimits()).topics == {"orders"}
    assert observation_request(RunState(plan, done=frozenset({1})), RunLimits()).topics == {"payments"}
