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
from rackspan.plan.effects import CancelMoves, Effect, Finished, Paused, Record, SetConfigs, StartMoves, Stop, Wait
from rackspan.plan.events import Account, Ended, Event, StepDone
from rackspan.plan.execution import Limits, Question, decide, question
from rackspan.plan.observed import ObservedCluster
from rackspan.plan.throttle import ConfigKey
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
    waiting, refusal, last, confirmed = _Waiting(pace), None, None, None
    while True:
        try:
            seen = cluster.observe(question(ledger.account, limits))
        except (ClusterUnreachable, ClusterRequestFailed) as error:
            waiting.for_what_may_never_come(error)
            continue
        effect = decide(ledger.account, seen, limits)
        if _ends_something(effect) and effect != confirmed:
            # A broker may be behind the controller: what it shows as done is believed when it still is a moment later.
            confirmed = effect
            pace.sleep(pace.settle_seconds)
            continue
        confirmed = None
        if refusal is not None and isinstance(effect, Wait | Stop | Paused | Finished):
            raise refusal
        yield Happened(effect, ledger.account, seen)
        if isinstance(effect, Stop):
            raise ReassignmentStopped(effect.why)
        if isinstance(effect, Paused | Finished):
            return
        try:
            _do(effect, cluster, ledger)
        except (ClusterRequestFailed, ClusterUnauthorized) as error:
            if not limits.starting:
                raise
            # What was throttled for it is given back first.
            limits, refusal = replace(limits, starting=False), error
        except ClusterUnreachable as error:
            waiting.for_what_may_never_come(error)
            last = effect
            continue
        limits = _spent(limits, effect, last)
        waiting.after(effect, last)
        last = effect


def _do(effect: Effect, cluster: ClusterHands, ledger: Journal | Ledger) -> None:
    match effect:
        case Record(event):
            ledger.append(event)
        case SetConfigs(values):
            cluster.set_configs(values)
        case StartMoves(targets):
            cluster.start_moves(targets)
        case CancelMoves(places):
            cluster.cancel_moves(places)
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
