"""Events as the lines of a journal: one JSON object each. docs/formats.md describes them."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final, assert_never

import msgspec

from rackspan.documents import AtLeastOne, Count
from rackspan.errors import InvalidJournal, InvalidReassignment
from rackspan.plan.execution.events import (
    DirectionSet,
    Event,
    ForeignThrottleRecorded,
    RateSet,
    RunCancelled,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepDeferred,
    ThrottleRecorded,
    ThrottleRemoved,
)
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.plan.plan_file import journal_document, plan_of
from rackspan.reassign import Direction

VERSION: Final = 1


def event_line(event: Event) -> str:
    """Without the line feed."""
    return json.dumps(_document(event), separators=(",", ":"), ensure_ascii=False)


def read_events(lines: Iterable[str]) -> tuple[Event, ...]:
    """Errors: InvalidJournal, naming the line."""
    return tuple(_event(line, number) for number, line in enumerate(lines, start=1))


def _document(event: Event) -> dict[str, object]:
    match event:
        case RunStarted(plan, bytes_per_second):
            rate = {} if bytes_per_second is None else {"bytes_per_second": bytes_per_second}
            return {"event": "began", "version": VERSION, **rate, "plan": journal_document(plan)}
        case DirectionSet(direction):
            return {"event": "turned", "toward": direction.value}
        case RateSet(bytes_per_second):
            return {"event": "rate", "bytes_per_second": bytes_per_second}
        case RunCancelled():
            return {"event": "cancelled"}
        case ThrottleRecorded(step, own):
            return {"event": "throttling", "step": step, "own": _rows(own)}
        case ForeignThrottleRecorded(own):
            return {"event": "throttled-by-others", "own": _rows(own)}
        case ThrottleRemoved(configs):
            return {"event": "unthrottled", "configs": [list(config) for config in configs]}
        case StepCompleted(step):
            return {"event": "step-done", "step": step}
        case StepDeferred(step):
            return {"event": "step-deferred", "step": step}
        case RunCompleted():
            return {"event": "ended"}
        case _:
            assert_never(event)


def _began(line: Mapping[str, object]) -> RunStarted:
    if line["version"] != VERSION:
        raise InvalidJournal(f"version {line['version']!r} is not known; take the rackspan that wrote it")
    plan = plan_of(msgspec.convert(line["plan"], dict[str, object]))
    return RunStarted(plan, _rate(line["bytes_per_second"]) if "bytes_per_second" in line else None)


_READERS: Final[Mapping[str, Callable[[Mapping[str, object]], Event]]] = {
    "began": _began,
    "turned": lambda line: DirectionSet(msgspec.convert(line["toward"], Direction)),
    "rate": lambda line: RateSet(_rate(line["bytes_per_second"])),
    "cancelled": lambda _: RunCancelled(),
    "throttling": lambda line: ThrottleRecorded(_step(line["step"]), _own(line["own"])),
    "throttled-by-others": lambda line: ForeignThrottleRecorded(_own(line["own"])),
    "unthrottled": lambda line: ThrottleRemoved(msgspec.convert(line["configs"], tuple[ConfigKey, ...])),
    "step-done": lambda line: StepCompleted(_step(line["step"])),
    "step-deferred": lambda line: StepDeferred(_step(line["step"])),
    "ended": lambda _: RunCompleted(),
}


def _event(line: str, number: int) -> Event:
    try:
        document = json.loads(line)
        return _READERS[document["event"]](document)
    except (ValueError, KeyError, TypeError, RecursionError, msgspec.ValidationError, InvalidReassignment):
        raise InvalidJournal(f"line {number} is not an event; restore the file, or name another --journal") from None


def _rows(own: Mapping[ConfigKey, str | None]) -> list[list[str | None]]:
    return [[*config, value] for config, value in own.items()]


def _own(rows: object) -> dict[ConfigKey, str | None]:
    read = msgspec.convert(rows, list[tuple[Holder, str, str, str | None]])
    return {ConfigKey(holder, name, key): value for holder, name, key, value in read}


def _rate(value: object) -> int:
    return msgspec.convert(value, Count)


def _step(value: object) -> int:
    return msgspec.convert(value, AtLeastOne)
