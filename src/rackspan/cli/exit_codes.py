"""The exit codes of every command: one rule, and the table of what each code means for each command.

    raise exit_codes.finish(impossible=bool(plan.infeasible), to_act_on=plan.moves > 0)

docs/command-line.md and the last paragraph of each command's --help are generated from the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

import typer


class ExitCode(IntEnum):
    """What a script learns from a command."""

    DONE = 0
    """It is done, and no action is needed."""

    ERROR = 1
    """An error, a wrong command line, a refusal, or something that is not possible in full."""

    TO_ACT_ON = 2
    """Action is needed: a finding, a move to make, a dry run with changes to make."""

    INTERRUPTED = 130
    """Ctrl-C ended it before it was done, as shells report it."""

    PIPE_CLOSED = 141
    """The reader of its output closed the pipe, as shells report a program that SIGPIPE ended."""


@dataclass(frozen=True, slots=True)
class ExitMeaning:
    """What a command's exit codes mean. None: the command never ends with that code."""

    done: str
    to_act_on: str | None = None
    impossible: str | None = None
    """What ends with ExitCode.ERROR, beside errors."""

    def help(self) -> str:
        """The last paragraph of the command's --help."""
        acted = "" if self.to_act_on is None else f", 2 when {self.to_act_on}"
        impossible = "" if self.impossible is None else f" and when {self.impossible}"
        return f"Exits 0 when {self.done}{acted}, 1 on errors{impossible}."


