"""rackspan snapshot, audit, outage."""

from pathlib import Path
from typing import Annotated

import typer

from rackspan import api
from rackspan.audit.json_format import audit_document, outage_document
from rackspan.cli import exit_codes, options, output
from rackspan.cli.pages.audit import audit_page, outage_page


@options.with_option_groups
def snapshot(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE-OR-DIR", help="The file to write: FILE.json, or a new folder for Parquet."),
    ],
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
) -> None:
    """Save a snapshot of a cluster, to be audited later or elsewhere."""
    read = api.snapshot(
        rack_options.of(source_options.source()),
        out,
    )
    output.warn_of(read)
    output.note(f"{out}: {len(read.snapshot.brokers)} brokers, {len(read.snapshot.partitions)} partitions")


@options.with_option_groups
def audit(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    exclusion_options: options.ExclusionOptions,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Audit a cluster: what breaks a constraint, why, and the command that repairs it."""
    read = rack_options.of(source_options.source()).read()
    output.warn((*read.warnings, *exclusion_options.warnings(read.snapshot)))
    judged = api.audit(read.snapshot, policy_options.policy(exclusion_options.excluded(read.snapshot)))
    document = audit_document(read.snapshot, judged)
    output.write(document, output_format, audit_page(document))
    raise exit_codes.finish(to_act_on=not judged.clean)


@options.with_option_groups
def outage(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    lose: Annotated[
        str | None, typer.Option("--lose", metavar="RACK[,RACK]", help="Lose these racks together.")
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Lose each pair of racks.")] = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Show what losing each rack would do: what goes offline, what refuses writes, which brokers have to lead more."""
    read = rack_options.of(source_options.source()).read()
    output.warn(read.warnings)
    now, losses = api.outage(
        read.snapshot,
        policy_options.policy(),
        lose=None if lose is None else tuple(lose.split(",")),
        pairs=pairs,
    )
    document = outage_document(read.snapshot, now, losses)
    output.write(document, output_format, outage_page(document))
    raise exit_codes.finish(to_act_on=not all(loss.survived for loss in losses))
