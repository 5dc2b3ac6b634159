"""rackspan place plan, create, extend."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer

from rackspan import api, json_text
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.options.input_files import read_file
from rackspan.cli.pages.place import proposal_page, spec_page
from rackspan.placement.proposal_format import proposal_document

app = CommandGroup(
    name="place",
    help="Place new topics and partitions: rack-safe and balanced, on any Kafka.",
)

Topic = Annotated[str, typer.Option("--topic", metavar="NAME", help="The topic.")]


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
    topic: Topic,
    partitions: Annotated[int, typer.Option("--partitions", metavar="N", help="The number of partitions.")],
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", metavar="N", help="Replicas of each partition.")
    ],
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    placement_options: options.PlacementOptions,
    exclusion_options: options.ExclusionOptions,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A config of the topic; repeat it for each."),
    ] = None,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Place a new topic beside the replicas that brokers have already; with --apply, create it with that assignment."""
    configs = options.pairs("--config", config)
    cluster = source_options.cluster_to_change() if apply else None
    read = rack_options.of(source_options.source()).read()
    output.warn_of(read)
    output.warn(exclusion_options.warnings(read.snapshot))
    choice = placement_options.choice(exclusion_options.excluded(read.snapshot))
    proposal = api.place_new_topic(
        read.snapshot, topic, partitions, replication_factor, choice, placement_options.rng()
    )
    if cluster is not None:
        api.create_topic(cluster, proposal, configs)
    document = {**proposal_document(proposal, apply), "config": configs}
    output.write(document, output_format, proposal_page(document, "created"), _rows(document))
    raise exit_codes.finish(to_act_on=not apply)


@app.command("extend")
@options.with_option_groups
def extend(
    topic: Topic,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", help="The number of partitions afterwards, old ones included.")
    ],
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    placement_options: options.PlacementOptions,
    exclusion_options: options.ExclusionOptions,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Add partitions to a topic, with as many replicas as it has; existing partitions stay. Made with --apply."""
    cluster = source_options.cluster_to_change() if apply else None
    read = rack_options.of(source_options.source()).read()
    output.warn_of(read)
    output.warn(exclusion_options.warnings(read.snapshot))
    choice = placement_options.choice(exclusion_options.excluded(read.snapshot))
    proposal = api.place_more_partitions(read.snapshot, topic, partitions, choice, placement_options.rng())
    if cluster is not None:
        api.create_partitions(cluster, proposal)
    document = proposal_document(proposal, apply)
    output.write(document, output_format, proposal_page(document, "added"), _rows(document))
    raise exit_codes.finish(to_act_on=not apply)


def _rows(document: Mapping[str, Any]) -> output.Rows:
    rows = (
        {"topic": document.get("topic"), "partition": int(partition), "replicas": replicas}
        for partition, replicas in document["assignments"].items()
    )
    return output.Rows(("topic", "partition", "replicas"), rows)
