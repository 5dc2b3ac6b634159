"""The remedies of an audit as commands, by the command line's own parser."""

import re
from collections.abc import Mapping
from typing import Any, cast

import click

from rackspan.cli import command_tree
from rackspan.model import ClusterSnapshot, RackId
from rackspan.reassign import ReassignmentRequest

_APP = cast("click.Command", command_tree())


def alternatives(remedy: str) -> list[str]:
    """`bring back broker 3, or rackspan reassign plan --drain 3` has two."""
    words = "rackspan |kafka-|add brokers|lower |accept |read all |require |repair |uncordon |wait |where they are |\\(ask|ask "
    return re.split(rf",? or (?={words})|; or |; if it is no broker any more: |; (?=only if )", remedy)


def requested(params: Mapping[str, Any]) -> ReassignmentRequest:
    """What `rackspan reassign plan` would plan with these options."""
    return ReassignmentRequest(
        drain=frozenset(map(int, params["drain"].split(","))) if params["drain"] else frozenset(),
        topics=params["topic"],
        replication_factor=params["replication_factor"],
        balance=params["balance"],
        leaders=params["leaders"],
    )


def parsed(arguments: list[str]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """A command line as the real command line parses it: the verb, and its options. Errors: click.UsageError."""
    command: click.Command = _APP
    path: list[str] = []
    rest = list(arguments)
    while isinstance(command, click.Group) or hasattr(command, "commands"):
        name = rest.pop(0)
        path.append(name)
        command = cast("Any", command).commands[name]
    return tuple(path), dict(command.make_context(path[-1], rest).params)


def snapshot_racks(snapshot: ClusterSnapshot) -> list[RackId]:
    """The racks of brokers, by name; one of its own where no broker has any."""
    return sorted({one.rack for one in snapshot.brokers if one.rack is not None}) or [RackId("r1")]
