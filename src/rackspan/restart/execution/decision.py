"""The next effect of a rolling restart, by its journal and a snapshot. `apply` carries it out and decides nothing.

A batch may stop once `judge_stop` says so. It is done when the cluster has shown each of its brokers stopped, and shows
each of them up, and in every ISR that it was in when the batch began.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot, TopicPartition
from rackspan.restart.execution.events import (
    BatchCompleted,
    BatchStarted,
    BrokersStopped,
    RestartEvent,
    RestartState,
)
from rackspan.restart.execution.places import is_up, isr_places, missing_places, preferred_elsewhere
from rackspan.restart.safe import StopJudgement, judge_stop
from rackspan.text import noun_and_ids


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Write this into the journal, on the disk, before anything else."""

    event: RestartEvent


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Start the command that restarts these brokers."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ElectLeadersOfBatch:
    """ElectLeaders, for preferred leaders."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AwaitBrokers:
    """Observe again later. `missing`: what `why` waits for, counted: it falls while there is progress.

    `remedy`: the next step if there is none for long; None if somebody else may take any time.
    """

    why: str
    missing: int
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class EndRestart:
    """The restart cannot go on."""

    why: str


@dataclass(frozen=True, slots=True)
class RestartFinished:
    """Every batch is done."""


Effect: TypeAlias = RecordEvent | RunCommand | ElectLeadersOfBatch | AwaitBrokers | EndRestart | RestartFinished


@dataclass(frozen=True, slots=True)
class CommandStatus:
    """The command of the batch. `running`: its process exists; `exit_status`: None unless this run started it and it ended."""

    running: bool = False
    exit_status: int | None = None


RESUME: Final = "run the same command again to resume"


def decide(
    state: RestartState, snapshot: ClusterSnapshot, policy: RackPolicy, command: CommandStatus | None = None
) -> Effect:
    """The next effect. `command`: None if somebody else restarts the brokers."""
    brokers = state.brokers
    if not brokers:
        return RestartFinished()
    if state.places is None:
        return _refusal(state, snapshot, policy, brokers, command) or RecordEvent(
            BatchStarted(state.done + 1, {broker: dict(held) for broker, held in isr_places(snapshot, brokers).items()})
        )
    stopped = tuple(broker for broker in brokers if broker not in state.stopped and not is_up(snapshot, broker))
    if stopped:
        return RecordEvent(BrokersStopped(stopped))
    if command is not None and command.exit_status:
        why = f"the command ended with status {command.exit_status}; look at its output"
        return EndRestart(f"{_named(state)}: {why}, then {RESUME}")
    waiting = (
        _first_command(state, snapshot, policy, command)
        or _until_back(state, snapshot)
        or _until_stopped(state, snapshot, policy, command)
    )
    if waiting is not None:
        return waiting
    away = preferred_elsewhere(snapshot, brokers) if command is not None and not state.elected else ()
    return ElectLeadersOfBatch(away) if away else RecordEvent(BatchCompleted())


def _refusal(
    state: RestartState,
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    brokers: tuple[int, ...],
    command: CommandStatus | None,
) -> AwaitBrokers | None:
    """Why the brokers may not stop yet; None if they may. Those that are down already take nothing away."""
    judged = judge_stop(snapshot, [broker for broker in brokers if snapshot.broker(broker)], policy, state.batches.stop)
    if judged.safe:
        return None
    count, why = _first_reason(judged)
    remedy = None if command is None else f"see rackspan restart safe --broker {','.join(map(str, brokers))}; {RESUME}"
    down = [
        broker
        for batch in state.batches.batches[state.done + 1 :]
        for broker in batch.brokers
        if _is_down(snapshot, broker)
    ]
    if down:
        # Its own turn never comes if this batch needs it.
        which = noun_and_ids("broker", sorted(down))
        why = f"{why}; {which} of a later batch {'is' if len(down) == 1 else 'are'} down"
        remedy = f"start {which}, and {RESUME}, or make the plan again: what is down comes first in it"
    return AwaitBrokers(f"{_named(state)} may not stop yet: {why}", count, remedy)


def _is_down(snapshot: ClusterSnapshot, broker: int) -> bool:
    """Whether a broker is not up, or the controller in its process is dead."""
    dead = (
        int(controller.id) == broker and controller.voter and controller.alive is False
        for controller in snapshot.controllers
    )
    return not is_up(snapshot, broker) or any(dead)


def _first_reason(judged: StopJudgement) -> tuple[int, str]:
    """How many reasons forbid the stop, and the first of them."""
    quorum = judged.controllers
    reasons = list(judged.partial)
    if quorum is not None and not quorum.holds:
        reasons.append(f"{quorum.left} of {quorum.voters} controllers left is no majority")
    reasons += [f"{harmed.topic}-{harmed.partition}: {harmed.reason}" for harmed in judged.blocking]
    more = f" ({len(reasons) - 1} more in rackspan restart safe)" if len(reasons) > 1 else ""
    return len(reasons), reasons[0] + more


def _first_command(
    state: RestartState, snapshot: ClusterSnapshot, policy: RackPolicy, command: CommandStatus | None
) -> AwaitBrokers | RunCommand | None:
    """The first command of the batch, if it has had none: also for its brokers that are down, which the command starts."""
    if command != CommandStatus() or state.command_pid is not None:
        return None
    brokers = tuple(broker for broker in state.brokers if broker not in state.stopped or not is_up(snapshot, broker))
    return (_refusal(state, snapshot, policy, brokers, command) or RunCommand(brokers)) if brokers else None


def _until_stopped(
    state: RestartState, snapshot: ClusterSnapshot, policy: RackPolicy, command: CommandStatus | None
) -> AwaitBrokers | RunCommand | None:
    """The command to start or to wait for; None once it has ended and every broker was shown stopped."""
    pending = tuple(broker for broker in state.brokers if broker not in state.stopped)
    which = noun_and_ids("broker", pending or state.brokers)
    if command is None:
        return (
            AwaitBrokers(f"{_named(state)}: {which} may stop now, and did not yet", len(pending)) if pending else None
        )
    if command.running:
        return AwaitBrokers(
            f"{_named(state)}: its command, process {state.command_pid}, has not ended",
            len(pending),
            f"see what the command waits for, end it, and {RESUME}",
        )
    if not pending:
        return None
    if command.exit_status == 0:
        return AwaitBrokers(
            f"{_named(state)}: {which} did not stop, and the command has ended",
            len(pending),
            f"let the command restart every broker that it is given, and {RESUME}",
        )
    # After a run that ended before these brokers stopped.
    return _refusal(state, snapshot, policy, pending, command) or RunCommand(pending)


def _until_back(state: RestartState, snapshot: ClusterSnapshot) -> AwaitBrokers | None:
    """What the brokers that have stopped still lack."""
    down = [broker for broker in sorted(state.stopped) if not is_up(snapshot, broker)]
    places = missing_places(
        snapshot, {broker: held for broker, held in (state.places or {}).items() if broker in state.stopped}
    )
    if down:
        which = noun_and_ids("broker", down)
        verb = "has" if len(down) == 1 else "have"
        return AwaitBrokers(
            f"{_named(state)}: {which} {verb} not come back",
            len(down) + places.count,
            f"start {which}, and {RESUME}",
        )
    if places.count:
        return AwaitBrokers(
            f"{_named(state)}: {places.count:,} of {places.total:,} places in ISRs are not regained, {places.first} is the first",
            places.count,
            f"look at the logs of {noun_and_ids('broker', sorted(state.stopped))}, and {RESUME}",
        )
    return None


def _named(state: RestartState) -> str:
    return f"batch {state.done + 1} of {len(state.batches.batches)} ({noun_and_ids('broker', state.brokers)})"
