"""Where a cluster is not what a plan assumed, in words: the first thing wrong, and what to do about it."""

from collections.abc import Iterable, Iterator

from rackspan.plan.execution.observed import ObservedCluster, Standing, standing
from rackspan.plan.written import PartitionMove, Toward, WrittenPlan

ANEW = "make a new plan with rackspan reassign plan"


def mismatch(plan: WrittenPlan, moves: Iterable[PartitionMove], toward: Toward, seen: ObservedCluster) -> str | None:
    """Why these moves of a plan may not be started or waited for; None where all is as assumed."""
    return next(_mismatches(plan, moves, toward, seen), None)


def other_cluster(plan: WrittenPlan, seen: ObservedCluster) -> str | None:
    if plan.cluster_id is None or plan.cluster_id == seen.cluster_id:
        return None
    return f"this is cluster {seen.cluster_id}, the plan is for {plan.cluster_id}; name that one, or {ANEW}"


def running_beside(plan: WrittenPlan, seen: ObservedCluster) -> str | None:
    """Kafka's tool starts nothing while anything is being reassigned, and neither does a run."""
    others = sorted(
        f"{topic}-{partition}" for topic, partition in seen.in_flight if (topic, partition) not in plan.by_place
    )
    if not others:
        return None
    return f"{_listed(others)}: being reassigned, not by this plan; wait for the end or cancel it, then run again"


def missing_brokers(moves: Iterable[PartitionMove], toward: Toward, seen: ObservedCluster) -> str | None:
    """Brokers that shall receive a copy and are not there to take it."""
    waiting = [move for move in moves if set(move.arrivals(toward)) - seen.brokers]
    if not waiting:
        return None
    away = sorted({broker for move in waiting for broker in move.arrivals(toward)} - seen.brokers)
    names = [move.name for move in waiting]
    brokers = f"broker {away[0]} is" if len(away) == 1 else f"brokers {', '.join(map(str, away))} are"
    return f"{brokers} gone or fenced and shall receive {_listed(names)}; bring it back, or {ANEW}"


def _mismatches(
    plan: WrittenPlan, moves: Iterable[PartitionMove], toward: Toward, seen: ObservedCluster
) -> Iterator[str]:
    if why := other_cluster(plan, seen):
        yield why
    for move in moves:
        why = _of_topic(plan, move.topic, seen) or _of_partition(move, toward, seen)
        if why is not None:
            yield why


def _of_topic(plan: WrittenPlan, topic: str, seen: ObservedCluster) -> str | None:
    if topic not in seen.topic_ids:
        return f"topic {topic} is not in the cluster; {ANEW}"
    planned, found = plan.topic_ids.get(topic), seen.topic_ids[topic]
    if planned is None or found is None or planned == found:
        return None
    return f"topic {topic} was deleted and created anew since: its id is {found}, the plan's {planned}; {ANEW}"


def _of_partition(move: PartitionMove, toward: Toward, seen: ObservedCluster) -> str | None:
    match standing(move, toward, seen):
        case Standing.ABSENT:
            return f"partition {move.name} is not in the cluster; {ANEW}"
        case Standing.ELSEWHERE if move.place in seen.in_flight:
            target = _ids(seen.in_flight[move.place].target)
            return f"{move.name} is being reassigned to {target}, not by this plan; wait for the end or cancel it, then run again"
        case Standing.ELSEWHERE:
            at, undo, replicas = _ids(seen.replicas[move.place]), _ids(move.undo), _ids(move.replicas)
            return f"{move.name} is on {at}: the plan found it on {undo} and leads to {replicas}; {ANEW}"
        case _:
            return None


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _listed(names: list[str]) -> str:
    """The first few of many."""
    return ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:3])} and {len(names) - 3} more"
