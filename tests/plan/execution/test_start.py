"""What a run is refused for before it begins. Whole runs: tests/apply/test_run.py."""

from dataclasses import replace
from typing import Any

import pytest

from rackspan.errors import InvalidJournal, ReassignmentStopped, UsageError
from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.decision import RunLimits
from rackspan.plan.execution.events import RunState
from rackspan.plan.execution.observed import InFlight, ObservedCluster
from rackspan.plan.execution.start import (
    plan_to_start,
    refuse_a_limit_below,
    refuse_to_repeat,
    refuse_to_resume,
    refuse_unnamed_cluster,
    with_ids,
    with_originals,
)
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step

FIRST = PartitionReassignment("orders", 0, (4, 2), (1, 2))
SECOND = PartitionReassignment("payments", 1, (2, 3), (3, 2))
PLAN = ReassignmentPlan("c", {}, (Step.of(1, "", (FIRST,)), Step.of(2, "", (SECOND,))))
FOREIGN = replace(
    PLAN,
    cluster_id=None,
    steps=(Step.of(1, "", (replace(FIRST, undo=()),)), Step.of(2, "of its own", (replace(SECOND, undo=()),))),
)
"""As a file of another tool has it: without originals."""


def observed(**more: Any) -> ObservedCluster:
    shown: dict[str, Any] = {
        "brokers": frozenset({1, 2, 3, 4}),
        "topic_ids": {"orders": "id-1", "payments": None},
        "replicas": {FIRST.topic_partition: (1, 2), SECOND.topic_partition: (3, 2)},
        **more,
    }
    return ObservedCluster("c", **shown)


def refusal(plan: ReassignmentPlan, cluster: ObservedCluster, direction: Direction = Direction.TARGETS) -> str:
    with pytest.raises(ReassignmentStopped) as refused:
        plan_to_start(plan, direction, cluster)
    return str(refused.value)


def test_a_plan_of_another_tool_gets_its_originals_and_ids_from_the_cluster() -> None:
    complete = plan_to_start(FOREIGN, Direction.TARGETS, observed())
    assert list(complete.partitions()) == [FIRST, SECOND]
    assert [(step.number, step.reason) for step in complete.steps] == [(1, ""), (2, "of its own")]
    assert (complete.cluster_id, complete.topic_ids) == ("c", {"orders": "id-1"})


def test_originals_and_ids_that_the_plan_states_are_kept() -> None:
    moved = observed(replicas={FIRST.topic_partition: (4, 2)}, topic_ids={"orders": "new"})
    assert with_originals(PLAN, moved) is PLAN
    half = replace(PLAN, steps=(PLAN.steps[0], FOREIGN.steps[1]))
    assert [one.undo for one in with_originals(half, moved).partitions()] == [(1, 2), ()]
    named = with_ids(replace(PLAN, topic_ids={"orders": "old"}), replace(moved, cluster_id="other"))
    assert (named.cluster_id, named.topic_ids) == ("c", {"orders": "old"})


def test_a_partition_that_the_cluster_lacks_is_named_with_originals_and_without() -> None:
    without = observed(replicas={FIRST.topic_partition: (1, 2)})
    for plan in (PLAN, FOREIGN):
        assert refusal(plan, without).startswith("partition payments-1 is not in the cluster; make a new plan")


def test_the_first_reason_not_to_start_is_given() -> None:
    moving = InFlight((4, 1, 2), (4,), (1,))
    assert refusal(PLAN, replace(observed(), cluster_id="d")).startswith("this is cluster d, the plan is for c; ")
    assert refusal(FOREIGN, observed(), Direction.ORIGINALS) == (
        "the plan does not say where replicas were; name the --journal of the run that moved them"
    )
    assert refusal(PLAN, observed(in_flight={FIRST.topic_partition: moving})) == (
        "orders-0 is being reassigned already, and not by this journal; wait for the end, or cancel it with rackspan reassign cancel --in-flight, then run again"
    )
    assert refusal(PLAN, observed(topic_ids={"orders": None})).startswith("topic payments is not in the cluster; ")
    assert refusal(PLAN, observed(in_flight={TopicPartition("x", 0): moving})).startswith("x-0: being reassigned, ")


