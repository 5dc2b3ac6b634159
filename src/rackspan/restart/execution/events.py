"""The events of a rolling restart's journal, and the state that they add up to.

An event is written before what it allows: a batch that was started is in the journal with its places before it is
reported that it may stop. What the cluster shows by itself (a broker that is back) is not written.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Final, TypeAlias

import msgspec

from rackspan.documents import AtLeastOne
from rackspan.errors import InvalidJournal
from rackspan.restart.execution.places import IsrPlaces
from rackspan.restart.execution.plan_file import RestartBatches

VERSION: Final = 1


class _Event(msgspec.Struct, frozen=True, tag_field="event"):
    """One line of the journal."""


class RestartStarted(_Event, frozen=True, tag="began"):
    """The batches. Always the first event, and only the first."""

    batches: RestartBatches
    version: int = VERSION


class BatchStarted(_Event, frozen=True, tag="batch-started"):
    """From now on the brokers of the batch may stop. `places`: what they have to regain."""

    batch: AtLeastOne
    places: dict[int, dict[str, tuple[int, ...]]]


class CommandStarted(_Event, frozen=True, tag="command-started"):
    """The command for these brokers is a process with this id; it begins once this is written.

    `started`: clock ticks from the machine's start to the process's, None if that is not known: ids are used again.
    """

    brokers: tuple[int, ...]
    pid: AtLeastOne
    started: int | None = None


class BrokersStopped(_Event, frozen=True, tag="stopped"):
    """The cluster showed these brokers fenced, or did not list them."""

    brokers: tuple[int, ...]


class LeadersElected(_Event, frozen=True, tag="elected"):
    """The preferred leaders of the batch were elected."""


class BatchCompleted(_Event, frozen=True, tag="batch-done"):
    """Every broker of the batch is back, in each ISR that it was in."""


RestartEvent: TypeAlias = (
    RestartStarted | BatchStarted | CommandStarted | BrokersStopped | LeadersElected | BatchCompleted
)


class RestartState(msgspec.Struct, frozen=True):
    """How far a rolling restart is: `done` batches, and of the next one what has happened.

    `places`: None before it is started. `stopped`: its brokers that were shown stopped. `command_pid` and
    `command_started`: its latest command.
    """

    batches: RestartBatches
    done: int = 0
    places: IsrPlaces | None = None
    stopped: frozenset[int] = frozenset()
    command_pid: int | None = None
    command_started: int | None = None
    elected: bool = False

    @property
    def brokers(self) -> tuple[int, ...]:
        """Those of the batch under way or next; none when all are done."""
        return self.batches.batches[self.done].brokers if self.done < len(self.batches.batches) else ()


def event_line(event: RestartEvent) -> str:
    """Without the line feed."""
    return msgspec.json.encode(event).decode()


def read_events(lines: Iterable[str]) -> tuple[RestartEvent, ...]:
    """Errors: InvalidJournal, naming the line."""
    return tuple(_event(line, number) for number, line in enumerate(lines, start=1))


def _event(line: str, number: int) -> RestartEvent:
    try:
        event: RestartEvent = msgspec.json.decode(line, type=RestartEvent)
    except msgspec.MsgspecError:
        raise InvalidJournal(f"line {number} is not an event; restore the file, or name another --journal") from None
    if isinstance(event, RestartStarted) and event.version != VERSION:
        raise InvalidJournal(f"version {event.version!r} is not known; take the rackspan that wrote it")
    return event


def replay(events: Iterable[RestartEvent]) -> RestartState:
    """The state after all events of a journal, the first of which names the batches. Errors: InvalidJournal."""
    first, *others = events
    return reduce(after, others, after(None, first))


def after(state: RestartState | None, event: RestartEvent) -> RestartState:
    """The state after one more event. Errors: InvalidJournal for a journal that does not begin with its plan, or begins twice."""
    if state is None or isinstance(event, RestartStarted):
        if state is None and isinstance(event, RestartStarted):
            return RestartState(event.batches)
        raise InvalidJournal("it does not begin with its plan, or begins twice; keep one journal for each plan")
    match event:
        case BatchStarted(_, places):
            return RestartState(state.batches, state.done, places)
        case CommandStarted(_, pid, started):
            return msgspec.structs.replace(state, command_pid=pid, command_started=started)
        case BrokersStopped(brokers):
            return msgspec.structs.replace(state, stopped=state.stopped | set(brokers))
        case LeadersElected():
            return msgspec.structs.replace(state, elected=True)
        case BatchCompleted():
            return RestartState(state.batches, state.done + 1)
