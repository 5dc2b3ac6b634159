"""rackspan reassign generate, plan, lint."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypedDict

import typer
from msgspec import Meta

from rackspan import api
from rackspan.api import Source
from rackspan.audit import ClusterMembers, RackPolicy, Severity
from rackspan.audit.constraints.cluster import declared_different, failed_log_dir_lines, partial_racks
from rackspan.audit.constraints.survival import SURVIVAL_NAMES
from rackspan.audit.drift.unread import Unread, unread
from rackspan.audit.json_format import FINDING_COLUMNS, FindingDocument, finding_document
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.options import read_file
from rackspan.cli.options.quantities import byte_count
from rackspan.cli.pages.difference import DifferenceDocument, WithDetails, details_document, difference_document
from rackspan.cli.pages.reassignment_plan import generate_page, lint_page, plan_page
from rackspan.disk import replace_file, writing_output
from rackspan.documents import Count
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot
from rackspan.placement.generate import GENERATE_PLACER, unknown_brokers
from rackspan.plan import (
    PlanDocument,
    ReassignmentFile,
    StepLimits,
    plan_document,
    read_broker_list,
    read_reassignment,
    read_topics_to_move,
    reassignment_file,
)
from rackspan.plan.difference import full_disk_lines
from rackspan.reassign import PartitionReassignment, ReassignmentPlan, ReassignmentRequest
from rackspan.reassign.intermediate import waits_for

REASSIGNMENT: Final = "reassignment file"

AllowFewerRacks: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-fewer-racks", help="Accept partitions that survive less of the loss of a rack than they do now."
    ),
]
Details: TypeAlias = Annotated[
    bool, typer.Option("--details", help="Show every partition, before and after, with its reason.")
]


def note_read_as(read_as: str | None) -> None:
    """Say what of a reassignment file was read, if it is no plain one."""
    if read_as is not None:
        output.note(f"read as {read_as}")


app = CommandGroup(help="Move replicas: the least movement that makes a cluster rack-safe.")


class GeneratedDocument(TypedDict):
    """Both files that Kafka's tool prints: the one that restores the present assignment, and the one to execute."""

    current: ReassignmentFile
    proposed: ReassignmentFile


class NewPlanDocument(PlanDocument, WithDetails):
    """A reassignment plan; also the content of the file of --out, which kafka-reassign-partitions takes."""

    difference: DifferenceDocument
    left_unsafe: Annotated[
        list[FindingDocument],
        Meta(description="What a loss would still stop once the plan is done: the first finding of each topic."),
    ]


class LintSummary(TypedDict):
    read_as: Annotated[str | None, Meta(description="What of the file was read; null for a plain reassignment file.")]
    partitions: Count
    violations: Count
    warnings: Count


class LintDocument(WithDetails):
    """Findings about a reassignment file."""

    summary: LintSummary
    findings: list[FindingDocument]
    difference: DifferenceDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class _GenerateOptions(options.PlacementOptions):
    """The placer of Kafka's own tool is the default."""

    placer: options.Placer = GENERATE_PLACER


