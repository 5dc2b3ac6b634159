"""The classes of commands: their pages of --help, and the flags that the commands they print repeat.

Pages are plain lines at the width of the terminal, in which no flag, variable or command is ever cut.

Typer's own pages are boxes whose columns cut long flags at 80 columns and take square brackets for markup.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, Final

import typer
from typer import Typer
from typer.core import TyperCommand, TyperGroup

from rackspan.text import closest, nearest

NARROW: Final = 78
"""Below it, a description is on the lines below its flag."""

ALIKE_MIN: Final = 0.7
"""How alike a command must be to be proposed for one that does not exist: `table` for `tabel`, not `reassign` for `drain`."""

_WIDE_COLUMN, _NARROW_COLUMN = 30, 4

SETTINGS: Final = "--settings"
"""The flag of a settings file, declared with those of every command."""

REPEATED: Final[dict[str, str]] = {}
"""The flags of this command line that the commands it prints repeat (output/printed_commands.py): `--cluster` to `--cluster prod`.

Of the process, not of a context: other threads print lines too.
"""


class _PlainHelp:
    """A section for each group of options, in a class of Typer's that follows this one."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **{**settings, "rich_markup_mode": None})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        parameters: list[Any] = self.get_params(ctx)  # type: ignore[attr-defined]  # of Typer's class, which follows this one
        for parameter in parameters:
            # The method of the class: a command that is parsed again gets no second layer.
            convert = partial(type(parameter).process_value, parameter)
            vars(parameter)["process_value"] = partial(_process, parameter, convert)
        words: list[str] = super().parse_args(ctx, args)  # type: ignore[misc]  # as above
        return words

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for title, rows in _sections(self, ctx):
            with formatter.section(title):
                write_rows(formatter, rows)


class HelpCommand(_PlainHelp, TyperCommand):
    """A command whose --help has a section for each group of options."""

    def invoke(self, ctx: Any) -> Any:
        repeat_flags(ctx)
        return super().invoke(ctx)


class HelpGroup(_PlainHelp, TyperGroup):
    """A group of commands whose --help has the whole first sentence of each. Without arguments, its --help is printed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, summary(self.commands[name].help)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            write_rows(formatter, rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command as click does; for a command of a group inside this one, the error names it: `reassign lint`."""
        if args and self.get_command(ctx, args[0]) is None:
            names = {path: path.rpartition(" ")[2] for path in self.paths()}
            hint = "" if args[0] in names.values() else nearest(args[0], self.commands, ALIKE_MIN)
            alike = closest(args[0], {*names.values()}, ALIKE_MIN)
            if alike and not hint:
                inside = [f"{ctx.command_path} {path}" for path, name in names.items() if name == alike]
                hint = f" (did you mean {' or '.join(inside)}?)"
            ctx.fail(f"No such command '{args[0]}'{hint}")
        return super().resolve_command(ctx, args)

    def paths(self) -> Iterator[str]:
        """The words of every command inside this group, at any depth."""
        for name, command in self.commands.items():
            yield from (f"{name} {path}" for path in command.paths()) if isinstance(command, HelpGroup) else [name]


class CommandGroup(Typer):
    """A Typer application with these pages."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            **{"cls": HelpGroup, "no_args_is_help": True, "add_completion": False, "rich_markup_mode": None, **settings}
        )

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        return super().command(name, **{"cls": HelpCommand, **settings})


def _process(parameter: Any, convert: Callable[[Any, Any], Any], ctx: Any, value: Any) -> Any:
    """A parameter's value, converted by Typer only if it needs it: Typer imports pydantic for that, a tenth of a second."""
    kind = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    absent = value is None and not parameter.multiple and not parameter.required
    text = kind in (str, Path) and isinstance(value, str)
    default = isinstance(kind, type) and isinstance(value, kind) and value == parameter.default
    if not (absent or text or default):
        return convert(ctx, value)
    value = Path(value) if text and kind is Path else value
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)


def _sections(command: Any, ctx: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Arguments, then options by their panel, in the order in which they are declared."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            own = "Arguments" if parameter.param_type_name == "argument" else "Options"
            sections.setdefault(getattr(parameter, "rich_help_panel", None) or own, []).append(record)
    yield from sections.items()


def write_rows(formatter: Any, rows: list[tuple[str, str]]) -> None:
    column = _WIDE_COLUMN if formatter.width >= NARROW else _NARROW_COLUMN
    formatter.write_dl(rows, col_max=column)


def summary(text: str | None) -> str:
    """The first paragraph."""
    return " ".join((text or "").split("\n\n")[0].split())


def repeat_flags(context: Any) -> None:
    """Repeat the flags of a command, from click's context."""
    repeat_no_flags()
    REPEATED.update(_flags(context))


def repeat_no_flags() -> None:
    """From here on printed commands are those of no command line."""
    REPEATED.clear()


def _flags(context: Any) -> Iterator[tuple[str, str]]:
    from rackspan.cli.options.input_files import STANDARD_STREAM
    from rackspan.cli.options.settings_table import EXCLUDE_BROKERS, IN_FILE, OUTPUT, REMOTE, SNAPSHOT, SOURCES

    # What a command reads, and by which settings it judges: they mean the same to every command that has them.
    settings = {*IN_FILE, SNAPSHOT, EXCLUDE_BROKERS, REMOTE} - {OUTPUT}
    repeated = {SETTINGS, *(f"--{setting.key}" for setting in settings)}
    given = list[tuple[str, Any, Mapping[str, Any]]]()
    for each in dict.fromkeys((context.find_root(), context)):
        for parameter in each.command.params:
            flag, value = parameter.opts[0], each.params.get(parameter.name)
            source = each.get_parameter_source(parameter.name)
            if flag not in repeated or source is None or source.name != "COMMANDLINE":
                continue
            given += [(flag, item, each.params) for item in (value if isinstance(value, list | tuple) else [value])]
    several = sum(flag in SOURCES for flag, _, _ in given) > 1
    for flag, value, parameters in given:
        # Several clusters are for a command that reads many: what it prints of one of them names it.
        if value in (False, STANDARD_STREAM) or (several and flag in SOURCES):
            continue
        if not _may_be_secret(flag, str(value), parameters):
            yield flag, flag if value is True else f"{flag} {shlex.quote(_written(value))}"


def _may_be_secret(flag: str, value: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a value may hold a credential: a URL, or what a class or a command of the user is given. Printed lines get into logs."""
    from rackspan.cli.options.settings_table import RACK_LOCATOR_PROPERTIES

    if flag == f"--{RACK_LOCATOR_PROPERTIES.key}":
        from rackspan.sources.rack_locators.registry import LOCATORS

        return parameters.get("rack_locator_class") not in LOCATORS.keys() - {"command"}
    _, _, rest = value.partition("://")
    # Spark Connect sends whatever follows a semicolon with every request, such as its token.
    if ";" in rest.replace(";use_ssl=true", ""):
        return True
    if not {*"@?"} & {*rest}:
        return False
    # Imported here: most values are no URLs of this kind.
    from rackspan.pipeline.delta.credentials import has_credentials

    return has_credentials(value)


def _written(value: Any) -> str:
    return str(value.value if isinstance(value, Enum) else value)
