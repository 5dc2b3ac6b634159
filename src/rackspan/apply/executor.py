"""The loop of a run: observe the cluster, decide, carry out one effect, repeat. `plan.execution` decides.

A request without a response is no failure here: the next observation shows whether it was carried out.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from rackspan.errors import (
    ClusterRequestFailed,
    ClusterUnauthorized,
    ClusterUnreachable,
    RackspanError,
    ReassignmentStopped,
)
from rackspan.model.ids import TopicPartition
from rackspan.plan import ConfigKey, Finished, ObservationRequest, ObservedCluster, Paused, RunLimits, RunState
from rackspan.plan.execution.decision import decide, observation_request
from rackspan.plan.execution.effects import (
    CancelMoves,
    Effect,
    ElectPreferredLeaders,
    Record,
    SetConfigs,
    StartMoves,
    Stop,
    Wait,
)
from rackspan.plan.execution.events import Event, RunCompleted, StepCompleted, StepDeferred

PATIENCE_SECONDS: Final = 300.0
"""How long a run waits while something stalls it: a broker's machine may be restarted meanwhile."""

_POLL_SECONDS: Final = 0.5

_SETTLE_SECONDS: Final = 0.25
"""After a change, before the next observation: brokers follow the controller within milliseconds."""


class ReassigningCluster(Protocol):
    """The cluster as a run observes and changes it. Errors: SourceError."""

    def observe(self, request: ObservationRequest) -> ObservedCluster: ...

    def set_configs(self, values: Mapping[ConfigKey, str | None]) -> None: ...

    def start_moves(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None: ...

    def cancel_moves(self, partitions: tuple[TopicPartition, ...]) -> None: ...

    def elect_leaders(self, partitions: tuple[TopicPartition, ...]) -> None: ...


class EventLog(Protocol):
    """The journal as a run reads and extends it."""

    @property
    def state(self) -> RunState: ...

    def append(self, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run waits. `patience_seconds`: for something that may never happen."""

    patience_seconds: float = PATIENCE_SECONDS
    poll_seconds: float = _POLL_SECONDS
    settle_seconds: float = _SETTLE_SECONDS
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class RunUpdate:
    """An effect, the state and the cluster that it follows from. Yielded before the effect is carried out."""

    effect: Effect
    state: RunState
    cluster: ObservedCluster


def execute(
    cluster: ReassigningCluster, journal: EventLog, limits: RunLimits, pace: Pace = Pace()
) -> Iterator[RunUpdate]:
    """Run until nothing is left to do or to be done now; the last effect is Finished or Paused.

    Errors: ReassignmentStopped where the cluster is not what the plan assumed; SourceError.
    """
    run = _Run(cluster, journal, limits, pace)
    while True:
        update = run.next_update()
        if update is None:
            continue
        yield update
        if isinstance(update.effect, Stop):
            raise ReassignmentStopped(update.effect.why)
        if isinstance(update.effect, Paused | Finished):
            return
        run.carry_out(update.effect)


class _Run:
    """The memory of a run, all of which may be lost: how long it has waited, and what it may still copy."""

    def __init__(self, cluster: ReassigningCluster, journal: EventLog, limits: RunLimits, pace: Pace) -> None:
        self._cluster, self._journal, self._limits, self._pace = cluster, journal, limits, pace
        self._patience = _Patience(pace)
        self._refusal: RackspanError | None = None
        self._last: Effect | None = None
        self._confirmed: Effect | None = None

    def next_update(self) -> RunUpdate | None:
        """The next effect and why; None where one observation is not enough to decide."""
        state = self._journal.state
        try:
            cluster = self._cluster.observe(observation_request(state, self._limits))
        except (ClusterUnreachable, ClusterRequestFailed) as error:
            self._patience.wait_or_raise(error)
            return None
        effect = decide(state, cluster, self._limits)
        if _completes_something(effect) and effect != self._confirmed:
            # A broker may lag the controller: a step is done when two observations in a row show it.
            self._confirmed = effect
            self._pace.sleep(self._pace.settle_seconds)
            return None
        self._confirmed = None
        if self._refusal is not None and isinstance(effect, Wait | Stop | Paused | Finished):
            raise self._refusal
        return RunUpdate(effect, state, cluster)

    def carry_out(self, effect: Effect) -> None:
        try:
            self._do(effect)
        except (ClusterRequestFailed, ClusterUnauthorized) as error:
            if self._refusal is not None:
                raise
            # The throttles that were set for it are removed before the refusal is raised.
            self._limits, self._refusal = replace(self._limits, starting=False), error
        except ClusterUnreachable as error:
            self._patience.wait_or_raise(error)
        else:
            self._patience.after(effect, self._last)
        self._limits = _spent(self._limits, effect, self._last)
        self._last = effect

    def _do(self, effect: Effect) -> None:
        match effect:
            case Record(event):
                self._journal.append(event)
            case SetConfigs(values):
                self._cluster.set_configs(values)
            case StartMoves(targets):
                self._cluster.start_moves(targets)
            case CancelMoves(partitions):
                self._cluster.cancel_moves(partitions)
            case ElectPreferredLeaders(partitions):
                self._cluster.elect_leaders(partitions)
            case _:
                pass


def _completes_something(effect: Effect) -> bool:
    return isinstance(effect, Finished) or (
        isinstance(effect, Record) and isinstance(effect.event, StepCompleted | StepDeferred | RunCompleted)
    )


def _spent(limits: RunLimits, effect: Effect, last: Effect | None) -> RunLimits:
    """The same start twice in a row counts once: the first did not show yet."""
    if isinstance(effect, StartMoves) and limits.moves is not None and effect != last:
        return replace(limits, moves=max(0, limits.moves - effect.copies))
    return limits


class _Patience:
    """How long the run has waited for the same thing."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._since: float | None = None

    def after(self, effect: Effect, last: Effect | None) -> None:
        """Wait as long as this effect needs before the next observation."""
        match effect:
            case Record():
                self._since = None
            case Wait(stalled=None):
                self._since = None
                self._pace.sleep(self._pace.poll_seconds)
            case Wait(stalled=str(why)):
                self.wait_or_raise(ReassignmentStopped(why))
            case _ if effect == last:
                self.wait_or_raise(
                    ReassignmentStopped("the cluster took a change and does not show it; look at its controller's log")
                )
            case _:
                self._since = None
                self._pace.sleep(self._pace.settle_seconds)

    def wait_or_raise(self, error: RackspanError) -> None:
        """Sleep, or raise the error once the same wait has lasted `patience_seconds`."""
        now = self._pace.now()
        self._since = now if self._since is None else self._since
        if now - self._since >= self._pace.patience_seconds:
            raise error
        self._pace.sleep(self._pace.poll_seconds)
