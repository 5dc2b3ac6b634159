"""rackspan acks harden."""

import re
from typing import Annotated

import typer

from rackspan import api
from rackspan.acks.json_format import applied_document, harden_document
from rackspan.cli import options, output
from rackspan.cli.pages.acks import harden_page
from rackspan.errors import UsageError
from rackspan.model.snapshot import ClusterSnapshot

SOMETHING_TO_ACT_ON = 2

app = typer.Typer(name="acks", help="Have acks=all mean racks, on a Kafka that counts replicas.", no_args_is_help=True)


@app.command()
@options.with_groups
def harden(
    where: options.Where,
    racks: options.Racks,
    judging: options.Judging,
    topic: options.TopicPattern = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Set the values that must rise, then judge the cluster again.")
    ] = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Say the least min.insync.replicas that forces each topic's records onto enough racks, and what it costs.

    Nothing is changed without --apply. Exits 0 when every topic is forced (with --apply: now), 2 when one is not, 1 on
    errors.
    """
    cluster = where.cluster_to_change() if apply else None
    wanted, policy = _pattern(topic), judging.policy()
    source = racks.of(where.source())
    taken = source.read()
    output.warn_of(taken)
    _refuse_if_none_match(taken.snapshot, wanted)
    advice = api.harden(taken.snapshot, policy, wanted)
    applied: dict[str, int] = {}
    if cluster is not None:
        applied = api.set_min_insync_replicas(cluster, advice)
        taken = source.read()
        advice = api.harden(taken.snapshot, policy, wanted)
    document = harden_document(taken.snapshot, advice, where.bootstrap_server or "HOST:PORT")
    if cluster is not None:
        judged = api.audit(taken.snapshot, policy)
        document |= applied_document(applied, judged.findings)
    output.write(document, output_format, harden_page(document))
    if any(one.to_act_on for one in advice):
        raise typer.Exit(SOMETHING_TO_ACT_ON)


def _pattern(topic: str | None) -> re.Pattern[str] | None:
    try:
        return None if topic is None else re.compile(topic)
    except re.error as error:
        raise UsageError(f"--topic {topic!r}: not a regular expression: {error}; correct it") from None


def _refuse_if_none_match(snapshot: ClusterSnapshot, wanted: re.Pattern[str] | None) -> None:
    if wanted is not None and not any(wanted.fullmatch(one.name) for one in snapshot.topics):
        raise UsageError(
            f"--topic {wanted.pattern!r}: matches none of {len(snapshot.topics)} topics by its whole name; correct it"
        )
