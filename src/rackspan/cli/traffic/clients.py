"""rackspan clients."""

import re
from typing import Annotated, Final

import typer

from rackspan import api
from rackspan.cli import exit_codes, options, output
from rackspan.cli.traffic.clients_page import MEMBER_COLUMNS, clients_page, member_rows
from rackspan.clients.json_format import clients_document
from rackspan.errors import UsageError

COUNTERS_SECONDS: Final = 15.0
"""Gateways count bytes within five seconds of passing."""


@options.with_option_groups
def clients(
    running: options.ClusterOptions,
    rack_options: options.RackLocatorOptions,
    group: Annotated[
        str | None, typer.Option("--group", metavar="REGEX", help="Only groups whose whole id matches.")
    ] = None,
    network: options.Networks = None,
    counters: options.Counters = None,
    counters_seconds: Annotated[
        float | None,
        typer.Option("--counters-seconds", min=1, help="How long the counters are watched; 15 by default."),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Show which rack the members of each group are in, what they read across racks, why, and what would help.

    Reads classic, consumer, share and streams groups. It shows which replica Kafka's rules direct a member to; it does not
    see the bytes, but for those that the gateways of --counters count.
    """
    if counters_seconds is not None and not counters:
        raise UsageError("--counters-seconds: nothing is watched without --counters; give a gateway's metrics")
    chosen, networks = _pattern(group), options.networks(network)
    cluster = running.cluster()
    read = rack_options.of(running.source()).read()
    output.warn_of(read)
    counted = api.measure_reads(counters, counters_seconds or COUNTERS_SECONDS) if counters else None
    # Members of other groups may have the client ids by which a gateway counts.
    found = api.read_clients(cluster, None if counters else chosen)
    matching = [each for each in found.groups if chosen is None or chosen.fullmatch(each.group_id)]
    if group is not None and not matching and not found.unread:
        raise UsageError(
            f"--group {group!r}: matches no group that this user may see; see kafka-groups --list, and Describe on Group {group}"
        )
    reads, measured, findings = api.clients(read.snapshot, found, networks, counted, chosen)
    document = clients_document(read.snapshot, reads, findings, found.unread, running.title, measured)
    output.write(document, output_format, clients_page(document), output.Rows(MEMBER_COLUMNS, member_rows(document)))
    raise exit_codes.finish(impossible=bool(found.unread or read.snapshot.unread), to_act_on=bool(findings))


def _pattern(group: str | None) -> re.Pattern[str] | None:
    try:
        return None if group is None else re.compile(group)
    except re.error as error:
        raise UsageError(f"--group {group!r}: not a regular expression: {error}; write one such as orders-.*") from None
