"""Events as the lines of a journal: one JSON object each. docs/formats.md describes them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, assert_never

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


def _document(event: Event) -> dict[str, Any]:
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


def _began(line: Mapping[str, Any]) -> RunStarted:
    if line["version"] != VERSION:
        raise InvalidJournal(f"version {line['version']!r} is not known; take the rackspan that wrote it")
    return RunStarted(plan_of(line["plan"]), _rate(line["bytes_per_second"]) if "bytes_per_second" in line else None)


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Event]]] = {
    "began": _began,
    "turned": lambda line: DirectionSet(Direction(line["toward"])),
    "rate": lambda line: RateSet(_rate(line["bytes_per_second"])),
    "cancelled": lambda _: RunCancelled(),
    "throttling": lambda line: ThrottleRecorded(int(line["step"]), _own(line["own"])),
    "throttled-by-others": lambda line: ForeignThrottleRecorded(_own(line["own"])),
    "unthrottled": lambda line: ThrottleRemoved(tuple(_config(config) for config in line["configs"])),
    "step-done": lambda line: StepCompleted(int(line["step"])),
    "step-deferred": lambda line: StepDeferred(int(line["step"])),
    "ended": lambda _: RunCompleted(),
}


def _event(line: str, number: int) -> Event:
    try:
        document = json.loads(line)
        return _READERS[document["event"]](document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, InvalidReassignment):
        raise InvalidJournal(f"line {number} is not an event; restore the file, or name another --journal") from None


def _rows(own: Mapping[ConfigKey, str | None]) -> list[list[str | None]]:
    return [[*config, value] for config, value in own.items()]


def _own(rows: Iterable[Sequence[Any]]) -> dict[ConfigKey, str | None]:
    return {_config(row[:3]): _value(row[3]) for row in rows}


def _rate(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(value)
    return value


def _config(words: Iterable[str]) -> ConfigKey:
    holder, name, key = words
    return ConfigKey(Holder(holder), name, key)


def _value(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(value)
    return value
