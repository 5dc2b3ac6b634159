"""Executing a plan, decided one effect at a time from two values: the state in the journal, and what the cluster shows.

Nothing else is kept. So a run that is killed between any two effects resumes where it was, and every effect is safe to
repeat.

A step: record the user's throttles, throttle, start, wait, restore the user's throttles, record that the step is done.
After the last one, partitions whose preferred leader changes are led by it.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from rackspan.model.ids import TopicPartition
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
from rackspan.plan.execution.foreign import foreign_changes
from rackspan.plan.execution.mismatch import (
    cannot_finish,
    leaderless,
    mismatch,
    missing_brokers,
    other_cluster,
    running_beside,
)
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
    """What this run may do. `moves`: replicas it may still copy. `starting` False: wait for what runs, start nothing.

    `bytes_per_second`: 0 for no throttle, None for the one that the journal has.
    """

    bytes_per_second: int | None = None
    moves: int | None = None
    starting: bool = True

    def rate(self, state: RunState) -> int | None:
        """The throttle that is in force; 0 where it was ended, None where there never was one."""
        return state.bytes_per_second if self.bytes_per_second is None else self.bytes_per_second


def observation_request(state: RunState, limits: RunLimits) -> ObservationRequest:
    """What the next decision needs to observe."""
    configs = {*state.own, *_throttle(state, limits)}
    topics = {config.name for config in configs if config.holder is Holder.TOPIC}
    ending = state.step is None and not state.completed and not state.cancelled
    partitions = _new_preferred_leaders(state) if ending else _current(state)
    return ObservationRequest(frozenset({partition.topic for partition in partitions} | topics), frozenset(configs))


def decide(state: RunState, cluster: ObservedCluster, limits: RunLimits) -> Effect:
    """The next effect.

    Constraints: nothing is started where the cluster is not what the plan assumed, beside another reassignment, beyond
    `limits`, or before its throttle shows; a user's own throttle is recorded before it is replaced, also one that is set
    meanwhile, and restored once nothing of ours moves.
    Goal: every partition of every step at its end; or, when cancelled, none of them moving.
    """
    if why := other_cluster(state.plan, cluster):
        return Stop(why)
    if theirs := foreign_changes(state, cluster):
        return Record(ForeignThrottleRecorded(theirs))
    ours = dict(ours_in_flight(state, cluster))
    to_cancel = tuple(
        topic_partition
        for topic_partition, status in ours.items()
        if state.cancelled or status is ReassignmentStatus.REVERTING
    )
    if to_cancel:
        return CancelMoves(to_cancel)
    if state.cancelled:
        return _after_cancel(state, cluster)
    if state.step is None:
        return _restore_throttles(state, cluster) or _completed(state, cluster)
    able = next((step for step in state.open_steps if not _is_stuck(step, state.direction, cluster)), None)
    if able is None and len(state.remaining) > len(state.open_steps):
        return Record(StepDeferred(state.step.number))
    return _of_step(state, able or state.step, cluster, limits, in_flight=set(ours))


def _is_stuck(step: Step, direction: Direction, cluster: ObservedCluster) -> bool:
    """Whether nothing of what is left of the step can finish now."""
    left = [
        partition for partition in step.partitions if reassignment_status(partition, direction, cluster) in _UNFINISHED
    ]
    return bool(left) and all(_is_hindered(partition, direction, cluster) for partition in left)


def _is_hindered(partition: PartitionReassignment, direction: Direction, cluster: ObservedCluster) -> bool:
    status = reassignment_status(partition, direction, cluster)
    changes_brokers = status is ReassignmentStatus.MOVING or (
        status is ReassignmentStatus.STARTABLE
        and set(cluster.replicas[partition.topic_partition]) != set(partition.end(direction))
    )
    return changes_brokers and cannot_finish(partition, direction, cluster)


def _of_step(
    state: RunState, step: Step, cluster: ObservedCluster, limits: RunLimits, *, in_flight: Set[TopicPartition]
) -> Effect:
    """Every branch of a step that is not done. `in_flight`: moves of ours, of any step."""
    statuses = [(partition, reassignment_status(partition, state.direction, cluster)) for partition in step.partitions]
    unstarted = [partition for partition, status in statuses if status is ReassignmentStatus.STARTABLE]
    settling = [partition for partition, status in statuses if status is ReassignmentStatus.SETTLING]
    why = mismatch(state.plan, step.partitions, cluster)
    if why is None and unstarted and not in_flight:
        why = running_beside(state.plan, cluster)
    if why is not None:
        return (None if in_flight else _restore_throttles(state, cluster)) or Stop(why)
    outlived = (not in_flight and state.throttled_step != _number(state)) or limits.rate(state) == 0
    if outlived and (restored := _restore_throttles(state, cluster)):
        return restored
    restoring = None if in_flight else _restore_throttles(state, cluster)
    moving = [state.plan.by_partition[topic_partition] for topic_partition in sorted(in_flight)]
    able = [partition for partition in moving if not _is_hindered(partition, state.direction, cluster)]
    held_up = [partition for partition in moving if partition not in able and partition in step.partitions]
    if not (unstarted or settling or able or held_up):
        return restoring or Record(StepCompleted(step.number))
    free = [partition for partition in unstarted if not _is_hindered(partition, state.direction, cluster)]
    chosen = _within(free or unstarted, state.direction, cluster, limits)
    if not (chosen or settling or able or held_up):
        return restoring or Paused()
    if throttling := _set_throttles(state, cluster, limits):
        return throttling
    if settling:
        return Wait(_unsettled(settling[0], cluster))
    if able:
        return Wait()
    if not free:
        return Wait(_hindrance(state, cluster))
    if not chosen:
        return Paused()
    return StartMoves(
        {partition.topic_partition: partition.end(state.direction) for partition in chosen},
        sum(_copies(partition, state.direction, cluster) for partition in chosen),
    )


def _hindrance(state: RunState, cluster: ObservedCluster) -> str | None:
    """What keeps every open step from finishing, in words."""
    hindered = [partition for partition in _current(state) if _is_hindered(partition, state.direction, cluster)]
    return missing_brokers(hindered, state.direction, cluster) or leaderless(hindered, cluster)


def _number(state: RunState) -> int | None:
    return None if state.step is None else state.step.number


_UNFINISHED = frozenset(ReassignmentStatus) - {ReassignmentStatus.DONE}


def _current(state: RunState) -> Sequence[PartitionReassignment]:
    return [partition for step in state.open_steps for partition in step.partitions]


def ours_in_flight(state: RunState, cluster: ObservedCluster) -> Iterator[tuple[TopicPartition, ReassignmentStatus]]:
    """The reassignments in flight of the whole plan: a run that changed its direction may have left some of any step."""
    for topic_partition in sorted(cluster.in_flight):
        partition = state.plan.by_partition.get(topic_partition)
        if partition is not None:
            status = reassignment_status(partition, state.direction, cluster)
            if status in (ReassignmentStatus.MOVING, ReassignmentStatus.REVERTING):
                yield topic_partition, status


def _within(
    unstarted: list[PartitionReassignment], direction: Direction, cluster: ObservedCluster, limits: RunLimits
) -> list[PartitionReassignment]:
    """The reassignments that this run may still copy, in the order of the step."""
    if not limits.starting:
        return []
    chosen, copies = [], 0
    for partition in unstarted:
        copies += _copies(partition, direction, cluster)
        if limits.moves is not None and copies > limits.moves:
            break
        chosen.append(partition)
    return chosen


def _copies(partition: PartitionReassignment, direction: Direction, cluster: ObservedCluster) -> int:
    return len(set(partition.end(direction)) - set(cluster.replicas[partition.topic_partition]))


def _throttle(state: RunState, limits: RunLimits) -> Mapping[ConfigKey, str]:
    """For everything that may copy: the step under way, and those that were deferred."""
    rate = limits.rate(state)
    if not rate or state.cancelled:
        return {}
    copying = [step for step in state.open_steps if step.copies(state.direction)]
    if not copying:
        return {}
    every = (
        copying[0]
        if len(copying) == 1
        else Step.of(0, "", [partition for step in copying for partition in step.partitions])
    )
    return throttle(every, state.direction, rate)


def _set_throttles(state: RunState, cluster: ObservedCluster, limits: RunLimits) -> Effect | None:
    """The effect that is left to throttle the open steps; None when it is done. Brokers that are gone are left out."""
    number = _number(state)
    throttles = {config: value for config, value in _throttle(state, limits).items() if config in cluster.configs}
    unrecorded = {config: cluster.configs[config] for config in throttles if config not in state.own}
    if number is not None and (unrecorded or (throttles and state.throttled_step != number)):
        return Record(ThrottleRecorded(number, unrecorded))
    values = with_user_values(throttles, state.own)
    return SetConfigs(values) if _differ(values, cluster) else None


def _restore_throttles(state: RunState, cluster: ObservedCluster) -> Effect | None:
    """The effect that is left to restore the user's own throttles; None when nothing is, or their brokers are gone."""
    own = {config: value for config, value in state.own.items() if config in cluster.configs}
    gone = [config for config in state.own if config.holder is Holder.TOPIC and config.name not in cluster.topic_ids]
    if _differ(own, cluster):
        return SetConfigs(own)
    return Record(ThrottleRemoved((*own, *gone))) if own or gone else None


