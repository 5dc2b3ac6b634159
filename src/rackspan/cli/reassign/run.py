"""rackspan reassign apply, undo, verify."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rackspan import api
from rackspan.audit import RackPolicy
from rackspan.cli import exit_codes, options, output
from rackspan.cli.options.quantities import throttle_rate
from rackspan.cli.pages.difference import DetailDocument, details_document
from rackspan.cli.pages.run import RunEnd, brokers_owed, preview_document, preview_page
from rackspan.cli.pages.throttles import rate_note
from rackspan.cli.reassign.execution import (
    DEFAULT_PATIENCE_SECONDS,
    EXECUTION,
    STILL_SET,
    AllowRefusedWrites,
    JournalPath,
    Patience,
    PlanFile,
    foreign_throttles,
    journal_beside,
    judge_cancels,
    noting_how_to_resume,
    plan_in,
    write_outcome,
    write_verdict,
)
from rackspan.cli.reassign.plan import AllowFewerRacks, Details
from rackspan.cli.reassign.progress import follow
from rackspan.errors import ReassignmentStopped, UsageError
from rackspan.model import ClusterSnapshot, UnrackedPolicy
from rackspan.plan import (
    Paused,
    RunLimits,
    RunState,
    all_done,
    refuse_unnamed_cluster,
)
from rackspan.plan.difference import PlanDifference, columns_toward, full_disk_lines, known_sizes, left_to_change
from rackspan.plan.execution.observed import ReassignmentStatus
from rackspan.plan.execution.progress import copy_sizes
from rackspan.reassign import Direction, ReassignmentColumns, ReassignmentPlan
from rackspan.text import count_noun

if TYPE_CHECKING:
    from rackspan.apply import RunUpdate

Throttle = Annotated[
    int | None,
    typer.Option(
        "--throttle",
        metavar="BYTES[/s]|none",
        parser=throttle_rate,
        help="The most bytes per second that a broker sends, and receives, for the moves: 50MB/s, 50MiB/s or a number. "
        "A run that is resumed keeps its throttle; none ends it.",
        rich_help_panel=EXECUTION,
    ),
]
MaxMoves = Annotated[
    int | None,
    typer.Option(
        "--max-moves",
        metavar="N",
        help="The most replicas that this run copies; the next run resumes.",
        min=1,
        rich_help_panel=EXECUTION,
    ),
]
ClusterId = Annotated[
    str | None,
    typer.Option(
        "--cluster-id",
        metavar="ID",
        help="The id of the cluster, for a plan that does not name it.",
        rich_help_panel=EXECUTION,
    ),
]


@dataclass(frozen=True, slots=True)
class _RunArguments:
    """What to execute."""

    plan: ReassignmentPlan
    direction: Direction
    journal: Path
    limits: RunLimits
    patience_seconds: float
    allow_refused_writes: bool

    @property
    def is_empty(self) -> bool:
        """Whether the plan has no partitions; its run then has no steps and no journal."""
        return not len(self.plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunOptions:
    """How to execute it."""

    throttle: Throttle = None
    max_moves: MaxMoves = None
    journal: JournalPath = None
    cluster_id: ClusterId = None
    patience: Patience = DEFAULT_PATIENCE_SECONDS
    allow_refused_writes: AllowRefusedWrites = False

    def run(self, plan: Path, direction: Direction) -> _RunArguments:
        limits = RunLimits(self.throttle, self.max_moves)
        read = plan_in(plan, self.cluster_id, forward=direction is Direction.TARGETS)
        journal = self.journal or journal_beside(plan)
        return _RunArguments(read, direction, journal, limits, self.patience, self.allow_refused_writes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReviewOptions:
    """How the plan is judged and shown before it is executed."""

    unracked: options.Unracked = UnrackedPolicy.SHARED
    details: Details = False

    def checked(self, *, apply: bool) -> "_ReviewOptions":
        """Errors: UsageError for --details where nothing is shown."""
        if apply and self.details:
            raise UsageError("--details: a dry run shows them; leave out --apply, or --details")
        return self

    @property
    def policy(self) -> RackPolicy:
        return RackPolicy(unracked=self.unracked)


@options.with_option_groups
def apply(
    plan: PlanFile,
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    review_options: _ReviewOptions,
    run_options: _RunOptions,
    allow_fewer_racks: AllowFewerRacks = False,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Execute a plan step by step, throttled and with a journal; the same command resumes it after any interruption.

    Without --apply it shows what would change. A plan that makes a partition less safe is refused.
    """
    run = run_options.run(plan, Direction.TARGETS)
    reviewed = _reviewed(source_options, rack_options, review_options, run, apply=apply)
    if run.is_empty or not apply:
        _show(reviewed, run, output_format)
    loss = reviewed.difference.safety_loss
    if loss is not None and not allow_fewer_racks:
        raise UsageError(
            f"the plan leaves {count_noun(loss.partitions, 'partition')} {loss.reason}; make another with "
            "rackspan reassign plan, or accept it with --allow-fewer-racks"
        )
    if run.is_empty or not apply:
        raise exit_codes.finish(to_act_on=bool(reviewed.state.remaining))
    _carry_out(source_options, run, reviewed, output_format)


