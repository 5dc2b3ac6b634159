"""rackspan acks harden."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Final

import typer

from rackspan import api
from rackspan.acks import HardenAdvice, HardenOutcome
from rackspan.acks.json_format import applied_document, harden_document
from rackspan.acks.wording import reason, remedies
from rackspan.audit import ClusterMembers, Finding, RackPolicy
from rackspan.audit.constraints.cluster import alike_racks
from rackspan.audit.drift.unread import Unread, unread
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.pages.acks import harden_page
from rackspan.model import MIN_INSYNC_REPLICAS, ClusterSnapshot
from rackspan.text import count_noun

app = CommandGroup(
    name="acks",
    help="Make acks=all guarantee racks on a Kafka that counts replicas.",
)


@app.command()
@options.with_option_groups
def harden(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    topic: options.TopicPattern = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Set the values that must rise, then audit the cluster again.")
    ] = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Show the least min.insync.replicas that forces each topic's records onto enough racks, and what it costs.

    Nothing is changed without --apply.
    """
    cluster = source_options.cluster_to_change() if apply else None
    topic_filter, policy = options.topic_filter(topic), policy_options.policy()
    source = rack_options.of(source_options.source())
    read = source.read()
    output.warn_of(read)
    output.warn([*policy_options.warnings(read.snapshot), *alike_racks(read.snapshot, policy)])
    options.refuse_if_none_match(read.snapshot, topic_filter)
    advice = api.harden(read.snapshot, policy, topic_filter)
    # Before anything is set: a value that forces racks can be one that a loss brings a topic under.
    stopped = api.stopped_once_hardened(read.snapshot, policy, advice)
    output.warn(source_options.addressed(list(_stopped(stopped))))
    applied: dict[str, int] = {}
    refused = {HardenOutcome.IMPOSSIBLE}
    if cluster is not None:
        refused.add(HardenOutcome.UNSAFE)
        output.warn(_refused(advice))
        applied = api.set_min_insync_replicas(cluster, advice)
        read = source.read()
        advice = api.harden(read.snapshot, policy, topic_filter)
    document = harden_document(read.snapshot, advice)
    if cluster is not None:
        judged = api.audit(read.snapshot, policy)
        document = {**document, **applied_document(applied, judged.findings)}
    document = source_options.addressed(document)
    output.write(document, output_format, harden_page(document), output.Rows(_COLUMNS, document["topics"]))
    raise exit_codes.finish(
        impossible=any(topic.outcome in refused for topic in advice)
        or _is_open(read.snapshot, advice, every_topic=topic_filter is None)
        or _may_be_fewer_racks(read.snapshot, policy, advice),
        to_act_on=any(topic.to_act_on for topic in advice) or bool(applied and stopped),
    )


def _refused(advice: Sequence[HardenAdvice]) -> Iterator[str]:
    """A line for each topic whose value is not set, since it would stop what continues now, or might be lower than it is."""
    for topic in advice:
        if topic.outcome is HardenOutcome.RAISE and not topic.known:
            yield f"topic {topic.topic}: not set: its {MIN_INSYNC_REPLICAS} could not be read, and may be above {topic.least}; harden again"
        if topic.outcome is HardenOutcome.UNSAFE:
            yield f"topic {topic.topic}: not set: {reason(topic)}; {remedies(topic)[0]}"


def _stopped(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each topic: how many partitions a loss would stop, the first of them, and the remedy."""
    for topic, found in groupby(findings, key=lambda one: one.topic):
        first, *more = found
        others = f" (and {count_noun(len(more), 'partition', ',')} more)" if more else ""
        yield f"topic {topic}, once the value is set: {first.reason}{others}; before it, {first.remedy}"


def _is_open(snapshot: ClusterSnapshot, advice: Sequence[HardenAdvice], *, every_topic: bool) -> bool:
    """Whether what could not be read may hide a topic that is not forced, or a value."""
    lacks = unread(snapshot.partial)
    return (every_topic and Unread.TOPICS in lacks) or (
        Unread.CONFIGS in lacks and any(not topic.known for topic in advice)
    )


def _may_be_fewer_racks(snapshot: ClusterSnapshot, policy: RackPolicy, advice: Sequence[HardenAdvice]) -> bool:
    """Whether names of racks are alike where a topic's records have to be in several."""
    members = ClusterMembers(snapshot.brokers, snapshot.controllers, policy)
    return bool(members.racks_alike) and any(topic.min_insync_racks > 1 for topic in advice)


_COLUMNS: Final = (
    *("topic", "internal", "outcome", "min_insync_racks", "enforced", "current", "known", "least", "partitions"),
    *("too_few_racks", "moving", "smallest_replication_factor", "reason"),
)
