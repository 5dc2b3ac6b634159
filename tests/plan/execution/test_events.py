from rackspan.plan.execution.events import (
    DirectionSet,
    ForeignThrottleRecorded,
    RateSet,
    RunCancelled,
    RunCompleted,
    RunStarted,
    RunState,
    StepCompleted,
    StepDeferred,
    ThrottleRecorded,
    ThrottleRemoved,
    replay,
)
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step

PLAN = ReassignmentPlan(
    "c",
    {},
    tuple(Step.of(number, "", (PartitionReassignment("orders", number, (1,), (2,)),)) for number in (1, 2)),
)
FIRST, SECOND = (ConfigKey(Holder.BROKER, str(broker), "leader.replication.throttled.rate") for broker in (1, 2))


def of(*events: object) -> RunState:
    return replay([RunStarted(PLAN), *events])  # type: ignore[list-item]


def numbers(found: RunState) -> list[int]:
    return [step.number for step in found.remaining]


def test_what_a_user_had_set_is_what_was_recorded_first() -> None:
    found = of(ThrottleRecorded(1, {FIRST: "5"}), ThrottleRecorded(1, {FIRST: "1000", SECOND: None}))
    assert found.own == {FIRST: "5", SECOND: None}
    removed = of(ThrottleRecorded(1, {FIRST: "5", SECOND: None}), ThrottleRemoved((FIRST,)))
    assert (removed.own, removed.throttled_step) == ({SECOND: None}, None)
    assert (of().own, of().throttled_step, of(ThrottleRecorded(1, {})).throttled_step) == ({}, None, 1)


def test_what_others_set_meanwhile_is_theirs_from_then_on() -> None:
    found = of(ThrottleRecorded(1, {FIRST: "5", SECOND: None}), ForeignThrottleRecorded({SECOND: "9"}))
    assert (found.own, found.throttled_step) == ({FIRST: "5", SECOND: "9"}, 1)


def test_the_rate_in_force_is_the_last_one_and_all_are_kept() -> None:
    assert of().bytes_per_second is None
    found = replay([RunStarted(PLAN, 7), RateSet(9), RunCancelled(), DirectionSet(Direction.ORIGINALS), RateSet(0)])
    assert (found.rates, found.bytes_per_second) == ((7, 9, 0), 0)


def test_a_throttle_of_a_journal_without_a_rate_is_of_an_unknown_one_until_it_is_removed() -> None:
    throttled = ThrottleRecorded(1, {FIRST: None})
    assert of(throttled, RateSet(9)).unknown_rate
    assert not of(throttled, RateSet(9), ThrottleRemoved((FIRST,))).unknown_rate
    assert not replay([RunStarted(PLAN, 7), throttled]).unknown_rate


def test_a_new_direction_begins_at_the_other_end_and_keeps_the_users_throttles() -> None:
    found = of(ThrottleRecorded(1, {FIRST: "5"}), StepCompleted(1), DirectionSet(Direction.ORIGINALS))
    assert (numbers(found), found.own, found.throttled_step) == ([2, 1], {FIRST: "5"}, None)


def test_a_cancelled_run_resumes_where_it_was() -> None:
    found = of(StepCompleted(1), RunCancelled(), DirectionSet(Direction.TARGETS))
    assert (numbers(found), found.cancelled) == ([2], False)
    undone = of(StepCompleted(1), RunCancelled(), DirectionSet(Direction.ORIGINALS))
    assert (numbers(undone), undone.cancelled) == ([2, 1], False)


def test_a_deferred_step_is_open_until_it_is_done_and_the_next_one_is_under_way() -> None:
    deferred = of(StepDeferred(1))
    assert deferred.step is not None
    assert (deferred.step.number, [step.number for step in deferred.open_steps]) == (2, [1, 2])
    last = of(StepDeferred(1), StepCompleted(2))
    assert last.step is not None
    assert (last.step.number, [step.number for step in last.open_steps]) == (1, [1])
    assert of(StepDeferred(1), StepCompleted(1)).deferred == frozenset()
    assert of(StepDeferred(1), DirectionSet(Direction.ORIGINALS)).deferred == frozenset()


def test_all_steps_done_is_the_end() -> None:
    found = of(StepCompleted(1), StepCompleted(2), RunCompleted())
    assert (found.step, found.completed) == (None, True)
    assert of(StepCompleted(1), StepCompleted(2), RunCompleted(), DirectionSet(Direction.ORIGINALS)).completed is False
