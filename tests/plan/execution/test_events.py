from rackspan.plan.execution.events import (
    Account,
    Began,
    Cancelled,
    Ended,
    StepDone,
    Throttling,
    Turned,
    Unthrottled,
    account,
)
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.plan.written import PartitionMove, Toward, WrittenPlan, WrittenStep

PLAN = WrittenPlan(
    "c",
    {},
    tuple(WrittenStep(number, "", (PartitionMove("orders", number, (1,), (2,)),)) for number in (1, 2)),
)
FIRST, SECOND = (ConfigKey(Holder.BROKER, str(broker), "leader.replication.throttled.rate") for broker in (1, 2))


def of(*events: object) -> Account:
    return account([Began(PLAN), *events])  # type: ignore[list-item]


def numbers(found: Account) -> list[int]:
    return [step.number for step in found.remaining]


def test_what_a_user_had_set_is_what_was_recorded_first() -> None:
    found = of(Throttling(1, {FIRST: "5"}), Throttling(1, {FIRST: "1000", SECOND: None}))
    assert found.own == {FIRST: "5", SECOND: None}
    assert of(Throttling(1, {FIRST: "5", SECOND: None}), Unthrottled((FIRST,))).own == {SECOND: None}


def test_turning_round_begins_again_from_the_other_end_and_keeps_what_is_owed() -> None:
    found = of(Throttling(1, {FIRST: "5"}), StepDone(1), Turned(Toward.ORIGINALS))
    assert (numbers(found), found.own, found.throttled_step) == ([2, 1], {FIRST: "5"}, None)


def test_a_cancelled_run_is_gone_on_with_where_it_was() -> None:
    found = of(StepDone(1), Cancelled(), Turned(Toward.TARGETS))
    assert (numbers(found), found.cancelled) == ([2], False)


def test_all_steps_done_is_the_end() -> None:
    found = of(StepDone(1), StepDone(2), Ended())
    assert (found.step, found.ended) == (None, True)
    assert of(StepDone(1), StepDone(2), Ended(), Turned(Toward.ORIGINALS)).ended is False
