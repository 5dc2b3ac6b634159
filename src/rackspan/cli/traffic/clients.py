"""rackspan clients, and the page that it prints: members by group, then what to do."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from rackspan import api
from rackspan.cli import exit_codes, options, output
from rackspan.cli.output import cluster_line, page, table, unread_lines, whole
from rackspan.cli.traffic.flows import watching
from rackspan.clients.json_format import ClientFindingDocument, ClientsDocument, clients_document
from rackspan.errors import UsageError
from rackspan.text import count_noun

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
        typer.Option(
            "--counters-seconds",
            min=1,
            max=options.SECONDS_MAX,
            help="How long the counters are watched; 15 by default.",
        ),
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
    counted = (
        api.measure_reads(counters, counters_seconds or COUNTERS_SECONDS, sleep=watching("--counters-seconds"))
        if counters
        else None
    )
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


UNKNOWN: Final = "?"

MEMBERS_SHOWN: Final = 40
"""Rows on one screen's worth of scrolling; -o json has every member."""

MEMBER_COLUMNS: Final = (
    "group",
    "kind",
    "assignor",
    "member",
    "client_id",
    "host",
    "declared_rack",
    "located_rack",
    "partitions",
    "with_replica_in_rack",
    "cross_rack",
    "cross_rack_at_best",
    "measured_bytes",
    "measured_cross_rack_bytes",
)


def member_rows(document: ClientsDocument) -> Iterator[dict[str, Any]]:
    """A row a member, with its group's columns."""
    for group in document["groups"]:
        for member in group["members"]:
            yield {name: group[name] for name in ("group", "kind", "assignor")} | member


def clients_page(document: ClientsDocument) -> RenderableType:
    summary = document["summary"]
    rows = list(member_rows(document))
    left_out = len(rows) - MEMBERS_SHOWN
    return page(
        cluster_line(
            summary["cluster_name"],
            summary["cluster_id"],
            f": {count_noun(summary['groups'], 'group', ',')} with {count_noun(summary['members'], 'member', ',')}",
        ),
        *unread_lines(summary["unread"]),
        Text(),
        table(
            ("group", "kind", "client", "rack", "partitions", "in its rack", "across racks", "at best", "measured"),
            [_member_row(row) for row in islice(rows, MEMBERS_SHOWN)],
        ),
        *([Text(f"and {count_noun(left_out, 'more member')}; -o json has them all")] if left_out > 0 else []),
        Text(),
        *_findings(document["findings"]),
        Text(_verdict(document), style="bold"),
    )


def _member_row(row: dict[str, Any]) -> tuple[object, ...]:
    counts = (row["with_replica_in_rack"], row["cross_rack"], row["cross_rack_at_best"])
    return (
        row["group"],
        row["kind"],
        row["client_id"],
        _rack(row),
        row["partitions"],
        *(UNKNOWN if count is None else count for count in counts),
        _measured(row),
    )


def _measured(row: dict[str, Any]) -> str:
    """The share of the bytes measured that came from other racks."""
    total, across = row["measured_bytes"], row["measured_cross_rack_bytes"]
    return "not verified" if not total or across is None else f"{across / total:.1%} across"


def _rack(row: dict[str, Any]) -> str:
    declared, located = row["declared_rack"], row["located_rack"]
    if located in (None, declared):
        return declared or "none"
    return f"{located} (declares {declared or 'none'})"


def _findings(findings: list[ClientFindingDocument]) -> Iterator[RenderableType]:
    for finding in findings:
        yield Text.assemble((finding["cause"], "yellow"), f"  {finding['group']}: {finding['reason']}")
        yield (
            whole(f"  {finding['remedy']}")
            if finding["remedy"].startswith("rackspan ")
            else Text(f"  {finding['remedy']}")
        )
        yield Text()


def _verdict(document: ClientsDocument) -> str:
    groups, findings = document["groups"], document["findings"]
    if not groups:
        return "no group has members"
    known = [group["cross_rack"] for group in groups if group["cross_rack"] is not None]
    to_do = f"{count_noun(len(findings), 'thing')} to do" if findings else "nothing to do"
    if not known:
        return f"which partitions are read across racks is not known; {to_do}"
    of = f" by {len(known)} of {count_noun(len(groups), 'group')}" if len(known) < len(groups) else ""
    members = [member for group in groups for member in group["members"]]
    verified = sum(member["measured_cross_rack_bytes"] is not None for member in members)
    how = (
        f"verified by counters for {verified} of {count_noun(len(members), 'member', ',')}"
        if verified
        else "not verified"
    )
    return f"{count_noun(sum(known), 'partition', ',')} read across racks{of} by Kafka's rules, {how}; {to_do}"