def _differ(values: Mapping[ConfigKey, str | None], cluster: ObservedCluster) -> bool:
    return any(cluster.configs[config] != value for config, value in values.items())


def _unsettled(partition: PartitionReassignment, cluster: ObservedCluster) -> str:
    at = ",".join(map(str, cluster.replicas[partition.topic_partition]))
    return f"{partition.name} shows {at}, as in the middle of a move, and nothing moves it; look at it"


def _after_cancel(state: RunState, cluster: ObservedCluster) -> Effect:
    """Kafka restores the replicas in its own order, which decides who leads; the plan's order is restored here."""
    for partition in _current(state):
        if reassignment_status(partition, state.direction, cluster) is ReassignmentStatus.SETTLING:
            return Wait(_unsettled(partition, cluster))
    reordered = {
        partition.topic_partition: replicas
        for partition in _current(state)
        if (replicas := _in_plan_order(partition, cluster)) is not None
    }
    if reordered:
        return StartMoves(reordered, 0)
    return _restore_throttles(state, cluster) or Finished(tuple(state.own))


def _in_plan_order(partition: PartitionReassignment, cluster: ObservedCluster) -> tuple[int, ...] | None:
    """The replicas that the partition has, in the order of the plan; None where they are in it, or in no list of it."""
    replicas, ends = cluster.replicas.get(partition.topic_partition, ()), (partition.undo, partition.replicas)
    if set(partition.undo) == set(partition.replicas) or replicas in ends:
        return None
    return next((listed for listed in ends if set(listed) == set(replicas)), None)


def _completed(state: RunState, cluster: ObservedCluster) -> Effect:
    if state.completed:
        return Finished(tuple(state.own))
    led_by_another = tuple(
        partition.topic_partition
        for partition in _new_preferred_leaders(state)
        if _may_be_elected(partition, state.direction, cluster)
    )
    return ElectPreferredLeaders(led_by_another) if led_by_another else Record(RunCompleted())


def _new_preferred_leaders(state: RunState) -> Iterator[PartitionReassignment]:
    """Partitions that the plan gives another preferred leader. Whether others are led as preferred is not the plan's."""
    for partition in state.plan.partitions():
        if partition.end(state.direction)[0] != partition.start(state.direction)[0]:
            yield partition


def _may_be_elected(partition: PartitionReassignment, direction: Direction, cluster: ObservedCluster) -> bool:
    """Whether the preferred leader does not lead and could: it is alive and in sync."""
    preferred, name = partition.end(direction)[0], partition.topic_partition
    return (
        cluster.leaders.get(name, preferred) != preferred
        and preferred in cluster.brokers
        and preferred in cluster.isr.get(name, ())
    )