MEANINGS: Final[Mapping[str, ExitMeaning]] = MappingProxyType(
    {
        "demo": ExitMeaning("every acknowledged record was read back", impossible="one is missing"),
        "schema": ExitMeaning("the schema is printed"),
        "snapshot": ExitMeaning("the snapshot is written"),
        "audit": ExitMeaning(
            "no constraint is broken", "one is", "something that a constraint needs could not be read"
        ),
        "clients": ExitMeaning(
            "no member reads across racks for a cause that can be removed", "one does", "a group could not be read"
        ),
        "traffic": ExitMeaning("every flow is printed", impossible="something that decides bytes could not be read"),
        "advise": ExitMeaning("there is nothing to do", "there is", "something that decides could not be read"),
        "outage": ExitMeaning(
            "every loss shown is survived as the policy requires",
            "a loss takes a partition offline or under a minimum, or may stop the controllers, or names of racks are alike",
            "something that decides it could not be read",
        ),
        "place plan": ExitMeaning("the placement is printed", impossible="no placement exists"),
        "place create": ExitMeaning("the topic is created", "it would be created with --apply", "no placement exists"),
        "place extend": ExitMeaning(
            "the partitions are added, or the topic has as many",
            "they would be added with --apply",
            "no placement exists",
        ),
        "reassign generate": ExitMeaning("nothing would move", "the proposed assignment moves or reorders replicas"),
        "reassign plan": ExitMeaning(
            "nothing has to move",
            "the plan holds moves or reorders replicas, or a partition has no leader",
            "part of the request is impossible, names of racks are alike, or something that decides could not be read",
        ),
        "reassign lint": ExitMeaning(
            "the file breaks no constraint", "it breaks one", "something that a constraint needs could not be read"
        ),
        "reassign apply": ExitMeaning(
            "every step is done",
            "something is left: steps, without --apply or once --max-moves is used up, or a throttle on a broker that is down",
            "the cluster is not what the plan assumed",
        ),
        "reassign verify": ExitMeaning(
            "every partition is done", "one is not", "which reassignments are under way could not be read"
        ),
        "reassign cancel": ExitMeaning(
            "no move of the plan is under way, with --in-flight none at all",
            "one is, or a throttle of the run is left on a broker",
            "which reassignments are under way could not be read",
        ),
        "reassign undo": ExitMeaning(
            "every replica is where it was",
            "something is left: steps, without --apply or once --max-moves is used up, or a throttle on a broker that is down",
            "the cluster is not what the plan assumed",
        ),
        "restart safe": ExitMeaning(
            "the brokers may stop",
            "they may not",
            "something that decides it could not be read, or is racks whose names are alike",
        ),
        "restart plan": ExitMeaning(
            "there is nothing to restart",
            "the plan holds batches",
            "a chosen broker can never be stopped safely, or something that decides could not be read, or is racks whose names are alike",
        ),
        "restart watch": ExitMeaning(
            "every batch is done",
            "something is left: batches, with --exec without --apply, or once a signal has ended it",
            "a broker does not come back, or the command fails",
        ),
        "acks harden": ExitMeaning(
            "every topic's records are forced onto enough racks",
            "a value has to rise (with --apply: still)",
            "no value forces a topic's racks as its replicas are placed, names of racks are alike, or something that decides could not be read; with --apply, a value would stop acks=all where it continues now, and was not set",
        ),
        "acks watch": ExitMeaning("Ctrl-C ends it", impossible="the first reading fails"),
        "streams assign": ExitMeaning("the assignment is printed"),
        "streams audit": ExitMeaning(
            "no strategy of Kafka would read less across racks", "min_traffic would", "reads across racks are unknown"
        ),
        "streams lab": ExitMeaning("every run is printed"),
        "pipeline collect": ExitMeaning(
            "every source is stored",
            impossible="a source failed (the others are stored) or a torn log has lost a part of a snapshot",
        ),
        "pipeline run": ExitMeaning(
            "every table is up to date", impossible="snapshots are damaged; the others are judged"
        ),
        "pipeline rebuild": ExitMeaning(
            "the rows are made again", impossible="snapshots are damaged; the others are judged"
        ),
        "pipeline follow": ExitMeaning(
            "Ctrl-C or SIGTERM ends it; with --available-now, every table is up to date",
            impossible="the last batch left out damaged snapshots",
        ),
        "pipeline maintain": ExitMeaning(
            "every table is compacted and vacuumed", impossible="a damaged file is left as it is"
        ),
        "pipeline check": ExitMeaning("the warehouse is whole", "it has a problem"),
        "pipeline report": ExitMeaning("the page is written", impossible="it lacks what damaged files hold"),
        "pipeline table": ExitMeaning("the rows are printed", impossible="those of damaged files are left out"),
        "pipeline export": ExitMeaning("the files are written", impossible="they lack what damaged files hold"),
        "cluster up": ExitMeaning("Ctrl-C ends it"),
        "cluster lose": ExitMeaning("the racks are lost"),
        "cluster restore": ExitMeaning("the brokers of the racks are registered"),
        "cluster kill": ExitMeaning("the brokers are killed"),
        "cluster restart": ExitMeaning("the brokers are registered"),
        "cluster pause": ExitMeaning("the brokers are paused"),
        "cluster resume": ExitMeaning("the brokers run"),
        "cluster undo": ExitMeaning("no fault is left"),
        "cluster status": ExitMeaning("the states are printed"),
        "gateway check": ExitMeaning("every check passed", "the gateway will work, with warnings", "it will not work"),
        "gateway confirm": ExitMeaning(
            "the config topic is confirmed", "it, or the removal of a gateway, would be written with --apply"
        ),
        "config show": ExitMeaning("the settings are printed"),
        "config check": ExitMeaning(
            "every cluster is read and has what the file names", "it lacks something", "a cluster cannot be read"
        ),
    }
)
"""By the words of the command line."""


def exit_code(*, impossible: bool = False, to_act_on: bool = False) -> ExitCode:
    """The one rule. What is not possible in full comes first: the rest may be done, and the request is still not met."""
    if impossible:
        return ExitCode.ERROR
    return ExitCode.TO_ACT_ON if to_act_on else ExitCode.DONE


def finish(*, impossible: bool = False, to_act_on: bool = False) -> typer.Exit:
    """The exception that ends a command with its exit code; to be raised after its output is written."""
    return typer.Exit(exit_code(impossible=impossible, to_act_on=to_act_on))
