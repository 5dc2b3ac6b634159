"""The command line: parses options, calls api.py and prints the result. It decides nothing.

Data goes to standard output, everything else to standard error. exit_codes.py has the rule of the exit codes.
"""

import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import typer

import rackspan
from rackspan.cli import (
    acks,
    acks_watch,
    audit,
    cluster,
    config,
    demo,
    gateway,
    output,
    pipeline,
    place,
    schemas,
    streams,
)
from rackspan.cli.exit_codes import MEANINGS, ExitCode
from rackspan.cli.help import CommandGroup
from rackspan.cli.options import settings
from rackspan.cli.reassign import cancel as reassign_cancel
from rackspan.cli.reassign import plan as reassign_plan
from rackspan.cli.reassign import run as reassign_run
from rackspan.errors import RackspanError

# Typer carries its own copy of click since 0.16; this is the error type of whichever it uses.
_UsageError: Final[type[Exception]] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

app = CommandGroup(
    name="rackspan",
    help="Rack awareness for Apache Kafka: shows what the loss of a rack would cost, and repairs it.",
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rackspan {rackspan.__version__}")
        raise typer.Exit


@app.callback()
def _every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="RACKSPAN_DEBUG", help="Show the trace of an error.")
    ] = False,
) -> None:
    pass


app.command()(audit.snapshot)
app.command()(audit.audit)
app.command()(audit.outage)
app.add_typer(place.app)
reassign_plan.app.command("apply")(reassign_run.apply)
reassign_plan.app.command("verify")(reassign_run.verify)
reassign_plan.app.command("cancel")(reassign_cancel.cancel)
reassign_plan.app.command("undo")(reassign_run.undo)
app.add_typer(reassign_plan.app, name="reassign")
acks.app.command("watch")(acks_watch.watch)
app.add_typer(acks.app, name="acks")
app.add_typer(streams.app)
app.add_typer(pipeline.app)
app.add_typer(cluster.app, name="cluster")
app.add_typer(config.app)
app.add_typer(gateway.app, name="gateway")
app.command()(demo.demo)
app.command("schema")(schemas.schema_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. A mistake of the user never prints a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words or bool(os.environ.get("RACKSPAN_DEBUG"))
    # --debug means the same before and after the command.
    words = (["--debug"] if debug else []) + [word for word in words if word != "--debug"]
    try:
        tree, found = command_tree(), settings.load()
        result = tree.main(
            words, prog_name="rackspan", standalone_mode=False, default_map=_defaults(tree, found.options()), obj=found
        )
        # Here, so that a full disk is reported: Python ignores the error when it flushes at exit.
        sys.stdout.flush()
    except SystemExit as ended:
        # Typer and Rich end the process themselves where the reader has closed the pipe.
        if isinstance(ended.__context__, BrokenPipeError):
            return report(ended.__context__)
        raise
    except (Exception, KeyboardInterrupt) as error:
        return report(error, debug=debug)
    return result if isinstance(result, int) else ExitCode.DONE


def report(error: BaseException, *, debug: bool = False) -> int:
    """Print the one line of an error that ended a command, and return the exit code. What is no mistake of the user is raised again."""
    match error:
        case RackspanError():
            return _failed(str(error), debug)
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
    sys.exit(main())


def command_tree() -> Any:
    """The group of all commands, as click has it. The help of each ends with the meaning of its exit codes."""
    tree = typer.main.get_command(app)
    for words, command in leaf_commands(tree):
        command.epilog = MEANINGS[words].help()
    return tree


def leaf_commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below a group, by its words: `reassign plan`."""
    for name, command in group.commands.items():
        words = f"{before} {name}".strip()
        yield from leaf_commands(command, words) if hasattr(command, "commands") else [(words, command)]


def _defaults(group: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """rackspan.toml's options as click's default map: the same for every command that has such an option."""
    return {
        name: _defaults(command, options)
        if hasattr(command, "commands")
        else {
            parameter.name: [options[key]] if parameter.multiple else options[key]
            for parameter in command.params
            for key in (flag.removeprefix("--") for flag in getattr(parameter, "opts", ()))
            if key in options
        }
        for name, command in group.commands.items()
    }


def _usage(error: Any) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "rackspan"
    words = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    return f"{words}; see {command} --help"


def _failed(line: str, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    output.fail(line)
    return ExitCode.ERROR
