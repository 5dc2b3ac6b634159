"""The command line: parses options, calls api.py and prints the result. It decides nothing.

Data goes to standard output, everything else to standard error. exit_codes.py has the rule of the exit codes.
Depends on: acks, advice, apply, audit, clients, cluster, demo, gateway, kafka_process, model, pipeline, placement, plan, practice, prometheus_metrics, reassign, restart, sources, streams, traffic.
"""

import logging
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

import rackspan
from rackspan import interrupts
from rackspan.cli import output
from rackspan.cli.commands import LazyCommands, RootGroup, reads_settings
from rackspan.cli.exit_codes import ExitCode
from rackspan.cli.help import SETTINGS, CommandGroup, repeat_no_flags
from rackspan.errors import RackspanError, UsageError, missing_extra

# Typer carries its own copy of click since 0.16; this is the error type of whichever it uses.
_UsageError: Final[type[Exception]] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

app = CommandGroup(
    name="rackspan",
    cls=RootGroup,
    help="Rack awareness for Apache Kafka: shows what the loss of a rack would cost, and repairs it.",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from rackspan.kafka_process import TESTED_VERSIONS

        typer.echo(f"rackspan {rackspan.__version__} (tested on Apache Kafka {', '.join(TESTED_VERSIONS)})")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version, and Kafka's that are tested."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="RACKSPAN_DEBUG", help="Show the trace of an error.")
    ] = False,
    settings: Annotated[
        str | None,
        typer.Option(
            SETTINGS,
            envvar="RACKSPAN_SETTINGS",
            metavar="FILE",
            help="A rackspan.toml, in place of the one in this folder.",
        ),
    ] = None,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. A mistake of the user never prints a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or bool(os.environ.get("RACKSPAN_DEBUG"))
    warnings = _ApiWarnings()
    logging.getLogger("rackspan.api").addHandler(warnings)
    # --debug and --settings mean the same before and after the command.
    words = [word for word in words if word != "--debug"]
    try:
        file, words = _without_settings_flag(words)
        before = (["--debug"] if debug else []) + ([] if file is None else [f"{SETTINGS}={file}"])
        tree = command_tree()
        found = _settings(tree, words, file)
        result = tree.main([*before, *words], prog_name="rackspan", standalone_mode=False, **found)
        if result == ExitCode.INTERRUPTED:
            # Typer returns this code for KeyboardInterrupt, and says nothing.
            output.note("interrupted")
        # Here, so that a full disk is reported: Python ignores the error when it flushes at exit.
        sys.stdout.flush()
    except SystemExit as ended:
        # Typer and Rich end the process themselves where the reader has closed the pipe.
        if isinstance(ended.__context__, BrokenPipeError):
            return report(ended.__context__)
        raise
    except (Exception, KeyboardInterrupt) as error:
        return report(error, debug=debug)
    finally:
        logging.getLogger("rackspan.api").removeHandler(warnings)
        # After the last line, which is one of the log too and may name a command.
        output.begin_log(None)
        repeat_no_flags()
    return result if isinstance(result, int) else ExitCode.DONE


class _ApiWarnings(logging.Handler):
    """Prints what api.py warns of, each line once in a command."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        if line not in self._printed:
            self._printed.add(line)
            output.warn([line])


def report(error: BaseException, *, debug: bool = False) -> int:
    """Print the one line of an error that ended a command, and return the exit code. What is no mistake of the user is raised again."""
    match error:
        case RackspanError():
            return _failed(str(error), debug)
        case ModuleNotFoundError() if (missing := missing_extra(error)) is not None:
            return _failed(str(missing), debug)
        case _UsageError():
            return _failed(_usage(error), debug)
        case KeyboardInterrupt() | typer.Abort():
            output.note("interrupted")
            return ExitCode.INTERRUPTED
        case BrokenPipeError():
            # `rackspan audit | head`: the reader closed the pipe.
            output.discard_standard_output()
            return ExitCode.PIPE_CLOSED
        case OSError(filename=None):
            output.discard_standard_output()
            line = f"standard output: cannot be written: {error.strerror}; make room, or write elsewhere"
            return _failed(line, debug)
        case OSError():
            return _failed(f"{error.filename}: {error.strerror}; name another file, or change its permissions", debug)
    raise error


def run() -> None:
    output.open_standard_streams()
    interrupts.limit_interrupts()
    interrupts.exit_process(main())


def command_tree() -> Any:
    """The group of all commands, as click has it."""
    tree = typer.main.get_command(app)
    vars(tree)["commands"] = LazyCommands()
    return tree


def _without_settings_flag(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The file of --settings, the last one if there are several, and the other words. Errors: UsageError for no file."""
    file, others, at = None, list[str](), 0
    while at < len(words):
        word = words[at]
        if word.startswith(f"{SETTINGS}="):
            file = word.partition("=")[2]
        elif word == SETTINGS:
            at += 1
            file = words[at] if at < len(words) else ""
        else:
            others.append(word)
        at += 1
    if file == "":
        raise UsageError(f"{SETTINGS}: no file is named; give {SETTINGS} FILE")
    return file, others


def _settings(tree: Any, words: Sequence[str], file: str | None) -> dict[str, Any]:
    """What rackspan.toml says to the command of this line, as arguments of click; nothing for a line without a command.

    Errors: UsageError, and for a file that is named to a command without settings.
    """
    name = next((word for word in words if not word.startswith("-")), None)
    if name not in tree.commands:
        return {}
    from rackspan.cli.options import settings

    found = settings.load(file)
    command = tree.commands[name]
    if file is not None and not reads_settings(command):
        raise UsageError(f"{SETTINGS}: rackspan {name} reads no settings; leave it out")
    return {"obj": found, "default_map": {name: _defaults(command, found.options())}}


def _defaults(command: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """rackspan.toml's options as click's default map: the same for every command that has such an option."""
    if hasattr(command, "commands"):
        return {name: _defaults(inner, options) for name, inner in command.commands.items()}
    return {
        parameter.name: [options[key]] if parameter.multiple else options[key]
        for parameter in command.params
        for key in (flag.removeprefix("--") for flag in getattr(parameter, "opts", ()))
        if key in options
    }


_TYPE_ERRORS: Final = {
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole number",
    "Input should be greater than or equal to": "expected at least",
    "Input should be less than or equal to": "expected at most",
    "Input should be": "expected",
}
"""Words of pydantic, by which Typer converts values, and those of all other messages."""


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "rackspan"
    words = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    for theirs, ours in _TYPE_ERRORS.items():
        words = words.replace(theirs, ours)
    extra = re.fullmatch(r"Got unexpected extra argument\S* \((\S+)\)", words)
    if (
        extra
        and Path(extra[1]).exists()
        and context is not None
        and any("--snapshot" in parameter.opts for parameter in context.command.params)
    ):
        words = f"{words}; for a file, give --snapshot {extra[1]}"
    return f"{words}; see {command} --help"


def _failed(line: str, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    output.fail(line)
    return ExitCode.ERROR
