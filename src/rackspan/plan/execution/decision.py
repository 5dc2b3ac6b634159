"""Executing a plan, decided one effect at a time from two values: the state in the journal, and what the cluster shows.

Nothing else is kept. So a run that is killed between any two effects resumes where it was, and every effect is safe to
repeat.

A step: record the user's throttles, throttle, start, wait, restore the user's throttles, record that the step is done.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.effects import (
    CancelMoves,
    Effect,
    Finished,
    Paused,
    Record,
    SetConfigs,
    StartMoves,
    Stop,
    Wait,
)
from rackspan.plan.execution.events import RunCompleted, RunState, StepCompleted, ThrottleRecorded, ThrottleRemoved
from rackspan.plan.execution.mismatch import mismatch, missing_brokers, other_cluster, running_beside
from rackspan.plan.execution.observed import (
    ObservationRequest,
    ObservedCluster,
    ReassignmentStatus,
    reassignment_status,
)
from rackspan.plan.execution.throttle import ConfigKey, Holder, throttle, with_user_values
from rackspan.reassign import Direction, PartitionReassignment, Step


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What this run may do. `moves`: replicas it may still copy. `starting` False: wait for what runs, start nothing."""

    bytes_per_second: int | None = None
    moves: int | None = None
    starting: bool = True


def observation_request(state: RunState, limits: RunLimits) -> ObservationRequest:
    """What the next decision needs to observe."""
    configs = {*state.own, *_throttle(state, limits)}
    topics = {config.name for config in configs if config.holder is Holder.TOPIC}
    return ObservationRequest(frozenset({one.topic for one in _current(state)} | topics), frozenset(configs))


def decide(state: RunState, cluster: ObservedCluster, limits: RunLimits) -> Effect:
    """The next effect.

    Constraints: nothing is started where the cluster is not what the plan assumed, beside another reassignment, beyond
    `limits`, or before its throttle shows; a user's own throttle is recorded before it is replaced, and restored once
    nothing of ours moves.
    Goal: every partition of every step at its end; or, when cancelled, none of them moving.
    """
    if why := other_cluster(state.plan, cluster):
        return Stop(why)
    ours = dict(_ours_in_flight(state, cluster))
    to_cancel = tuple(
        topic_partition
        for topic_partition, status in ours.items()
        if state.cancelled or status is ReassignmentStatus.REVERTING
    )
    if to_cancel:
        return CancelMoves(to_cancel)
    if state.cancelled:
        return _after_cancel(state, cluster)
    step = state.step
    if step is None:
        return _restore_throttles(state, cluster) or _completed(state)
    return _of_step(state, step, cluster, limits, is_moving=bool(ours))


def _of_step(state: RunState, step: Step, cluster: ObservedCluster, limits: RunLimits, *, is_moving: bool) -> Effect:
    """Every branch of a step that is not done."""
    statuses = [(one, reassignment_status(one, state.direction, cluster)) for one in step.partitions]
    unstarted = [one for one, status in statuses if status is ReassignmentStatus.STARTABLE]
    settling = [one for one, status in statuses if status is ReassignmentStatus.SETTLING]
    why = mismatch(state.plan, step.partitions, state.direction, cluster)
    if why is None and unstarted and not is_moving:
        why = running_beside(state.plan, cluster)
    if why is not None:
        return (None if is_moving else _restore_throttles(state, cluster)) or Stop(why)
    if not is_moving and state.throttled_step != step.number and (restored := _restore_throttles(state, cluster)):
        return restored
    if not (unstarted or settling or is_moving):
        return _restore_throttles(state, cluster) or Record(StepCompleted(step.number))
    chosen = _within(unstarted, state.direction, cluster, limits)
    if not (chosen or settling or is_moving):
        return _restore_throttles(state, cluster) or Paused()
    if throttling := _set_throttles(state, step, cluster, limits):
        return throttling
    if is_moving or settling:
        return Wait(_stalled(step, state.direction, cluster, settling))
    if away := missing_brokers(chosen, state.direction, cluster):
        return Wait(away)
    return StartMoves(
        {one.topic_partition: one.end(state.direction) for one in chosen},
        sum(_copies(one, state.direction, cluster) for one in chosen),
    )


def _current(state: RunState) -> Sequence[PartitionReassignment]:
    return state.step.partitions if state.step is not None else ()


