"""What apply, undo and cancel have in common: their files, the rates and throttles that they report, and their result."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rackspan import api
from rackspan.cli import options, output
from rackspan.cli.options import read_file
from rackspan.cli.pages.run import RunEnd, outcome_document, outcome_page, verdict_document, verdict_page
from rackspan.cli.pages.throttles import throttle_lines
from rackspan.cli.reassign.plan import REASSIGNMENT, note_read_as
from rackspan.errors import RackspanError, SourceError, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.plan import ConfigKey, RunState, VerifiedPartition, observed, ours_in_flight
from rackspan.plan.execution.effects import Stop
from rackspan.plan.execution.observed import ReassignmentStatus
from rackspan.plan.plan_file import plan_of
from rackspan.plan.reassignment_file import reassignment_text
from rackspan.reassign import ReassignmentPlan
from rackspan.text import count_noun

if TYPE_CHECKING:
    from rackspan.apply import RunUpdate

HOW_TO_RESUME: Final = (
    "moves under way continue, throttled as they are; run the same command again to resume, "
    "or rackspan reassign cancel to cancel them"
)

EXECUTION: Final = "Execution"

_PLAN: Final = typer.Option(
    "--plan",
    "--reassignment-json-file",
    metavar="FILE",
    help="A plan of rackspan reassign plan, or any reassignment file.",
)
PlanFile = Annotated[Path, _PLAN]
OptionalPlanFile = Annotated[Path | None, _PLAN]
JournalPath = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="The journal of the run, from which it is resumed; by default the plan's name and .journal.",
        rich_help_panel=EXECUTION,
    ),
]
Patience = Annotated[
    int,
    typer.Option(
        "--patience",
        metavar="SECONDS",
        help="How long to wait for a broker that is down.",
        min=0,
        rich_help_panel=EXECUTION,
    ),
]
DEFAULT_PATIENCE_SECONDS = 300
AllowRefusedWrites = Annotated[
    bool,
    typer.Option(
        "--allow-refused-writes",
        help="Cancel moves too after which a partition refuses acks=all.",
        rich_help_panel=EXECUTION,
    ),
]

STILL_SET: Final = "still set"


def noting_how_to_resume(updates: "Iterator[RunUpdate]") -> "Iterator[RunUpdate]":
    """Note how to resume when a run that has done something, or has moves under way, ends early."""
    begun = False
    try:
        for update in updates:
            begun = begun or not isinstance(update.effect, Stop) or any(ours_in_flight(update.state, update.cluster))
            yield update
    except (RackspanError, KeyboardInterrupt):
        if begun:
            output.note(HOW_TO_RESUME)
        raise


def foreign_throttles(cluster: api.Cluster, state: RunState, meaning: str) -> dict[ConfigKey, str]:
    """Report each throttle that others have set by its name and value, with what becomes of it."""
    try:
        found = api.foreign_throttles(cluster, state)
    except SourceError as error:
        # A run without a throttle needs no right to read them.
        output.warn([f"throttles that others have set could not be read: {error}"])
        return {}
    output.warn(f"throttle not set by this run: {line}: {meaning}" for line in throttle_lines(found))
    return found


def judge_cancels(
    snapshot: ClusterSnapshot,
    state: RunState,
    *,
    cancelling: Collection[ReassignmentStatus],
    allow_refused_writes: bool,
    apply: bool,
) -> None:
    """A warning for each move of these statuses whose cancel would do harm. Errors: with `apply`, UsageError for harm that is not allowed."""
    moving = [name for name, status in ours_in_flight(state, observed(snapshot)) if status in cancelling]
    harmful = api.harmful_cancels(snapshot, moving)
    refused = [harm for harm in harmful.values() if harm.never or not allow_refused_writes]
    words = [f"{name}: cancelled now, {harm.reason}" for name, harm in harmful.items()]
    if not refused or not apply:
        output.warn(f"{line}; --apply refuses it" if refused else line for line in words)
        return
    more = f", and {count_noun(len(words) - 1, 'more partition')} like it" if len(words) > 1 else ""
    accept = "" if any(harm.never for harm in refused) else ", or accept it with --allow-refused-writes"
    raise UsageError(f"{words[0]}{more}; wait until the moves have ended or their brokers are back{accept}")


def write_outcome(
    last: "RunUpdate", journal: Path, state: RunEnd, foreign: Mapping[ConfigKey, str], output_format: options.Output
) -> None:
    document = outcome_document(last, journal, state, foreign)
    rows = output.Rows(tuple(document), [document])
    output.write(document, output_format, outcome_page(document), rows)


def write_verdict(found: Sequence[VerifiedPartition], output_format: options.Output) -> None:
    document = verdict_document(found)
    rows = output.Rows(("topic", "partition", "replicas", "verdict", "reason"), document["partitions"])
    output.write(document, output_format, verdict_page(found), rows)


def plan_in(file: Path, cluster_id: str | None, *, forward: bool) -> ReassignmentPlan:
    """The plan in a file, and a note on what of the file it is. `forward`: it is to be carried out, by the settings that it was made by.

    Errors: InvalidReassignment, UsageError.
    """

    def read(text: bytes) -> ReassignmentPlan:
        found = reassignment_text(text)
        note_read_as(found.read_as)
        return plan_of(found.top)

    plan = (output.read_plan_file if forward else read_file)(file, read, REASSIGNMENT)
    return plan if cluster_id is None else plan.for_cluster(cluster_id)


def journal_beside(plan: Path) -> Path:
    if plan == options.STANDARD_STREAM:
        raise UsageError("--plan -: a plan from standard input has no journal beside it; name one with --journal FILE")
    return plan.with_name(f"{plan.name}.journal")
