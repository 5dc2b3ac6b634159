"""rackspan snapshot, audit, outage."""

from pathlib import Path
from typing import Annotated

import typer

from rackspan import api
from rackspan.audit.json_format import audit_document, outage_document
from rackspan.cli import options, output
from rackspan.cli.pages.audit import audit_page, outage_page

SOMETHING_TO_ACT_ON = 2


@options.with_groups
def snapshot(
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE-OR-DIR", help="Where to: FILE.json, or a new folder for Parquet.")
    ],
    where: options.Where,
    racks: options.Racks,
) -> None:
    """Take one moment of a cluster, to be judged later or elsewhere."""
    taken = api.snapshot(
        racks.of(where.source()),
        out,
    )
    output.warn_of(taken)
    output.note(f"{out}: {len(taken.snapshot.brokers)} brokers, {len(taken.snapshot.partitions)} partitions")


@options.with_groups
def audit(
    where: options.Where,
    racks: options.Racks,
    judging: options.Judging,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Judge a cluster: what breaks a constraint, why, and the verb that mends it.

    Exits 0 when no constraint is broken, 2 when one is, 1 on errors.
    """
    taken = racks.of(where.source()).read()
    output.warn(taken.warnings)
    judged = api.audit(taken.snapshot, judging.policy())
    document = audit_document(taken.snapshot, judged)
    output.write(document, output_format, audit_page(document))
    if not judged.clean:
        raise typer.Exit(SOMETHING_TO_ACT_ON)


@options.with_groups
def outage(
    where: options.Where,
    racks: options.Racks,
    judging: options.Judging,
    lose: Annotated[
        str | None, typer.Option("--lose", metavar="RACK[,RACK]", help="Lose these racks together.")
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Lose each pair of racks.")] = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Say what losing each rack would do: what goes offline, what refuses writes, who has to lead more.

    Exits 0 when every loss is survived, 2 when one is not, 1 on errors.
    """
    taken = racks.of(where.source()).read()
    output.warn(taken.warnings)
    now, losses = api.outage(
        taken.snapshot,
        judging.policy(),
        lose=None if lose is None else tuple(lose.split(",")),
        pairs=pairs,
    )
    document = outage_document(taken.snapshot, now, losses)
    output.write(document, output_format, outage_page(document))
    if not all(loss.survived for loss in losses):
        raise typer.Exit(SOMETHING_TO_ACT_ON)
