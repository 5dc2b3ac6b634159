"""Whether a plan may begin on a cluster, and what was there before it."""

from collections.abc import Iterator
from dataclasses import replace

from rackspan.errors import InvalidJournal, ReassignmentStopped
from rackspan.plan.execution.events import Account
from rackspan.plan.execution.mismatch import mismatch, missing_brokers, other_cluster, running_beside
from rackspan.plan.execution.observed import ObservedCluster, Standing, standing
from rackspan.plan.written import PartitionMove, Toward, WrittenPlan


def beginning(plan: WrittenPlan, toward: Toward, seen: ObservedCluster) -> WrittenPlan:
    """The plan as its journal will hold it: of this cluster, with every original.

    `seen` shows every topic of the plan. Errors: ReassignmentStopped, with the first reason not to begin.
    """
    begun = of_cluster(with_originals(plan, seen), seen)
    for why in _reasons_against(plan, begun, toward, seen):
        raise ReassignmentStopped(why)
    return begun


def going_on(begun: Account, plan: WrittenPlan, seen: ObservedCluster, journal: str) -> None:
    """Refuse another plan's journal, and another cluster. Errors: InvalidJournal, ReassignmentStopped."""
    if not begun.plan.same_targets(plan):
        raise InvalidJournal(f"{journal}: the journal of another plan; name the --journal of this one")
    if why := other_cluster(begun.plan, seen):
        raise ReassignmentStopped(why)


def with_originals(plan: WrittenPlan, seen: ObservedCluster) -> WrittenPlan:
    """A file of another tool does not say what undoes it: what is there now does."""
    if plan.says_undo:
        return plan
    return replace(
        plan,
        steps=tuple(
            replace(step, moves=tuple(_with_original(move, seen) for move in step.moves)) for step in plan.steps
        ),
    )


def of_cluster(plan: WrittenPlan, seen: ObservedCluster) -> WrittenPlan:
    """With the ids of the cluster and of its topics, so that a later run knows them again."""
    topics = {move.topic for move in plan.moves()}
    ids = {name: topic_id for name in sorted(topics) if (topic_id := seen.topic_ids.get(name)) is not None}
    return replace(plan, cluster_id=plan.cluster_id or seen.cluster_id, topic_ids={**ids, **plan.topic_ids})


def _with_original(move: PartitionMove, seen: ObservedCluster) -> PartitionMove:
    return move if move.undo else replace(move, undo=seen.replicas.get(move.place, ()))


def _reasons_against(plan: WrittenPlan, begun: WrittenPlan, toward: Toward, seen: ObservedCluster) -> Iterator[str]:
    if why := other_cluster(plan, seen):
        yield why
    if toward is Toward.ORIGINALS and not plan.says_undo:
        yield "the plan does not say where replicas were; name the --journal of the run that moved them"
    for place in sorted(seen.in_flight):
        if place in begun.by_place:
            name = begun.by_place[place].name
            yield f"{name} is being reassigned already, and not by this journal; wait for the end or cancel it, then run again"
    if why := mismatch(begun, begun.moves(), toward, seen):
        yield why
    if why := running_beside(begun, seen):
        yield why
    undone = [move for move in begun.moves() if standing(move, toward, seen) is not Standing.DONE]
    if why := missing_brokers(undone, toward, seen):
        yield why
