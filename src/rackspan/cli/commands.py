"""The table of rackspan's commands, each imported at its first use: --help imports none of them.

A command is one line here and its module. Its page of --help ends with the meaning of its exit codes (exit_codes.py).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Final

import typer

from rackspan.cli.exit_codes import MEANINGS
from rackspan.cli.help import CommandGroup, HelpGroup, write_rows


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command, or a group of commands: `attribute` of `module` is its function or its Typer application."""

    section: str
    summary: str
    """The first sentence of its own page: a test compares them."""

    module: str
    attribute: str = "app"


_SEE, _MOVE, _GUARD = "See", "Place and move", "Guard writes"
_STREAM, _SPARK, _DEVELOP = "Kafka Streams", "A fleet, on Spark", "Set up and develop"

COMMANDS: Final[Mapping[str, CommandEntry]] = {
    "audit": CommandEntry(
        _SEE, "Audit a cluster: what breaks a constraint, why, and the command that repairs it.", "audit", "audit"
    ),
    "outage": CommandEntry(
        _SEE,
        "Show what losing each rack would do: what goes offline, what refuses writes, which brokers have to lead more.",
        "audit",
        "outage",
    ),
    "clients": CommandEntry(
        _SEE,
        "Show which rack the members of each group are in, what they read across racks, why, and what would help.",
        "traffic.clients",
        "clients",
    ),
    "traffic": CommandEntry(
        _SEE,
        "Show which bytes cross racks, by path, topic and group, and what they cost a month.",
        "traffic.flows",
        "traffic",
    ),
    "advise": CommandEntry(
        _SEE,
        "Rank what to do first: risks, then bytes that need not cross racks, each with its command.",
        "traffic.advise",
        "advise",
    ),
    "snapshot": CommandEntry(
        _SEE, "Save a snapshot of a cluster, to be audited later or elsewhere.", "audit", "snapshot"
    ),
    "place": CommandEntry(_MOVE, "Place new topics and partitions: rack-safe and balanced, on any Kafka.", "place"),
    "reassign": CommandEntry(_MOVE, "Move replicas: the least movement that makes a cluster rack-safe.", "reassign"),
    "restart": CommandEntry(_MOVE, "Restart brokers: which may stop, and all of them in few safe batches.", "restart"),
    "acks": CommandEntry(_GUARD, "Make acks=all guarantee racks on a Kafka that counts replicas.", "acks"),
    "gateway": CommandEntry(
        _GUARD,
        "Run a gateway that holds acknowledgements to min.insync.racks, until SIGTERM or Ctrl-C. SIGHUP reads the config again.",
        "gateway",
    ),
    "streams": CommandEntry(_STREAM, "Rack-aware task assignment for Kafka Streams (KIP-925).", "streams"),
    "pipeline": CommandEntry(_SPARK, "A series of snapshots, audited on Spark: tables and a report.", "pipeline"),
    "cluster": CommandEntry(_DEVELOP, "A local cluster for development and tests.", "cluster"),
    "config": CommandEntry(_DEVELOP, "The settings of rackspan.toml and where each value comes from.", "config"),
    "schema": CommandEntry(
        _DEVELOP, "Print the JSON Schema of what a command prints with -o json.", "schemas", "schema_command"
    ),
    "demo": CommandEntry(
        _DEVELOP,
        "Lose racks, and predict it: six brokers in three racks, traffic by librdkafka, Spark, a report.",
        "demo",
        "demo",
    ),
}
"""By name, in the order of --help."""


class LazyCommands(Mapping[str, Any]):
    """The commands as click has them, each imported and made when it is first looked up in the process."""

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __getitem__(self, name: str) -> Any:
        return _load(name)


class RootGroup(HelpGroup):
    """The group of all commands. Its --help has a section for each purpose."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as in click
        """Their names, without an import: completion lists them at each key."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as in click
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(section):
                write_rows(formatter, [(name, it.summary) for name, it in COMMANDS.items() if it.section == section])


def leaf_commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below a group, by its words: `reassign plan`."""
    for name, command in group.commands.items():
        words = f"{before} {name}".strip()
        yield from leaf_commands(command, words) if hasattr(command, "commands") else [(words, command)]


def reads_settings(command: Any) -> bool:
    """Whether the command, or one of a group, has an option that rackspan.toml has a key for."""
    from rackspan.cli.options.settings_table import IN_FILE

    leaves = [leaf for _, leaf in leaf_commands(command)] if hasattr(command, "commands") else [command]
    keys = {f"--{setting.key}" for setting in IN_FILE}
    return any(not keys.isdisjoint(getattr(parameter, "opts", ())) for leaf in leaves for parameter in leaf.params)


@cache
def _load(name: str) -> Any:
    entry = COMMANDS[name]
    found = getattr(import_module(f"rackspan.cli.{entry.module}"), entry.attribute)
    if not isinstance(found, typer.Typer):
        single = CommandGroup()
        single.command(name)(found)
        found = single
    command = typer.main.get_command(found)
    command.name = name
    leaves = leaf_commands(command, name) if hasattr(command, "commands") else [(name, command)]
    for words, leaf in leaves:
        leaf.epilog = MEANINGS[words].help()
    return command
