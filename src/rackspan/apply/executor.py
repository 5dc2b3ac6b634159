"""The loop of a run: look, decide, do one thing, again. What to do is plan's to decide; this only does it, and waits.

A request that nobody answered is no failure here: the next look tells whether it was carried out.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from rackspan.apply.journal import Journal
from rackspan.errors import (
    ClusterRequestFailed,
    ClusterUnauthorized,
    ClusterUnreachable,
    RackspanError,
    ReassignmentStopped,
)
from rackspan.plan.execution.decision import Limits, Question, decide, question
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
from rackspan.plan.execution.events import Account, Ended, Event, StepDone
from rackspan.plan.execution.observed import ObservedCluster
from rackspan.plan.execution.throttle import ConfigKey
from rackspan.plan.written import TopicPartition

PATIENCE_SECONDS: Final = 300.0
"""How long a run waits for what keeps it: a broker's machine may be restarted meanwhile."""

_POLL_SECONDS: Final = 0.5

_SETTLE_SECONDS: Final = 0.25
"""After a change, before the next look: brokers follow the controller within milliseconds."""


class ClusterHands(Protocol):
    """What a run needs of a cluster. Errors: SourceError."""

    def observe(self, asked: Question) -> ObservedCluster: ...

    def set_configs(self, values: Mapping[ConfigKey, str | None]) -> None: ...

    def start_moves(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None: ...

    def cancel_moves(self, places: tuple[TopicPartition, ...]) -> None: ...


class Ledger(Protocol):
    """What a run needs of its journal."""

    @property
    def account(self) -> Account: ...

    def append(self, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """How a run waits. `patience_seconds`: for something that may never come."""

    patience_seconds: float = PATIENCE_SECONDS
    poll_seconds: float = _POLL_SECONDS
    settle_seconds: float = _SETTLE_SECONDS
    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Happened:
    """An effect, where the run stood, and what it saw. Told before the effect is carried out."""

    effect: Effect
    account: Account
    seen: ObservedCluster


def carry_out(
    cluster: ClusterHands, ledger: Journal | Ledger, limits: Limits, pace: Pace = Pace()
) -> Iterator[Happened]:
    """Run until nothing is left to do or to be done now; the last effect is Finished or Paused.

    Errors: ReassignmentStopped where the cluster is not what the plan assumed; SourceError.
    """
    run = _Run(cluster, ledger, limits, pace)
    while True:
        found = run.look()
        if found is None:
            continue
        yield found
        if isinstance(found.effect, Stop):
            raise ReassignmentStopped(found.effect.why)
        if isinstance(found.effect, Paused | Finished):
            return
        run.carry_out(found.effect)


class _Run:
    """What a run keeps in memory, all of which may be lost: its patience, and what it may still copy."""

    def __init__(self, cluster: ClusterHands, ledger: Journal | Ledger, limits: Limits, pace: Pace) -> None:
        self._cluster, self._ledger, self._limits, self._pace = cluster, ledger, limits, pace
        self._waiting = _Waiting(pace)
        self._refusal: RackspanError | None = None
        self._last: Effect | None = None
        self._confirmed: Effect | None = None

    def look(self) -> Happened | None:
        """The next effect and why; None where one look was not enough to tell."""
        so_far = self._ledger.account
        try:
            seen = self._cluster.observe(question(so_far, self._limits))
        except (ClusterUnreachable, ClusterRequestFailed) as error:
            self._waiting.for_what_may_never_come(error)
            return None
        effect = decide(so_far, seen, self._limits)
        if _ends_something(effect) and effect != self._confirmed:
            # A broker may be behind the controller: what it shows as done is believed when it still is a moment later.
            self._confirmed = effect
            self._pace.sleep(self._pace.settle_seconds)
            return None
        self._confirmed = None
        if self._refusal is not None and isinstance(effect, Wait | Stop | Paused | Finished):
            raise self._refusal
        return Happened(effect, so_far, seen)

    def carry_out(self, effect: Effect) -> None:
        try:
            self._do(effect)
        except (ClusterRequestFailed, ClusterUnauthorized) as error:
            if self._refusal is not None:
                raise
            # What was throttled for it is given back before the refusal is told.
            self._limits, self._refusal = replace(self._limits, starting=False), error
        except ClusterUnreachable as error:
            self._waiting.for_what_may_never_come(error)
        else:
            self._waiting.after(effect, self._last)
        self._limits = _spent(self._limits, effect, self._last)
        self._last = effect

    def _do(self, effect: Effect) -> None:
        match effect:
            case Record(event):
                self._ledger.append(event)
            case SetConfigs(values):
                self._cluster.set_configs(values)
            case StartMoves(targets):
                self._cluster.start_moves(targets)
            case CancelMoves(places):
                self._cluster.cancel_moves(places)
            case _:
                pass


def _ends_something(effect: Effect) -> bool:
    return isinstance(effect, Finished) or (isinstance(effect, Record) and isinstance(effect.event, StepDone | Ended))


def _spent(limits: Limits, effect: Effect, last: Effect | None) -> Limits:
    """The same start twice in a row is one: the first was not seen yet."""
    if isinstance(effect, StartMoves) and limits.moves is not None and effect != last:
        return replace(limits, moves=max(0, limits.moves - effect.copies))
    return limits


class _Waiting:
    """How long the same thing has been waited for."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._since: float | None = None

    def after(self, effect: Effect, last: Effect | None) -> None:
        """Wait as long as this effect needs before the next look."""
        match effect:
            case Record():
                self._since = None
            case Wait(stalled=None):
                self._since = None
                self._pace.sleep(self._pace.poll_seconds)
            case Wait(stalled=str(why)):
                self.for_what_may_never_come(ReassignmentStopped(why))
            case _ if effect == last:
                self.for_what_may_never_come(
                    ReassignmentStopped("the cluster took a change and does not show it; look at its controller's log")
                )
            case _:
                self._since = None
                self._pace.sleep(self._pace.settle_seconds)

    def for_what_may_never_come(self, error: RackspanError) -> None:
        """Raise once patience is at its end; sleep until then."""
        now = self._pace.now()
        self._since = now if self._since is None else self._since
        if now - self._since >= self._pace.patience_seconds:
            raise error
        self._pace.sleep(self._pace.poll_seconds)
