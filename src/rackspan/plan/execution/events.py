"""What the journal of a run holds: one event after another, and the account they add up to.

An event is written before the cluster is touched where forgetting would lose something (what a user had set), and after
it where the cluster itself can be asked (a step that is done). So the account may be behind the cluster, never ahead.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias, assert_never

from rackspan.errors import InvalidJournal
from rackspan.plan.execution.throttle import ConfigKey
from rackspan.plan.written import Toward, WrittenPlan, WrittenStep


@dataclass(frozen=True, slots=True)
class Began:
    """The plan, every original filled in. Always the first event, and only the first."""

    plan: WrittenPlan


@dataclass(frozen=True, slots=True)
class Turned:
    """From here on the plan is carried that way; also what resumes a cancelled run."""

    toward: Toward


@dataclass(frozen=True, slots=True)
class Cancelled:
    """From here on nothing more is started."""


@dataclass(frozen=True, slots=True)
class Throttling:
    """About to set these configs for a step; their own values before, None for nothing."""

    step: int
    own: Mapping[ConfigKey, str | None]


@dataclass(frozen=True, slots=True)
class Unthrottled:
    """These configs have their own values again, or went with their topic."""

    configs: tuple[ConfigKey, ...]


@dataclass(frozen=True, slots=True)
class StepDone:
    step: int


@dataclass(frozen=True, slots=True)
class Ended:
    """Everything is where it shall be."""


Event: TypeAlias = Began | Turned | Cancelled | Throttling | Unthrottled | StepDone | Ended


@dataclass(frozen=True, slots=True)
class Account:
    """Where a run stands. `own`: values to give back. `throttled_step`: whose throttle is set, None between steps."""

    plan: WrittenPlan
    toward: Toward = Toward.TARGETS
    cancelled: bool = False
    done: frozenset[int] = frozenset()
    own: Mapping[ConfigKey, str | None] = field(default_factory=dict)
    throttled_step: int | None = None
    ended: bool = False

    @property
    def step(self) -> WrittenStep | None:
        """The one under way or next; None when all are done."""
        return next((step for step in self.plan.in_order(self.toward) if step.number not in self.done), None)

    @property
    def remaining(self) -> tuple[WrittenStep, ...]:
        return tuple(step for step in self.plan.in_order(self.toward) if step.number not in self.done)


def account(events: Iterable[Event]) -> Account:
    """Add a journal up. Errors: InvalidJournal where it does not begin with the plan."""
    first, *others = events
    if not isinstance(first, Began):
        raise InvalidJournal("it does not begin with a plan; is it a journal of rackspan reassign apply?")
    return reduce(after, others, Account(first.plan))


def after(so_far: Account, event: Event) -> Account:
    match event:
        case Began():
            raise InvalidJournal("it begins twice; keep one journal for each plan")
        case Turned(toward):
            return _turned(so_far, toward)
        case Cancelled():
            return replace(so_far, cancelled=True)
        case Throttling(step, own):
            # What was recorded first is the user's; later values may be ours.
            return replace(so_far, own={**own, **so_far.own}, throttled_step=step)
        case Unthrottled(configs):
            left = {config: value for config, value in so_far.own.items() if config not in configs}
            return replace(so_far, own=left, throttled_step=None)
        case StepDone(step):
            return replace(so_far, done=so_far.done | {step})
        case Ended():
            return replace(so_far, ended=True)
        case _:
            assert_never(event)


def _turned(so_far: Account, toward: Toward) -> Account:
    if toward is so_far.toward:
        return replace(so_far, cancelled=False)
    return replace(so_far, toward=toward, cancelled=False, done=frozenset(), throttled_step=None, ended=False)
