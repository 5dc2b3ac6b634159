"""Events as the lines of a journal: one JSON object each. docs/formats.md describes them."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, assert_never

from rackspan.errors import InvalidJournal, InvalidReassignment
from rackspan.plan.execution.events import Began, Cancelled, Ended, Event, StepDone, Throttling, Turned, Unthrottled
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.plan.written import Toward
from rackspan.plan.written_format import plan_as_read, plan_of

VERSION: Final = 1


def event_line(event: Event) -> str:
    """Without the line feed."""
    return json.dumps(_document(event), separators=(",", ":"), ensure_ascii=False)


def read_events(lines: Iterable[str]) -> tuple[Event, ...]:
    """Errors: InvalidJournal, naming the line."""
    return tuple(_event(line, number) for number, line in enumerate(lines, start=1))


def _document(event: Event) -> dict[str, Any]:
    match event:
        case Began(plan):
            return {"event": "began", "version": VERSION, "plan": plan_as_read(plan)}
        case Turned(toward):
            return {"event": "turned", "toward": toward.value}
        case Cancelled():
            return {"event": "cancelled"}
        case Throttling(step, own):
            return {"event": "throttling", "step": step, "own": [[*config, value] for config, value in own.items()]}
        case Unthrottled(configs):
            return {"event": "unthrottled", "configs": [list(config) for config in configs]}
        case StepDone(step):
            return {"event": "step-done", "step": step}
        case Ended():
            return {"event": "ended"}
        case _:
            assert_never(event)


def _began(line: Mapping[str, Any]) -> Began:
    if line["version"] != VERSION:
        raise InvalidJournal(f"version {line['version']!r} is not known; take the rackspan that wrote it")
    return Began(plan_of(line["plan"]))


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Event]]] = {
    "began": _began,
    "turned": lambda line: Turned(Toward(line["toward"])),
    "cancelled": lambda _: Cancelled(),
    "throttling": lambda line: Throttling(int(line["step"]), {_config(one[:3]): _value(one[3]) for one in line["own"]}),
    "unthrottled": lambda line: Unthrottled(tuple(_config(one) for one in line["configs"])),
    "step-done": lambda line: StepDone(int(line["step"])),
    "ended": lambda _: Ended(),
}


def _event(line: str, number: int) -> Event:
    try:
        document = json.loads(line)
        return _READERS[document["event"]](document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, InvalidReassignment):
        raise InvalidJournal(f"line {number} is no event; restore the file, or name another --journal") from None


def _config(words: Iterable[str]) -> ConfigKey:
    holder, name, key = words
    return ConfigKey(Holder(holder), name, key)


def _value(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError(value)
    return value
