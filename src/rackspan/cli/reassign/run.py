"""rackspan reassign apply, verify, cancel, undo."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rackspan import api
from rackspan.cli import options, output
from rackspan.cli.input_files import read_file
from rackspan.cli.pages.run import (
    outcome_document,
    outcome_page,
    preview_document,
    preview_page,
    verdict_document,
    verdict_page,
)
from rackspan.cli.reassign.plan import REASSIGNMENT, SOMETHING_TO_ACT_ON
from rackspan.cli.reassign.progress import follow
from rackspan.errors import RackspanError, UsageError
from rackspan.plan import RunLimits, read_plan
from rackspan.plan.execution.effects import Paused
from rackspan.plan.verification import all_done
from rackspan.reassign import Direction, ReassignmentPlan

if TYPE_CHECKING:
    from rackspan.apply import RunUpdate

HOW_TO_GO_ON: Final = (
    "what is being moved goes on moving, throttled as it is; run the same command again to go on, "
    "or rackspan reassign cancel to take it back"
)

_RUN = "Carrying out"

PlanFile = Annotated[
    Path,
    typer.Option(
        "--plan",
        "--reassignment-json-file",
        metavar="FILE",
        help="What rackspan reassign plan wrote, or any reassignment file.",
    ),
]
JournalPath = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="Where the run is written down, to be gone on with; the plan's name and .journal where not given.",
        rich_help_panel=_RUN,
    ),
]
Throttle = Annotated[
    int | None,
    typer.Option(
        "--throttle",
        metavar="BYTES",
        help="The most that a broker sends, and receives, for the moves: bytes a second.",
        min=1,
        rich_help_panel=_RUN,
    ),
]
MaxMoves = Annotated[
    int | None,
    typer.Option(
        "--max-moves",
        metavar="N",
        help="Replicas that this run may copy; the next one goes on.",
        min=1,
        rich_help_panel=_RUN,
    ),
]
ClusterId = Annotated[
    str | None,
    typer.Option(
        "--cluster-id",
        metavar="ID",
        help="The cluster that is meant, where the plan does not say it.",
        rich_help_panel=_RUN,
    ),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience",
        metavar="SECONDS",
        help="How long to wait for a broker that went away meanwhile.",
        min=0,
        rich_help_panel=_RUN,
    ),
]
DEFAULT_PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class _Run:
    """The flags that say what."""

    plan: ReassignmentPlan
    direction: Direction
    journal: Path
    limits: RunLimits
    patience_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """The flags that say how."""

    throttle: Throttle = None
    max_moves: MaxMoves = None
    journal: JournalPath = None
    cluster_id: ClusterId = None
    patience: Patience = DEFAULT_PATIENCE_SECONDS

    def run(self, plan: Path, direction: Direction) -> _Run:
        limits = RunLimits(self.throttle, self.max_moves)
        return _Run(_plan(plan, self.cluster_id), direction, self.journal or _beside(plan), limits, self.patience)


@options.with_groups
def apply(
    plan: PlanFile,
    where: options.Where,
    running: _Running,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Carry a plan out, step by step: throttled, written down, and gone on with by the same command however it ended.

    Exits 0 when all is done, 2 when --max-moves is used up, 1 on errors and where the cluster is not what the plan assumed.
    """
    _carry_out(where, running.run(plan, Direction.TARGETS), apply, output_format)


@options.with_groups
def undo(
    plan: PlanFile,
    where: options.Where,
    running: _Running,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Bring the placement back that a plan found: what moves is cancelled, what has moved moves back, last step first."""
    _carry_out(where, running.run(plan, Direction.ORIGINALS), apply, output_format)


@options.with_groups
def cancel(
    plan: PlanFile,
    where: options.Where,
    journal: JournalPath = None,
    patience: Patience = DEFAULT_PATIENCE_SECONDS,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Take back what is in flight, and give throttles back. What is done stays; reassign apply goes on, undo takes it back."""
    written, path = _plan(plan, None), journal or _beside(plan)
    if not path.exists():
        raise UsageError(f"{path}: no such journal; name the --journal of the run that is to be cancelled")
    if not apply:
        taken = where.source().read()
        output.warn_of(taken)
        state = api.check_reassignment(taken.snapshot, written, path)
        found = api.verify_reassignment(taken.snapshot, state.plan)
        output.write(verdict_document(found), output_format, verdict_page(found))
        return
    last = follow(
        _telling(api.cancel_reassignment(where.cluster_to_change(), written, path, patience_seconds=patience))
    )
    output.write(outcome_document(last, path, "cancelled"), output_format, outcome_page(last, path, "cancelled"))


@options.with_groups
def verify(
    plan: PlanFile,
    where: options.Where,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Say of each partition of any reassignment file whether it is done. Changes nothing, throttles included.

    Exits 0 when all are, 2 when one is not, 1 on errors.
    """
    written = read_file(plan, read_plan, REASSIGNMENT)
    taken = where.source().read()
    output.warn_of(taken)
    found = api.verify_reassignment(taken.snapshot, written)
    output.write(verdict_document(found), output_format, verdict_page(found))
    raise typer.Exit(0 if all_done(found) else SOMETHING_TO_ACT_ON)


def _carry_out(where: options.Where, run: _Run, apply: bool, output_format: options.Output) -> None:
    if not apply:
        _show(where, run, output_format)
        return
    cluster = where.cluster_to_change()
    happened = api.carry_out(
        cluster,
        run.plan,
        run.journal,
        direction=run.direction,
        limits=run.limits,
        patience_seconds=run.patience_seconds,
    )
    last = follow(_telling(happened))
    state = "paused" if isinstance(last.effect, Paused) else "done" if run.direction is Direction.TARGETS else "undone"
    output.write(outcome_document(last, run.journal, state), output_format, outcome_page(last, run.journal, state))
    raise typer.Exit(SOMETHING_TO_ACT_ON if state == "paused" else 0)


def _show(where: options.Where, run: _Run, output_format: options.Output) -> None:
    taken = where.source().read()
    output.warn_of(taken)
    begun = api.check_reassignment(taken.snapshot, run.plan, run.journal, run.direction)
    document = preview_document(begun, run.limits, run.journal)
    output.write(document, output_format, preview_page(document))


def _telling(happened: "Iterator[RunUpdate]") -> "Iterator[RunUpdate]":
    """Once something was begun, whoever ends it early learns what becomes of it."""
    begun = False
    try:
        for one in happened:
            begun = True
            yield one
    except (RackspanError, KeyboardInterrupt):
        if begun:
            output.note(HOW_TO_GO_ON)
        raise


def _plan(file: Path, cluster_id: str | None) -> ReassignmentPlan:
    plan = read_file(file, read_plan, REASSIGNMENT)
    return plan if cluster_id is None else plan.for_cluster(cluster_id)


def _beside(plan: Path) -> Path:
    return plan.with_name(f"{plan.name}.journal")
