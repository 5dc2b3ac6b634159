"""rackspan place plan, create, extend."""

from pathlib import Path
from random import Random
from typing import Annotated

import typer

from rackspan import api, json_text
from rackspan.cli import options, output
from rackspan.cli.input_files import read_file
from rackspan.cli.pages.place import proposal_page, spec_page
from rackspan.placement.proposal_format import proposal_document

app = typer.Typer(
    name="place",
    help="Place new topics and partitions: rack-safe, level, on any Kafka.",
    no_args_is_help=True,
)

Topic = Annotated[str, typer.Option("--topic", metavar="NAME", help="The topic.")]


@app.command("plan")
def plan(
    spec: Annotated[Path, typer.Option("--spec", metavar="FILE", help="Brokers, figures and a placer, as JSON.")],
    output_format: options.OutputFormat = options.Output.JSON,
) -> None:
    """Answer a placement spec from the file alone; no cluster is asked."""
    document = read_file(
        spec, lambda content: api.place_from_spec(json_text.parse(content), Random()), "placement spec"
    )
    output.write(document, output_format, spec_page(document))


@app.command("create")
@options.with_groups
def create(
    topic: Topic,
    partitions: Annotated[int, typer.Option("--partitions", metavar="N", help="How many.")],
    replication_factor: Annotated[
        int, typer.Option("--replication-factor", metavar="N", help="Replicas of each partition.")
    ],
    where: options.Where,
    racks: options.Racks,
    placing: options.Placing,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A config of the topic; once for each."),
    ] = None,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Place a new topic among all that brokers carry already, and create it by explicit assignment with --apply."""
    configs = options.pairs("--config", config)
    choice = placing.choice()
    cluster = where.cluster_to_change() if apply else None
    taken = racks.of(where.source()).read()
    output.warn_of(taken)
    proposal = api.place_new_topic(taken.snapshot, topic, partitions, replication_factor, choice, placing.rng())
    if cluster is not None:
        api.create_topic(cluster, proposal, configs)
    document = {**proposal_document(proposal, apply), "config": configs}
    output.write(document, output_format, proposal_page(document, "created"))


@app.command("extend")
@options.with_groups
def extend(
    topic: Topic,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", help="How many there shall be afterwards, old ones included.")
    ],
    where: options.Where,
    racks: options.Racks,
    placing: options.Placing,
    apply: options.Apply = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Give a topic more partitions, as many replicas each as it has; what stands stays. Done with --apply."""
    choice = placing.choice()
    cluster = where.cluster_to_change() if apply else None
    taken = racks.of(where.source()).read()
    output.warn_of(taken)
    proposal = api.place_more_partitions(taken.snapshot, topic, partitions, choice, placing.rng())
    if cluster is not None:
        api.create_partitions(cluster, proposal)
    document = proposal_document(proposal, apply)
    output.write(document, output_format, proposal_page(document, "added"))