@options.with_option_groups
def undo(
    plan: PlanFile,
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    review_options: _ReviewOptions,
    run_options: _RunOptions,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Restore the replicas that a plan replaced: moves under way are cancelled, completed ones move back, last step first."""
    run = run_options.run(plan, Direction.ORIGINALS)
    reviewed = _reviewed(source_options, rack_options, review_options, run, apply=apply)
    if run.is_empty or not apply:
        _show(reviewed, run, output_format)
        raise exit_codes.finish(to_act_on=bool(reviewed.state.remaining))
    _carry_out(source_options, run, reviewed, output_format)


@options.with_option_groups
def verify(
    plan: PlanFile,
    source_options: options.SourceOptions,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Show for each partition of a reassignment file whether it is done. Changes nothing, throttles included."""
    written = plan_in(plan, None, forward=False)
    read = source_options.source().read()
    found = api.verify_reassignment(read.snapshot, written)
    output.warn_of(read)
    write_verdict(found, output_format)
    raise exit_codes.finish(to_act_on=not all_done(found))


@dataclass(frozen=True, slots=True)
class _Reviewed:
    """Where a run would start or resume, and what it changes then."""

    snapshot: ClusterSnapshot
    state: RunState
    columns: ReassignmentColumns
    difference: PlanDifference
    details: list[DetailDocument] | None


def _reviewed(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    review_options: _ReviewOptions,
    run: _RunArguments,
    *,
    apply: bool,
) -> _Reviewed:
    """The same for a dry run and for what follows --apply. Errors: as of api.check_reassignment, UsageError."""
    review = review_options.checked(apply=apply)
    if apply:
        source_options.cluster_to_change()
        if not run.is_empty and not run.journal.exists():  # A journal names the cluster of its run.
            refuse_unnamed_cluster(run.plan)
    read = rack_options.of(source_options.source()).read()
    if apply:
        output.warn(_about_topics_of(run.plan, [*read.warnings, *read.snapshot.partial]))
    else:
        output.warn_of(read)
    try:
        state = api.check_reassignment(read.snapshot, run.plan, run.journal, run.direction)
    except ReassignmentStopped:
        if apply:
            # A topic that the user may not describe is missing in a snapshot; this names the missing right.
            api.observe_reassignment(source_options.cluster_to_change(), run.plan)
        raise
    judge_cancels(
        read.snapshot,
        state,
        cancelling=(ReassignmentStatus.REVERTING,),
        allow_refused_writes=run.allow_refused_writes,
        apply=apply,
    )
    remaining = [(step.number, partition) for step in state.remaining for partition in step.partitions]
    columns, positions = left_to_change(read.snapshot, [partition for _, partition in remaining], run.direction)
    details = None
    if review.details:
        numbers = [remaining[at][0] for at in positions.tolist()]
        details = details_document(api.partition_differences(read.snapshot, columns, review.policy, numbers))
    difference = api.plan_difference(read.snapshot, columns, review.policy)
    output.warn(full_disk_lines(read.snapshot, difference))
    return _Reviewed(read.snapshot, state, columns, difference, details)


def _about_topics_of(plan: ReassignmentPlan, lines: Sequence[str]) -> Iterator[str]:
    """The lines that name a topic of the plan: a run needs no rights on others."""
    topics = {partition.topic for partition in plan.partitions()}
    return (line for line in lines if topics & set(re.split(r"[^\w.-]+", line)))


def _carry_out(
    source_options: options.SourceOptions, run: _RunArguments, reviewed: _Reviewed, output_format: options.Output
) -> None:
    cluster, resumed = source_options.cluster_to_change(), run.journal.exists()

    def begin() -> None:
        if resumed and (note := rate_note(reviewed.state, run.limits)):
            output.note(note)
        if reviewed.state.remaining:
            replaced = run.limits.rate(reviewed.state)
            throttles = "this run replaces it and restores it at the end" if replaced else "left as it is"
            foreign_throttles(cluster, reviewed.state, throttles)

    updates = api.carry_out(
        cluster,
        run.plan,
        run.journal,
        direction=run.direction,
        limits=run.limits,
        patience_seconds=run.patience_seconds,
    )
    # Every step, since what a resumed run has copied already counts as done.
    every = columns_toward(list(reviewed.state.plan.partitions()), run.direction)
    sizes = copy_sizes(reviewed.state.plan, run.direction, known_sizes(reviewed.snapshot, every))
    last = follow(noting_how_to_resume(_beginning(updates, begin)), sizes)
    state: RunEnd = (
        "paused" if isinstance(last.effect, Paused) else "done" if run.direction is Direction.TARGETS else "undone"
    )
    write_outcome(last, run.journal, state, foreign_throttles(cluster, last.state, STILL_SET), output_format)
    raise exit_codes.finish(to_act_on=state == "paused" or bool(brokers_owed(last)))


def _beginning(updates: "Iterator[RunUpdate]", begin: Callable[[], None]) -> "Iterator[RunUpdate]":
    """The same updates; `begin` is called once the run is not refused, as beside another one, and has changed nothing yet."""
    begun = False
    for update in updates:
        if not begun:
            begin()
            begun = True
        yield update


def _show(reviewed: _Reviewed, run: _RunArguments, output_format: options.Output) -> None:
    document = preview_document(reviewed.state, run.limits, run.journal, reviewed.difference)
    if reviewed.details is not None:
        document["details"] = reviewed.details
    rows = output.Rows(("step", "reason", "partitions", "moves", "done"), document["steps"])
    output.write(document, output_format, preview_page(document), rows)
