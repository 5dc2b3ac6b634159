"""The settings by which a command judges: the first line of its page, a key of its document, and what a plan of another day was made by."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, TypedDict, TypeVar

import msgspec

from rackspan.cli.options import read_file
from rackspan.cli.options.settings import FILE, IN_FORCE, Settings, SettingValue
from rackspan.cli.output.messages import note, warn

T = TypeVar("T")

KEY: Final = "settings"


class SettingsInForce(TypedDict):
    """The settings files that were read, the first of which counts most, and every value of theirs and of variables that judges a cluster."""

    files: list[str]
    values: dict[str, SettingValue]


_SHOWN: Final[ContextVar[Settings | None]] = ContextVar("_SHOWN", default=None)
"""The settings whose line is printed already."""


def settings_line() -> str | None:
    """`settings: FILE`, `settings: none`, once for a command; None then, and for a command that judges nothing."""
    settings = IN_FORCE.get()
    if settings is None or _SHOWN.get() is settings:
        return None
    _SHOWN.set(settings)
    return f"{KEY}: {', '.join(str(file.path) for file in settings.files) or 'none'}"


def note_settings() -> None:
    """Print that line on standard error, of a command whose page is not its own."""
    line = settings_line()
    if line is not None:
        note(line)


def with_settings(document: Any) -> Any:
    """The document with the settings by which it was made, where a command judges by any."""
    settings = IN_FORCE.get()
    return document if settings is None or KEY in document else {**document, KEY: _in_force(settings)}


def _in_force(settings: Settings) -> SettingsInForce:
    return {"files": [str(file.path.absolute()) for file in settings.files], "values": settings.judging()}


class _Made(msgspec.Struct):
    settings: SettingsInForce | None = None


def read_plan_file(file: Path, parse: Callable[[bytes], T], what: str) -> T:
    """The plan as options.read_file reads it, after a warning if it was made by other settings than those in force. Errors: as of read_file."""

    def read(content: bytes) -> T:
        plan = parse(content)
        warn(f"{file}: {difference}" for difference in _differences(content))
        return plan

    return read_file(file, read, what)


def _differences(content: bytes) -> list[str]:
    settings = IN_FORCE.get()
    try:
        made = msgspec.json.decode(content, type=_Made).settings
    except msgspec.DecodeError:
        # A plan of another tool: its keys are its own.
        made = None
    if made is None or settings is None:
        return []
    now = settings.judging()
    changed = [
        f"{name} was {_shown(made['values'], name)} and is {_shown(now, name)}"
        for name in dict.fromkeys((*made["values"], *now))
        if made["values"].get(name) != now.get(name)
    ]
    if not changed:
        return []
    files = ", ".join(made["files"]) or f"no {FILE}"
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    again = f"plan again, or give --settings {made['files'][0]}" if made["files"] else "plan again"
    return [f"made by other settings ({files}): {', '.join(changed[:3])}{more}; {again}"]


def _shown(values: Mapping[str, SettingValue], name: str) -> str:
    value = values.get(name)
    if value is None:
        return "not set"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
