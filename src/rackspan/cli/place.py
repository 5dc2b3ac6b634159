"""rackspan place plan, create, extend."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Annotated, Any, Final, TypeVar

import typer

from rackspan import api, json_text
from rackspan.audit.constraints.cluster import alike_racks, failed_log_dir_lines
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.options import read_file
from rackspan.cli.pages.place import proposal_page, spec_page
from rackspan.disk import replace_file, writing_output
from rackspan.errors import UsageError
from rackspan.placement.new_partitions import PlacerChoice, Proposal
from rackspan.placement.proposal_format import NewTopicDocument, PlacementPlan, proposal_document
from rackspan.text import noun_and_ids

app = CommandGroup(
    name="place",
    help="Place new topics and partitions: rack-safe and balanced, on any Kafka.",
)

T = TypeVar("T")

PLACEMENT_PLAN: Final = "plan of rackspan place create or extend"

Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="The topic.")]
PlanIn = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", help="A placement that was kept with --out, in place of what it says."),
]
PlanOut = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Also keep the placement here, for --plan.")
]


@app.command("plan")
def plan(
    spec: Annotated[Path, typer.Option("--spec", metavar="FILE", help="Brokers, figures and a placer, as JSON.")],
    exclude_brokers: options.ExcludeBrokers = None,
    allow_fewer_racks: options.AllowFewerRacks = False,
    output_format: options.OutputFormat = options.Output.JSON,
) -> None:
    """Compute the placement of a spec file; no cluster is read, and only --exclude-brokers excludes any."""
    exclusion = api.Exclusion(options.ids("--exclude-brokers", exclude_brokers), allow_fewer_racks)
    document = read_file(
        spec, lambda content: api.place_from_spec(json_text.parse(content), Random(), exclusion), "placement spec"
    )
    output.write(document, output_format, spec_page(document), _rows(document))


@app.command("create")
@options.with_option_groups
def create(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    placement_options: options.PlacementOptions,
    exclusion_options: options.ExclusionOptions,
    topic: Topic = None,
    partitions: Annotated[
        int | None, typer.Option("--partitions", metavar="N", help="The number of partitions.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option("--replication-factor", metavar="N", help="Replicas of each partition.")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A config of the topic; repeat it for each."),
    ] = None,
    plan: PlanIn = None,
    out: PlanOut = None,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Place a new topic beside the replicas that brokers have already; with --apply, create it with that assignment.

    With --out the placement is kept, and --plan FILE --apply then creates just that.
    """
    given = {"--topic": topic, "--partitions": partitions, "--replication-factor": replication_factor}
    _check_flags(plan, out, apply, placement_options, given, {"--config": config})
    placing = _Placing(source_options, rack_options, placement_options, exclusion_options, apply)
    if plan is not None:
        written = output.read_plan_file(plan, api.read_placement_plan, PLACEMENT_PLAN)
        proposal, configs = placing.planned(written, new_topic=True), dict(written.configs)
    else:
        configs = options.pairs("--config", config)
        proposal = api.place_new_topic(
            placing.snapshot,
            _needed("--topic", topic),
            _needed("--partitions", partitions),
            _needed("--replication-factor", replication_factor),
            placing.choice(),
            placement_options.rng(),
        )
    output.warn(_about_fenced(proposal))
    if out is not None:
        _save(api.placement_plan_document(proposal, placing.snapshot, configs), out)
    if placing.cluster is not None:
        api.create_topic(placing.cluster, proposal, configs)
    document: NewTopicDocument = {**proposal_document(proposal, apply), "config": configs}
    output.write(document, output_format, proposal_page(document, "created"), _rows(document))
    raise exit_codes.finish(to_act_on=not apply)


