"""rackspan reassign cancel: the moves of a run by its journal, or whatever is under way."""

from pathlib import Path
from typing import Annotated

import typer

from rackspan import api
from rackspan.cli import exit_codes, options, output
from rackspan.cli.pages.in_flight import in_flight_document, in_flight_page
from rackspan.cli.pages.run import brokers_owed
from rackspan.cli.reassign.execution import (
    DEFAULT_PATIENCE_SECONDS,
    STILL_SET,
    AllowRefusedWrites,
    JournalPath,
    OptionalPlanFile,
    Patience,
    foreign_throttles,
    journal_beside,
    judge_cancels,
    noting_how_to_resume,
    plan_in,
    write_outcome,
    write_verdict,
)
from rackspan.cli.reassign.progress import follow
from rackspan.errors import UsageError
from rackspan.plan import RunState, observed, ours_in_flight
from rackspan.plan.execution.observed import ReassignmentStatus


@options.with_option_groups
def cancel(
    source_options: options.SourceOptions,
    plan: OptionalPlanFile = None,
    in_flight: Annotated[
        bool, typer.Option("--in-flight", help="Every reassignment under way, by any tool, instead of a plan.")
    ] = False,
    topic: options.TopicPattern = None,
    journal: JournalPath = None,
    patience: Patience = DEFAULT_PATIENCE_SECONDS,
    allow_refused_writes: AllowRefusedWrites = False,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Cancel the moves under way of a plan and remove its throttles; what is done stays.

    reassign apply resumes the plan, reassign undo restores what it moved. With --in-flight: the reassignments of any tool;
    throttles stay. A cancel that would stop writes is left out, with --plan all of it is refused.
    """
    _check_flags(plan, in_flight, topic, journal)
    if plan is None:
        _cancel_in_flight(
            source_options, topic, patience, output_format, apply=apply, allow_refused_writes=allow_refused_writes
        )
        return
    written, path = plan_in(plan, None, forward=False), journal or journal_beside(plan)
    if not path.exists():
        raise UsageError(
            f"{path}: no such journal; name the --journal of the run that is to be cancelled, or cancel whatever is under "
            "way with rackspan reassign cancel --in-flight"
        )
    cluster = source_options.cluster_to_change() if apply else None
    read = source_options.source().read()
    state = api.check_reassignment(read.snapshot, written, path)
    judge_cancels(
        read.snapshot,
        state,
        cancelling=(ReassignmentStatus.MOVING, ReassignmentStatus.REVERTING),
        allow_refused_writes=allow_refused_writes,
        apply=apply,
    )
    if cluster is None:
        found = api.verify_reassignment(read.snapshot, state.plan)
        output.warn_of(read)
        write_verdict(found, output_format)
        moving = any(ours_in_flight(state, observed(read.snapshot)))
        raise exit_codes.finish(to_act_on=moving or bool(state.own))
    last = follow(noting_how_to_resume(api.cancel_reassignment(cluster, written, path, patience_seconds=patience)))
    write_outcome(last, path, "cancelled", foreign_throttles(cluster, last.state, STILL_SET), output_format)
    raise exit_codes.finish(to_act_on=bool(brokers_owed(last)))


def _check_flags(plan: Path | None, in_flight: bool, topic: str | None, journal: Path | None) -> None:
    """Errors: UsageError."""
    if plan is None and not in_flight:
        raise UsageError("name the plan with --plan FILE, or --in-flight for every reassignment under way")
    if plan is not None and in_flight:
        raise UsageError(
            "--plan and --in-flight: the first cancels the moves of a run, the second those of every tool; leave one out"
        )
    if journal is not None and in_flight:
        raise UsageError("--journal and --in-flight: a journal is of a plan; leave one out")
    if topic is not None and not in_flight:
        raise UsageError("--topic: it goes with --in-flight; a plan is cancelled as a whole")


def _cancel_in_flight(
    source_options: options.SourceOptions,
    topic: str | None,
    patience_seconds: int,
    output_format: options.Output,
    *,
    apply: bool,
    allow_refused_writes: bool,
) -> None:
    """Exits 0 if nothing is under way, or with --apply once nothing that was is; 2 if something is left to cancel or to wait for."""
    cluster, matching = source_options.cluster_to_change() if apply else None, options.topic_filter(topic)
    read = source_options.source().read()
    plan, replicas = api.reassignments_in_flight(read.snapshot, matching), {}
    output.warn_of(read)
    options.refuse_if_none_match(read.snapshot, matching)
    harmful = api.harmful_cancels(read.snapshot, plan.by_partition.keys())
    left_out = {name for name, harm in harmful.items() if harm.never or not allow_refused_writes}
    if cluster is not None and len(left_out) < len(plan):
        replicas = api.cancel_in_flight(cluster, plan, left_out=left_out, patience_seconds=patience_seconds)
    if cluster is not None and len(plan):
        foreign_throttles(cluster, RunState(plan), STILL_SET)
    document = in_flight_document(plan, replicas, harmful, left_out, applied=apply)
    rows = output.Rows(("topic", "partition", "moves_to", "replicas", "harm", "left_out"), document["partitions"])
    output.write(document, output_format, in_flight_page(document), rows)
    raise exit_codes.finish(to_act_on=bool(left_out) if apply else bool(len(plan)))
