"""The flags of this command line that the commands it prints repeat: printed_commands.py adds them."""

import shlex
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from enum import Enum
from typing import Any, Final

SETTINGS: Final = "--settings"
"""The flag of a settings file, declared with those of every command."""

REPEATED: Final[ContextVar[Mapping[str, str]]] = ContextVar("REPEATED", default={})  # noqa: B039 - never written to
"""Their words by flag, as a shell reads them: `--cluster` to `--cluster prod`."""


def repeat(context: Any) -> None:
    """Repeat the flags of a command, from click's context."""
    REPEATED.set(dict(_flags(context)))


def repeat_none() -> None:
    """From here on printed commands are those of no command line."""
    REPEATED.set({})


def _flags(context: Any) -> Iterator[tuple[str, str]]:
    from rackspan.cli.options.input_files import STANDARD_STREAM
    from rackspan.cli.options.settings_table import EXCLUDE_BROKERS, IN_FILE, OUTPUT, REMOTE, SNAPSHOT

    # What a command reads, and by which settings it judges: they mean the same to every command that has them.
    settings = {*IN_FILE, SNAPSHOT, EXCLUDE_BROKERS, REMOTE} - {OUTPUT}
    repeated = {SETTINGS, *(f"--{setting.key}" for setting in settings)}
    for each in dict.fromkeys((context.find_root(), context)):
        for parameter in each.command.params:
            flag, value = parameter.opts[0], each.params.get(parameter.name)
            source = each.get_parameter_source(parameter.name)
            if flag not in repeated or source is None or source.name != "COMMANDLINE":
                continue
            values = value if isinstance(value, list | tuple) else [value]
            # Several clusters are for a command that reads many: what it prints of one of them names it.
            if len(values) == 1 and value not in (False, STANDARD_STREAM):
                yield flag, flag if value is True else f"{flag} {shlex.quote(_written(values[0]))}"


def _written(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