@app.command("extend")
@options.with_option_groups
def extend(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    placement_options: options.PlacementOptions,
    exclusion_options: options.ExclusionOptions,
    topic: Topic = None,
    partitions: Annotated[
        int | None,
        typer.Option("--partitions", metavar="N", help="The number of partitions afterwards, old ones included."),
    ] = None,
    plan: PlanIn = None,
    out: PlanOut = None,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Add partitions to a topic, with as many replicas as it has; existing partitions stay. Made with --apply.

    With --out the placement is kept, and --plan FILE --apply then adds just that.
    """
    _check_flags(plan, out, apply, placement_options, {"--topic": topic, "--partitions": partitions}, {})
    placing = _Placing(source_options, rack_options, placement_options, exclusion_options, apply)
    if plan is not None:
        proposal = placing.planned(
            output.read_plan_file(plan, api.read_placement_plan, PLACEMENT_PLAN), new_topic=False
        )
    else:
        proposal = api.place_more_partitions(
            placing.snapshot,
            _needed("--topic", topic),
            _needed("--partitions", partitions),
            placing.choice(),
            placement_options.rng(),
        )
    output.warn(_about_fenced(proposal))
    adds = bool(len(proposal.assignment.replicas))
    if out is not None and adds:
        _save(api.placement_plan_document(proposal, placing.snapshot), out)
    if placing.cluster is not None and adds:
        api.create_partitions(placing.cluster, proposal)
    document = proposal_document(proposal, apply)
    output.write(document, output_format, proposal_page(document, "added"), _rows(document))
    raise exit_codes.finish(to_act_on=adds and not apply)


class _Placing:
    """The cluster as it was read, and the one to change with --apply."""

    def __init__(
        self,
        source_options: options.SourceOptions,
        rack_options: options.RackLocatorOptions,
        placement_options: options.PlacementOptions,
        exclusion_options: options.ExclusionOptions,
        apply: bool,
    ) -> None:
        self.cluster = source_options.cluster_to_change() if apply else None
        read = rack_options.of(source_options.source()).read()
        output.warn_of(read)
        output.warn([*exclusion_options.warnings(read.snapshot), *placement_options.warnings(rack_options)])
        output.warn(failed_log_dir_lines(read.snapshot))
        if not placement_options.ignore_racks:
            policy = api.RackPolicy(**options.different_racks_arguments(exclusion_options.given.settings))
            output.warn(alike_racks(read.snapshot, policy))
        self.snapshot = read.snapshot
        self._excluded = exclusion_options.excluded(read.snapshot)
        self._placement_options = placement_options

    def choice(self) -> PlacerChoice:
        return self._placement_options.choice(self._excluded)

    def planned(self, written: PlacementPlan, *, new_topic: bool) -> Proposal:
        """Errors: UsageError where it can no longer be made as it was shown."""
        return api.planned_proposal(self.snapshot, written, api.Exclusion(self._excluded), new_topic=new_topic)


def _check_flags(
    plan: Path | None,
    out: Path | None,
    apply: bool,
    placement_options: options.PlacementOptions,
    required: Mapping[str, object],
    optional: Mapping[str, object],
) -> None:
    """Either a plan or what it would say, never both. Errors: UsageError."""
    if out is not None and (apply or plan is not None):
        other = "--apply" if apply else "--plan"
        raise UsageError(f"--out and {other}: keep the placement first, then give it with --plan FILE --apply")
    if plan is None:
        for flag, value in required.items():
            _needed(flag, value)
        return
    for flag, value in {**required, **optional}.items():
        if value is not None:
            raise UsageError(f"{flag} and --plan: the plan says it; leave one of them out")
    if placement_options != options.PlacementOptions():
        raise UsageError("--plan: its replicas are placed already; leave out the options of the placer")


def _about_fenced(proposal: Proposal) -> Iterator[str]:
    if fenced := proposal.on_fenced:
        are, they_are = ("is", "it is") if len(fenced) == 1 else ("are", "they are")
        yield f"{noun_and_ids('broker', fenced)} {are} fenced: replicas there are not in sync before {they_are} back"


def _needed(flag: str, value: T | None) -> T:
    if value is None:
        raise UsageError(f"{flag} is missing; give it, or a kept placement with --plan FILE")
    return value


def _save(document: dict[str, Any], file: Path) -> None:
    if file == options.STANDARD_STREAM:
        raise UsageError("--out -: standard output has the result already; name a file")
    with writing_output(file):
        replace_file(file, json.dumps(output.with_settings(document), ensure_ascii=False) + "\n")


def _rows(document: Mapping[str, Any]) -> output.Rows:
    rows = (
        {"topic": document.get("topic"), "partition": int(partition), "replicas": replicas}
        for partition, replicas in document["assignments"].items()
    )
    return output.Rows(("topic", "partition", "replicas"), rows)