def test_a_broker_that_is_away_is_named_unless_what_it_shall_receive_is_done() -> None:
    away = observed(brokers=frozenset({1, 2, 3}))
    assert refusal(PLAN, away).startswith("broker 4 is down and must receive orders-0; bring it back, or ")
    done = replace(away, replicas={FIRST.topic_partition: (4, 2), SECOND.topic_partition: (3, 2)})
    assert plan_to_start(PLAN, Direction.TARGETS, done).moves == 1
    assert plan_to_start(PLAN, Direction.ORIGINALS, replace(away, brokers=frozenset({1, 2, 3}))) == with_ids(PLAN, away)


def test_a_limit_of_copies_has_to_allow_the_largest_partition_in_that_direction() -> None:
    grows = PartitionReassignment("orders", 0, (4, 5, 2), (1, 2))
    plan = ReassignmentPlan("c", {}, (Step.of(1, "", (SECOND, grows)),))
    with pytest.raises(UsageError) as refused:
        refuse_a_limit_below(plan, Direction.TARGETS, RunLimits(moves=1))
    assert str(refused.value) == "--max-moves 1: orders-0 alone copies 2; allow 2 or more"
    refuse_a_limit_below(plan, Direction.TARGETS, RunLimits(moves=2))
    refuse_a_limit_below(plan, Direction.TARGETS, RunLimits())
    refuse_a_limit_below(plan, Direction.ORIGINALS, RunLimits(moves=1))


def test_a_plan_that_names_no_cluster_has_to_be_confirmed() -> None:
    with pytest.raises(UsageError) as refused:
        refuse_unnamed_cluster(FOREIGN)
    assert str(refused.value) == "the plan names no cluster; confirm the one that is meant with --cluster-id ID"
    refuse_unnamed_cluster(PLAN)


def test_a_run_resumes_the_journal_of_its_plan_on_its_cluster_alone() -> None:
    state = RunState(PLAN)
    refuse_to_resume(state, FOREIGN, observed(), "a.journal")
    with pytest.raises(InvalidJournal) as other_plan:
        refuse_to_resume(state, replace(PLAN, steps=PLAN.steps[:1]), observed(), "a.journal")
    assert str(other_plan.value) == "a.journal: the journal of another plan; name the --journal of this one"
    with pytest.raises(ReassignmentStopped, match=r"^this is cluster d, the plan is for c; "):
        refuse_to_resume(state, PLAN, replace(observed(), cluster_id="d"), "a.journal")


ENDED = RunState(PLAN, done=frozenset({1, 2}), completed=True)
ENDS = {FIRST.topic_partition: (4, 2), SECOND.topic_partition: (2, 3)}
ANEW = "make a new plan with rackspan reassign plan"


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"replicas": {**ENDS, FIRST.topic_partition: (1, 2)}},
            f"orders-0 is on 1,2: the run ended on 4,2, and it was changed since; {ANEW}",
        ),
        (
            {"replicas": {**ENDS, SECOND.topic_partition: (3, 2)}},
            f"payments-1 is on 3,2: the run ended on 2,3, and it was changed since; {ANEW}",
        ),
        (
            {"replicas": ENDS, "in_flight": {FIRST.topic_partition: InFlight((1, 4, 2), (1,), (4,))}},
            "orders-0 is being reassigned to 1,2, not by this plan; wait for the end, or cancel it with rackspan reassign cancel --in-flight, then run again",
        ),
        ({"replicas": {}}, f"partition orders-0 is not in the cluster; {ANEW}"),
        ({"replicas": ENDS, "topic_ids": {"orders": "id-1"}}, f"topic payments is not in the cluster; {ANEW}"),
    ],
)
def test_a_run_that_ended_is_not_done_where_partitions_are_elsewhere(more: dict[str, Any], line: str) -> None:
    with pytest.raises(ReassignmentStopped) as refused:
        refuse_to_repeat(ENDED, observed(**more))
    assert str(refused.value) == line


def test_a_run_that_ended_is_done_where_it_left_everything_and_resumes_for_what_is_left() -> None:
    refuse_to_repeat(ENDED, observed(replicas=ENDS))
    refuse_to_repeat(replace(ENDED, direction=Direction.ORIGINALS), observed())
    refuse_to_repeat(replace(ENDED, done=frozenset({1})), observed())
    throttled = {ConfigKey(Holder.BROKER, "4", "follower.replication.throttled.rate"): None}
    refuse_to_repeat(replace(ENDED, own=throttled), observed())
