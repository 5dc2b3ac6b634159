"""rackspan demo."""

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rackspan.cli import exit_codes, output
from rackspan.text import count_noun

if TYPE_CHECKING:
    from rackspan.demo.two_racks_lost import TwoRacksLost


def demo(
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="A new folder for the warehouse and the report.")
    ] = Path("demo"),
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Real Apache Kafka instead of the embedded cluster; fetches 43 MB once.")
    ] = False,
) -> None:
    """Lose racks, and predict it: six brokers in three racks, traffic by librdkafka, Spark, a report.

    Spark needs Java 17 or newer.
    """
    from rackspan.demo import run_demo

    out = _fresh(named := out)
    if out != named:
        output.note(f"{named} exists already: everything is written to {out}")
    started = time.monotonic()
    outcome = run_demo(out, lambda line: output.note(f"{time.monotonic() - started:5.1f} s  {line}"), kafka=kafka)
    loss = outcome.predicted
    racks = " and ".join(loss.racks)
    verdict = "survives" if loss.survived else "does not survive"
    offline, refusing = loss.total("offline"), loss.total("under_min_isr")
    typer.echo(
        f"The demo cluster {verdict} losing rack {racks}: {count_noun(offline, 'partition')} offline, {refusing} refusing acks=all."
    )
    if outcome.two_racks is not None:
        typer.echo(_two_racks(outcome.two_racks))
    typer.echo(
        f"{outcome.acknowledged:,} records acknowledged, "
        + ("none missing afterwards." if not outcome.missing else f"missing afterwards: {'; '.join(outcome.missing)}.")
    )
    typer.echo(f"Report: {outcome.report}")
    # In a checkout the command is in .venv/bin, which is not on the PATH.
    rackspan = "rackspan" if shutil.which("rackspan") else sys.argv[0]
    typer.echo(f"Next:   {rackspan} pipeline table findings --warehouse {outcome.warehouse} --limit 5")
    raise exit_codes.finish(impossible=bool(outcome.missing))


def _two_racks(lost: "TwoRacksLost") -> str:
    return (
        f"With two racks lost, min.insync.racks=2 refused {lost.refused:,} records that one rack alone would have held;"
        f" lowered to 1, {lost.acknowledged_lowered:,} were acknowledged."
    )


def _fresh(out: Path) -> Path:
    """`out`, or the first of out-2, out-3 … that is not there yet: an earlier demo is not overwritten."""
    candidate, number = out, 1
    while candidate.exists():
        number += 1
        candidate = out.with_name(f"{out.name}-{number}")
    return candidate