@dataclass(frozen=True, slots=True, kw_only=True)
class _RequestOptions:
    """The request that a reassignment fulfils: plan plans for it, lint judges a file by it."""

    drain: Annotated[
        str | None, typer.Option("--drain", metavar="ID[,ID]", help="Brokers that hold nothing afterwards.")
    ] = None
    replace: Annotated[
        str | None,
        typer.Option(
            "--replace", metavar="ID[,ID]", help="As --drain, and what they held stays in their rack where possible."
        ),
    ] = None
    replication_factor: Annotated[
        int | None,
        typer.Option("--replication-factor", metavar="N", help="The replicas of each partition afterwards."),
    ] = None
    balance: Annotated[
        bool, typer.Option("--balance", help="Also move replicas to brokers that hold too few, new ones above all.")
    ] = False
    allow_fewer_racks: AllowFewerRacks = False

    def request(self) -> ReassignmentRequest:
        return ReassignmentRequest(
            drain=options.ids("--drain", self.drain),
            replace=options.ids("--replace", self.replace),
            replication_factor=self.replication_factor,
            balance=self.balance,
            allow_fewer_racks=self.allow_fewer_racks,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlanRequestOptions(_RequestOptions):
    """The request to plan, with the partitions to plan for and the order of their replicas."""

    topic: options.TopicPattern = None
    replace_missing_brokers: Annotated[
        bool,
        typer.Option(
            "--replace-missing-brokers",
            help="Brokers that hold replicas and are not listed are gone for good: copy their replicas elsewhere.",
        ),
    ] = False
    keep_leaders: Annotated[
        bool, typer.Option("--keep-leaders", help="Do not reorder replicas to balance preferred leaders.")
    ] = False
    leaders: Annotated[
        bool,
        typer.Option(
            "--leaders",
            help="Only reorder replicas, so that preferred leaders are in the racks of leader.racks in rackspan.toml, level in each.",
        ),
    ] = False

    def request(self) -> ReassignmentRequest:
        """Errors: UsageError where --allow-fewer-racks would have no effect."""
        request = replace(
            _RequestOptions.request(self),
            topics=self.topic,
            replace_missing=self.replace_missing_brokers,
            reorder_leaders=not self.keep_leaders,
            leaders=self.leaders,
        )
        if self.allow_fewer_racks and not (request.leaving or self.replication_factor):
            raise UsageError(
                "--allow-fewer-racks: nothing in the request can cost safety; leave it out, "
                "or give --drain, --replace or --replication-factor"
            )
        return request


@dataclass(frozen=True, slots=True, kw_only=True)
class _LintRequestOptions(_RequestOptions):
    """The request that an existing file was made for."""

    balance: Annotated[
        bool, typer.Option("--balance", help="The file was made with --balance: more moves are meant.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepOptions:
    """How much is copied at the same time."""

    moves_per_step: Annotated[
        int, typer.Option("--moves-per-step", metavar="N", help="Replicas copied at the same time.")
    ] = 1_000
    moves_per_broker: Annotated[
        int | None,
        typer.Option("--moves-per-broker", metavar="N", help="Replicas copied to one broker at the same time."),
    ] = None
    bytes_per_step: Annotated[
        int | None,
        typer.Option(
            "--bytes-per-step", metavar="BYTES", parser=byte_count, help="Bytes copied at the same time, such as 10GB."
        ),
    ] = None

    def limits(self) -> StepLimits:
        return StepLimits(moves=self.moves_per_step, bytes=self.bytes_per_step, moves_per_broker=self.moves_per_broker)


@app.command("generate")
@options.with_option_groups
def generate(
    topics_to_move_json_file: Annotated[
        Path, typer.Option("--topics-to-move-json-file", metavar="FILE", help="The topics to place again, as JSON.")
    ],
    broker_list: Annotated[str, typer.Option("--broker-list", metavar="ID[,ID]", help="Brokers to place them on.")],
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    placement_options: _GenerateOptions,
    exclusion_options: options.ExclusionOptions,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Place topics again on a list of brokers, as kafka-reassign-partitions --generate does: nearly everything moves.

    Prints the current and the proposed assignment and changes nothing. `reassign plan` finds the least movement instead.
    """
    brokers = read_broker_list(broker_list)
    topics = read_file(topics_to_move_json_file, read_topics_to_move, "topics-to-move file")
    read = rack_options.of(source_options.source()).read()
    output.warn_of(read)
    output.warn([*exclusion_options.warnings(read.snapshot), *placement_options.warnings(rack_options)])
    choice = placement_options.choice(exclusion_options.excluded(read.snapshot))
    passed_over = unknown_brokers(read.snapshot, brokers)
    output.warn(f"--broker-list: broker {broker} is not alive in the cluster; skipped" for broker in passed_over)
    excluded = sorted(choice.exclusion.brokers & set(brokers))
    output.warn(f"--broker-list: broker {broker} is excluded; skipped" for broker in excluded)
    generated = api.generate_reassignment(read.snapshot, topics, brokers, choice, placement_options.rng())
    current = [PartitionReassignment(moved.topic, moved.partition, moved.current) for moved in generated]
    proposed = [PartitionReassignment(moved.topic, moved.partition, moved.proposed) for moved in generated]
    document: GeneratedDocument = {"current": reassignment_file(current), "proposed": reassignment_file(proposed)}
    rows = output.Rows(("topic", "partition", "replicas"), document["proposed"]["partitions"])
    if output_format is options.Output.HUMAN:  # Its page is that of Kafka's tool.
        output.note_settings()
    output.write(document, output_format, generate_page(current, proposed), rows)
    raise exit_codes.finish(to_act_on=current != proposed)


@app.command("plan")
@options.with_option_groups
def plan(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    exclusion_options: options.ExclusionOptions,
    request_options: _PlanRequestOptions,
    step_options: _StepOptions,
    details: Details = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also write the plan here, for --reassignment-json-file."),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Plan the fewest moves that meet the constraints, with the bound that proves it."""
    request, limits = request_options.request(), step_options.limits()
    snapshot, policy = _read(rack_options.of(source_options.source()), policy_options, exclusion_options)
    planned = api.plan_reassignment(snapshot, policy, request, limits)
    columns = planned.columns()
    difference = api.plan_difference(snapshot, columns, policy)
    output.warn(full_disk_lines(snapshot, difference))
    output.warn(waits_for(snapshot, columns))
    document: dict[str, Any] = {
        **plan_document(planned),
        "difference": difference_document(difference),
        "left_unsafe": _left_unsafe(snapshot, policy, planned, request),
    }
    if details:
        steps = [step.number for step in planned.steps for _ in range(len(step.columns))]
        differences = api.partition_differences(snapshot, columns, policy, steps, request.leaving)
        document["details"] = details_document(differences)
    document = source_options.addressed(document)
    if out is not None:
        _save(output.with_settings(document), out)
    if output_format is not options.Output.HUMAN:  # The page has them.
        output.warn(
            f"{'refused' if entry['refused'] else 'impossible'}: {entry['reason']}; {entry['remedy']}"
            for entry in document["infeasible"]
        )
    output.write(document, output_format, plan_page(document), _move_rows(document))
    is_open = _is_open(snapshot, request, moves=bool(planned.steps))
    if is_open:
        output.warn(["what could not be read may have to move too"])
    raise exit_codes.finish(
        impossible=bool(planned.infeasible) or is_open, to_act_on=bool(planned.steps) or bool(document["leaderless"])
    )


def _left_unsafe(
    snapshot: ClusterSnapshot, policy: RackPolicy, planned: ReassignmentPlan, request: ReassignmentRequest
) -> list[FindingDocument]:
    """The first finding of each topic that a loss still stops after the plan. Of a request for something else: none."""
    if request.leaving or request.replication_factor or request.balance or request.leaders:
        return []
    judged = api.audit(api.snapshot_after(snapshot, planned), policy, options.topic_filter(request.topics))
    first: dict[str, FindingDocument] = {}
    for finding in judged.findings:
        if finding.topic is not None and finding.constraint in SURVIVAL_NAMES:
            first.setdefault(finding.topic, finding_document(finding))
    return list(first.values())


def _is_open(snapshot: ClusterSnapshot, request: ReassignmentRequest, *, moves: bool) -> bool:
    """Whether what could not be read decides: that nothing has to move, and that brokers to drain hold nothing afterwards."""
    lacks = unread(snapshot.partial)
    if request.topics is not None:
        lacks &= ~Unread.TOPICS
    if moves:
        return bool(request.leaving and lacks & (Unread.TOPICS | Unread.MOVES))
    return bool(lacks & ~Unread.VOTERS)


@app.command("lint")
@options.with_option_groups
def lint(
    reassignment_json_file: Annotated[
        Path,
        typer.Option(
            "--reassignment-json-file",
            "--plan",
            metavar="FILE",
            help="The reassignment file to check, of any tool: also what --generate prints, or Cruise Control's proposals.",
        ),
    ],
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    exclusion_options: options.ExclusionOptions,
    request_options: _LintRequestOptions,
    details: Details = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Check a reassignment file: its targets, the replicas on the way, needless copies.

    Give --drain, --replace, --replication-factor, --balance and --allow-fewer-racks as to `reassign plan`: what they require
    or accept is then no finding.
    """
    request = request_options.request()
    document = read_file(reassignment_json_file, read_reassignment, REASSIGNMENT)
    note_read_as(document.read_as)
    snapshot, policy = _read(rack_options.of(source_options.source()), policy_options, exclusion_options)
    found = api.lint_reassignment(snapshot, policy, document, request)
    columns = api.known_reassignments(snapshot, document)
    difference = api.plan_difference(snapshot, columns, policy)
    output.warn(full_disk_lines(snapshot, difference))
    violations = sum(finding.severity is Severity.VIOLATION for finding in found)
    written: LintDocument = {
        "summary": {
            "read_as": document.read_as,
            "partitions": len(document.partitions),
            "violations": violations,
            "warnings": len(found) - violations,
        },
        "findings": [finding_document(finding) for finding in found],
        "difference": difference_document(difference),
    }
    if details:
        nowhere = [0] * len(columns)
        differences = api.partition_differences(snapshot, columns, policy, nowhere, request.leaving)
        written["details"] = details_document(differences)
    written = source_options.addressed(written)
    output.write(written, output_format, lint_page(written), output.Rows(FINDING_COLUMNS, written["findings"]))
    lacks = unread(snapshot.partial) & (Unread.MOVES | Unread.CONFIGS | Unread.FENCED)
    raise exit_codes.finish(impossible=bool(lacks), to_act_on=violations > 0)


def _read(
    source: Source, policy_options: options.PolicyOptions, exclusion_options: options.ExclusionOptions
) -> tuple[ClusterSnapshot, RackPolicy]:
    """A snapshot and the policy for it, after their warnings."""
    read = source.read()
    output.warn_of(read)
    output.warn(policy_options.warnings(read.snapshot))
    output.warn(exclusion_options.warnings(read.snapshot))
    policy = policy_options.policy(exclusion_options.excluded(read.snapshot))
    output.warn(partial_racks(read.snapshot.brokers, policy.unracked))
    output.warn(declared_different(ClusterMembers(read.snapshot.brokers, read.snapshot.controllers, policy)))
    output.warn(failed_log_dir_lines(read.snapshot))
    return read.snapshot, policy


def _move_rows(document: dict[str, Any]) -> output.Rows:
    """A row for each partition that changes; `undo` has the replicas before."""
    rows = ({"step": step["step"], **partition} for step in document["steps"] for partition in step["partitions"])
    return output.Rows(("step", "topic", "partition", "replicas", "undo"), rows)


def _save(document: dict[str, Any], file: Path) -> None:
    with writing_output(file):
        replace_file(file, json.dumps(document, ensure_ascii=False) + "\n")
