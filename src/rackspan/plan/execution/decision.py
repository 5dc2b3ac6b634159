"""Carrying a plan out, decided one effect at a time from two things: the journal's account and what the cluster shows.

Nothing else is remembered. So a run that is killed between any two effects goes on as if it had only looked away, and
what is decided twice is an effect that may be done twice.

A step: record what the user throttles, throttle, start, wait, give the user's values back, record that it is done.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
from rackspan.plan.execution.events import Account, Ended, StepDone, Throttling, Unthrottled
from rackspan.plan.execution.mismatch import mismatch, missing_brokers, other_cluster, running_beside
from rackspan.plan.execution.observed import ObservedCluster, Standing, standing
from rackspan.plan.execution.throttle import ConfigKey, Holder, throttle, with_own
from rackspan.plan.written import PartitionMove, Toward, WrittenStep


@dataclass(frozen=True, slots=True)
class Limits:
    """What this run may do. `moves`: replicas it may still copy. `starting` False: end what runs, begin nothing."""

    bytes_per_second: int | None = None
    moves: int | None = None
    starting: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """What of a cluster the next decision needs to see, beside its brokers and the reassignments under way."""

    topics: frozenset[str]
    configs: frozenset[ConfigKey]


def question(so_far: Account, limits: Limits) -> Question:
    configs = {*so_far.own, *_throttle(so_far, limits)}
    topics = {config.name for config in configs if config.holder is Holder.TOPIC}
    moves = so_far.step.moves if so_far.step is not None else ()
    return Question(frozenset({move.topic for move in moves} | topics), frozenset(configs))


def decide(so_far: Account, seen: ObservedCluster, limits: Limits) -> Effect:
    """The next effect.

    Constraints: nothing is started where the cluster is not what the plan assumed, beside anybody else's reassignment,
    beyond `limits`, or before its throttle shows; a user's own throttle is recorded before it is replaced, and given back
    once nothing of ours moves.
    Goal: every partition of every step at its end; or, when cancelled, at rest.
    """
    if why := other_cluster(so_far.plan, seen):
        return Stop(why)
    ours = dict(_ours_in_flight(so_far, seen))
    backwards = tuple(place for place, how in ours.items() if so_far.cancelled or how is Standing.OPPOSING)
    if backwards:
        return CancelMoves(backwards)
    if so_far.cancelled:
        return _at_rest(so_far, seen)
    step = so_far.step
    if step is None:
        return _give_back(so_far, seen) or _ended(so_far)
    return _of_step(so_far, step, seen, limits, is_moving=bool(ours))


def _of_step(so_far: Account, step: WrittenStep, seen: ObservedCluster, limits: Limits, *, is_moving: bool) -> Effect:
    """Every branch of a step that is not done."""
    stands = {move.place: standing(move, so_far.toward, seen) for move in step.moves}
    unstarted = [move for move in step.moves if stands[move.place] is Standing.STARTABLE]
    settling = [move for move in step.moves if stands[move.place] is Standing.SETTLING]
    why = mismatch(so_far.plan, step.moves, so_far.toward, seen)
    if why is None and unstarted and not is_moving:
        why = running_beside(so_far.plan, seen)
    if why is not None:
        return (None if is_moving else _give_back(so_far, seen)) or Stop(why)
    if not is_moving and so_far.throttled_step != step.number and (given := _give_back(so_far, seen)):
        return given
    if not (unstarted or settling or is_moving):
        return _give_back(so_far, seen) or Record(StepDone(step.number))
    chosen = _within(unstarted, so_far.toward, seen, limits)
    if not (chosen or settling or is_moving):
        return _give_back(so_far, seen) or Paused()
    if throttling := _throttled(so_far, step, seen, limits):
        return throttling
    if is_moving or settling:
        return Wait(_stalled(step, so_far.toward, seen, settling))
    if away := missing_brokers(chosen, so_far.toward, seen):
        return Wait(away)
    return StartMoves(
        {move.place: move.end(so_far.toward) for move in chosen},
        sum(_copies(move, so_far.toward, seen) for move in chosen),
    )


def _ours_in_flight(so_far: Account, seen: ObservedCluster) -> Iterator[tuple[tuple[str, int], Standing]]:
    """Of the whole plan: a run that was turned round may have left some anywhere."""
    for place in sorted(seen.in_flight):
        move = so_far.plan.by_place.get(place)
        if move is not None:
            how = standing(move, so_far.toward, seen)
            if how in (Standing.MOVING, Standing.OPPOSING):
                yield place, how


def _within(
    unstarted: list[PartitionMove], toward: Toward, seen: ObservedCluster, limits: Limits
) -> list[PartitionMove]:
    """As many as this run may still copy, in the order of the step."""
    if not limits.starting:
        return []
    chosen, copies = [], 0
    for move in unstarted:
        copies += _copies(move, toward, seen)
        if limits.moves is not None and copies > limits.moves:
            break
        chosen.append(move)
    return chosen


def _copies(move: PartitionMove, toward: Toward, seen: ObservedCluster) -> int:
    return len(set(move.end(toward)) - set(seen.replicas[move.place]))


def _throttle(so_far: Account, limits: Limits) -> Mapping[ConfigKey, str]:
    step = so_far.step
    if limits.bytes_per_second is None or so_far.cancelled or step is None or not step.copies(so_far.toward):
        return {}
    return throttle(step, so_far.toward, limits.bytes_per_second)


def _throttled(so_far: Account, step: WrittenStep, seen: ObservedCluster, limits: Limits) -> Effect | None:
    """What is still to be done about the throttle; None when it shows. Brokers that are gone are passed over."""
    wanted = {config: value for config, value in _throttle(so_far, limits).items() if config in seen.configs}
    unrecorded = {config: seen.configs[config] for config in wanted if config not in so_far.own}
    if unrecorded or (wanted and so_far.throttled_step != step.number):
        return Record(Throttling(step.number, unrecorded))
    values = with_own(wanted, so_far.own)
    return SetConfigs(values) if _differ(values, seen) else None


def _give_back(so_far: Account, seen: ObservedCluster) -> Effect | None:
    """What is still to be done about the user's own throttles; None when nothing is, or nobody can be asked."""
    there = {config: value for config, value in so_far.own.items() if config in seen.configs}
    gone = [config for config in so_far.own if config.holder is Holder.TOPIC and config.name not in seen.topic_ids]
    if _differ(there, seen):
        return SetConfigs(there)
    return Record(Unthrottled((*there, *gone))) if there or gone else None