def _ours_in_flight(state: RunState, cluster: ObservedCluster) -> Iterator[tuple[TopicPartition, ReassignmentStatus]]:
    """Of the whole plan: a run that changed its direction may have left some of any step."""
    for topic_partition in sorted(cluster.in_flight):
        one = state.plan.by_partition.get(topic_partition)
        if one is not None:
            status = reassignment_status(one, state.direction, cluster)
            if status in (ReassignmentStatus.MOVING, ReassignmentStatus.REVERTING):
                yield topic_partition, status


def _within(
    unstarted: list[PartitionReassignment], direction: Direction, cluster: ObservedCluster, limits: RunLimits
) -> list[PartitionReassignment]:
    """As many as this run may still copy, in the order of the step."""
    if not limits.starting:
        return []
    chosen, copies = [], 0
    for one in unstarted:
        copies += _copies(one, direction, cluster)
        if limits.moves is not None and copies > limits.moves:
            break
        chosen.append(one)
    return chosen


def _copies(one: PartitionReassignment, direction: Direction, cluster: ObservedCluster) -> int:
    return len(set(one.end(direction)) - set(cluster.replicas[one.topic_partition]))


def _throttle(state: RunState, limits: RunLimits) -> Mapping[ConfigKey, str]:
    step = state.step
    if limits.bytes_per_second is None or state.cancelled or step is None or not step.copies(state.direction):
        return {}
    return throttle(step, state.direction, limits.bytes_per_second)


def _set_throttles(state: RunState, step: Step, cluster: ObservedCluster, limits: RunLimits) -> Effect | None:
    """What is still to be done to throttle the step; None when it is throttled. Brokers that are gone are left out."""
    throttles = {config: value for config, value in _throttle(state, limits).items() if config in cluster.configs}
    unrecorded = {config: cluster.configs[config] for config in throttles if config not in state.own}
    if unrecorded or (throttles and state.throttled_step != step.number):
        return Record(ThrottleRecorded(step.number, unrecorded))
    values = with_user_values(throttles, state.own)
    return SetConfigs(values) if _differ(values, cluster) else None


def _restore_throttles(state: RunState, cluster: ObservedCluster) -> Effect | None:
    """What is still to be done to restore the user's own throttles; None when nothing is, or their brokers are gone."""
    own = {config: value for config, value in state.own.items() if config in cluster.configs}
    gone = [config for config in state.own if config.holder is Holder.TOPIC and config.name not in cluster.topic_ids]
    if _differ(own, cluster):
        return SetConfigs(own)
    return Record(ThrottleRemoved((*own, *gone))) if own or gone else None


def _differ(values: Mapping[ConfigKey, str | None], cluster: ObservedCluster) -> bool:
    return any(cluster.configs[config] != value for config, value in values.items())


def _stalled(
    step: Step, direction: Direction, cluster: ObservedCluster, settling: list[PartitionReassignment]
) -> str | None:
    if settling:
        return _unsettled(settling[0], cluster)
    moving = [one for one in step.partitions if one.topic_partition in cluster.in_flight]
    return missing_brokers(moving, direction, cluster)


def _unsettled(one: PartitionReassignment, cluster: ObservedCluster) -> str:
    at = ",".join(map(str, cluster.replicas[one.topic_partition]))
    return f"{one.name} shows {at}, as in the middle of a move, and nothing moves it; look at it"


def _after_cancel(state: RunState, cluster: ObservedCluster) -> Effect:
    """Kafka restores the replicas in its own order, which decides who leads; the plan's order is restored here."""
    for one in _current(state):
        if reassignment_status(one, state.direction, cluster) is ReassignmentStatus.SETTLING:
            return Wait(_unsettled(one, cluster))
    reordered = {
        one.topic_partition: replicas
        for one in _current(state)
        if (replicas := _in_plan_order(one, state.direction, cluster)) is not None
    }
    if reordered:
        return StartMoves(reordered, 0)
    return _restore_throttles(state, cluster) or Finished(tuple(state.own))


def _in_plan_order(
    one: PartitionReassignment, direction: Direction, cluster: ObservedCluster
) -> tuple[int, ...] | None:
    """The replicas that the partition has, in the order of the plan; None where they are in it, or in no list of it."""
    replicas, start, end = cluster.replicas.get(one.topic_partition, ()), one.start(direction), one.end(direction)
    if set(start) == set(end) or replicas in (start, end):
        return None
    return next((listed for listed in (start, end) if set(listed) == set(replicas)), None)


def _completed(state: RunState) -> Effect:
    return Finished(tuple(state.own)) if state.completed else Record(RunCompleted())
