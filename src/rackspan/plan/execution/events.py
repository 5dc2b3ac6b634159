"""The events of a run's journal, and the state of the run that they add up to.

An event is written before the cluster is changed where forgetting would lose something (the user's own configs), and
after it where the cluster itself shows it (a step that is done). So the state may lag the cluster; it is never ahead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias, assert_never

from rackspan.errors import InvalidJournal
from rackspan.plan.execution.throttle import ConfigKey
from rackspan.reassign import Direction, ReassignmentPlan, Step


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The plan, every original filled in, and the rate of its throttle. Always the first event, and only the first.

    `bytes_per_second`: None where the run was started without a throttle.
    """

    plan: ReassignmentPlan
    bytes_per_second: int | None = None


@dataclass(frozen=True, slots=True)
class DirectionSet:
    """From now on the run works in that direction; also what resumes a cancelled run."""

    direction: Direction


@dataclass(frozen=True, slots=True)
class RateSet:
    """From now on a broker copies at most so many bytes per second for the run; 0: it is not throttled."""

    bytes_per_second: int


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """From now on nothing more is started."""


@dataclass(frozen=True, slots=True)
class ThrottleRecorded:
    """Written before these configs are set for a step: the user's own values, None where the user had none."""

    step: int
    own: Mapping[ConfigKey, str | None]


@dataclass(frozen=True, slots=True)
class ForeignThrottleRecorded:
    """Somebody else set these configs while the run throttled them: they are the user's values from now on."""

    own: Mapping[ConfigKey, str | None]


@dataclass(frozen=True, slots=True)
class ThrottleRemoved:
    """These configs have the user's own values again, or were deleted with their topic."""

    configs: tuple[ConfigKey, ...]


@dataclass(frozen=True, slots=True)
class StepCompleted:
    step: int


@dataclass(frozen=True, slots=True)
class StepDeferred:
    """The rest of this step cannot finish for now: the steps behind it go on, and it is resumed when it can."""

    step: int


@dataclass(frozen=True, slots=True)
class RunCompleted:
    """Every step is done."""


Event: TypeAlias = (
    RunStarted
    | DirectionSet
    | RateSet
    | RunCancelled
    | ThrottleRecorded
    | ForeignThrottleRecorded
    | ThrottleRemoved
    | StepCompleted
    | StepDeferred
    | RunCompleted
)


@dataclass(frozen=True, slots=True)
class RunState:
    """How far a run is. `own`: the user's configs to restore. `throttled_step`: whose throttle is set, None between steps.
    `deferred`: steps of which some partitions could not finish; the run goes on behind them. `rates`: every rate of the run
    so far, the present one last. `unknown_rate`: a throttle is set whose rate is not in the journal, as earlier versions did.
    """

    plan: ReassignmentPlan
    direction: Direction = Direction.TARGETS
    cancelled: bool = False
    done: frozenset[int] = frozenset()
    deferred: frozenset[int] = frozenset()
    own: Mapping[ConfigKey, str | None] = field(default_factory=dict)
    throttled_step: int | None = None
    completed: bool = False
    rates: tuple[int, ...] = ()
    unknown_rate: bool = False

    @property
    def bytes_per_second(self) -> int | None:
        """The rate of the throttle, 0 for none; None where no rate was ever given."""
        return self.rates[-1] if self.rates else None

    @property
    def step(self) -> Step | None:
        """The one under way or next, deferred ones last; None when all are done."""
        open_steps = self.open_steps
        return next((step for step in open_steps if step.number not in self.deferred), next(iter(open_steps), None))

    @property
    def open_steps(self) -> tuple[Step, ...]:
        """What a run may work on: every deferred step, then the first of the others."""
        deferred = tuple(step for step in self.remaining if step.number in self.deferred)
        return deferred + tuple(step for step in self.remaining if step.number not in self.deferred)[:1]

    @property
    def remaining(self) -> tuple[Step, ...]:
        return tuple(step for step in self.plan.in_order(self.direction) if step.number not in self.done)


def replay(events: Iterable[Event]) -> RunState:
    """The state after all events of a journal. Errors: InvalidJournal where it does not begin with the plan."""
    first, *others = events
    if not isinstance(first, RunStarted):
        raise InvalidJournal("it does not begin with a plan; is it a journal of rackspan reassign apply?")
    return reduce(after, others, started(first))


def started(event: RunStarted) -> RunState:
    return RunState(event.plan, rates=() if event.bytes_per_second is None else (event.bytes_per_second,))


def after(state: RunState, event: Event) -> RunState:
    match event:
        case RunStarted():
            raise InvalidJournal("it begins twice; keep one journal for each plan")
        case DirectionSet(direction):
            return _with_direction(state, direction)
        case RateSet(bytes_per_second):
            return replace(state, rates=(*state.rates, bytes_per_second))
        case RunCancelled():
            return replace(state, cancelled=True)
        case ThrottleRecorded(step, own):
            # What was recorded first is the user's; later values may be ours.
            unknown = state.unknown_rate or not state.rates
            return replace(state, own={**own, **state.own}, throttled_step=step, unknown_rate=unknown)
        case ForeignThrottleRecorded(own):
            return replace(state, own={**state.own, **own})
        case ThrottleRemoved(configs):
            left = {config: value for config, value in state.own.items() if config not in configs}
            return replace(state, own=left, throttled_step=None, unknown_rate=state.unknown_rate and bool(left))
        case StepCompleted(step):
            return replace(state, done=state.done | {step}, deferred=state.deferred - {step})
        case StepDeferred(step):
            return replace(state, deferred=state.deferred | {step})
        case RunCompleted():
            return replace(state, completed=True)
        case _:
            assert_never(event)


def _with_direction(state: RunState, direction: Direction) -> RunState:
    if direction is state.direction:
        return replace(state, cancelled=False)
    return replace(
        state,
        direction=direction,
        cancelled=False,
        done=frozenset(),
        deferred=frozenset(),
        throttled_step=None,
        completed=False,
    )