def _differ(values: Mapping[ConfigKey, str | None], seen: ObservedCluster) -> bool:
    return any(seen.configs[config] != value for config, value in values.items())


def _stalled(step: WrittenStep, toward: Toward, seen: ObservedCluster, settling: list[PartitionMove]) -> str | None:
    if settling:
        return _between(settling[0], seen)
    return missing_brokers([move for move in step.moves if move.place in seen.in_flight], toward, seen)


def _between(move: PartitionMove, seen: ObservedCluster) -> str:
    at = ",".join(map(str, seen.replicas[move.place]))
    return f"{move.name} shows {at}, as in the middle of a move, and nothing moves it; look at it"


def _at_rest(so_far: Account, seen: ObservedCluster) -> Effect:
    """After a cancel. Kafka puts the replicas back in its own order, which decides who leads; the plan's is mended."""
    moves = so_far.step.moves if so_far.step is not None else ()
    settling = [move for move in moves if standing(move, so_far.toward, seen) is Standing.SETTLING]
    if settling:
        return Wait(_between(settling[0], seen))
    mixed = {move.place: end for move in moves if (end := _in_other_order(move, so_far.toward, seen)) is not None}
    return StartMoves(mixed, 0) if mixed else _give_back(so_far, seen) or Finished(tuple(so_far.own))


def _in_other_order(move: PartitionMove, toward: Toward, seen: ObservedCluster) -> tuple[int, ...] | None:
    replicas, start, end = seen.replicas.get(move.place, ()), move.start(toward), move.end(toward)
    if set(start) == set(end) or replicas in (start, end):
        return None
    return next((wanted for wanted in (start, end) if set(wanted) == set(replicas)), None)


def _ended(so_far: Account) -> Effect:
    return Finished(tuple(so_far.own)) if so_far.ended else Record(Ended())
