"""rackspan snapshot, audit, outage."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rackspan import api
from rackspan.audit import ClusterMembers
from rackspan.audit.constraints.cluster import RACK_NAMES_ALIKE, alike_racks, failed_log_dir_lines
from rackspan.audit.json_format import FINDING_COLUMNS, OutageDocument, audit_document, outage_document
from rackspan.audit.outage import AFTER_REASSIGNMENT
from rackspan.audit.policy import Survive
from rackspan.cli import exit_codes, options, output
from rackspan.cli.pages.audit import audit_page, outage_page
from rackspan.errors import UsageError
from rackspan.text import count_noun


@options.with_option_groups
def snapshot(
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE-OR-DIR",
            help="The file to write: FILE.json, a new folder for Parquet, or - for JSON on standard output.",
        ),
    ],
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
) -> None:
    """Save a snapshot of a cluster, to be audited later or elsewhere."""
    source = rack_options.of(source_options.source())
    if out == options.STANDARD_STREAM:
        read = source.read()
        output.warn_of(read)
        output.write_text(api.snapshot_json(read.snapshot))
        return
    read = api.snapshot(source, out)
    output.warn_of(read)
    output.note(
        f"{out}: {count_noun(len(read.snapshot.brokers), 'broker')}, {count_noun(len(read.snapshot.partitions), 'partition')}"
    )


@options.with_option_groups
def audit(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.SurvivalOptions,
    exclusion_options: options.ExclusionOptions,
    topic: options.TopicPattern = None,
    output_format: options.AuditFormat = options.AuditOutput.HUMAN,
) -> None:
    """Audit a cluster: what breaks a constraint, why, and the command that repairs it.

    With -o html the output is a page for a browser, with a picture of the racks: rackspan audit -o html > audit.html
    """
    topic_filter = options.topic_filter(topic)
    read = rack_options.of(source_options.source()).read()
    warnings = (*policy_options.warnings(read.snapshot), *exclusion_options.warnings(read.snapshot))
    output.warn((*read.warnings, *warnings))
    options.refuse_if_none_match(read.snapshot, topic_filter)
    policy = policy_options.policy(exclusion_options.excluded(read.snapshot))
    judged = api.audit(read.snapshot, policy, topic_filter)
    document = source_options.addressed(audit_document(read.snapshot, judged, source_options.title))
    if output_format is options.AuditOutput.HTML:
        findings = [replace(finding, remedy=output.runnable(finding.remedy)) for finding in judged.findings]
        output.write_page(
            api.audit_page(
                *(read.snapshot, policy, replace(judged, findings=findings), topic_filter),
                *(source_options.title, source_options.address, source_options.client_properties),
            )
        )
    else:
        rows = output.Rows(FINDING_COLUMNS, document["findings"])
        output.write(document, options.Output(output_format), audit_page(document), rows)
    raise exit_codes.finish(impossible=bool(read.snapshot.unread), to_act_on=not judged.clean)


@options.with_option_groups
def outage(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.SurvivalOptions,
    lose: Annotated[
        list[str] | None,
        typer.Option("--lose", metavar="RACK[,RACK]", help="Lose these racks together. It may be repeated."),
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="Lose each pair of racks.")] = False,
    topic: options.TopicPattern = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Show what losing each rack would do: what goes offline, what refuses writes, which brokers have to lead more."""
    if lose and pairs:
        raise UsageError("--lose and --pairs: name one of them; --lose loses the named racks together")
    topic_filter = options.topic_filter(topic)
    read = rack_options.of(source_options.source()).read()
    output.warn([*read.warnings, *policy_options.warnings(read.snapshot)])
    options.refuse_if_none_match(read.snapshot, topic_filter)
    policy = policy_options.policy()
    output.warn(alike_racks(read.snapshot, policy))
    output.warn(failed_log_dir_lines(read.snapshot))
    alike = (
        [RACK_NAMES_ALIKE]
        if ClusterMembers(read.snapshot.brokers, read.snapshot.controllers, policy).racks_alike
        else []
    )
    now, losses = api.outage(
        read.snapshot,
        policy,
        topic_filter,
        lose=tuple(lose) if lose else None,
        pairs=pairs,
    )
    assumed = api.assumptions(read.snapshot, policy, topic_filter)
    lost_racks = api.racks_down(read.snapshot, policy, topic_filter)
    document = outage_document(read.snapshot, now, losses, source_options.title, assumed, lost_racks, alike)
    output.write(document, output_format, outage_page(document), output.Rows(_LOSS_COLUMNS, _loss_rows(document)))
    # No rack to lose is no proof that one can be lost.
    required = len(read.snapshot.partitions) > 0 and policy.requires(Survive.RACK)
    survived = all(loss.as_required for loss in losses) if losses else not required
    survived &= not (alike and required)
    raise exit_codes.finish(impossible=bool(read.snapshot.unread), to_act_on=not survived)


_LOSS_COLUMNS = (
    *("racks", "lost", "survived", "topic", "internal", "offline", "needs_unclean_election", "under_min_isr"),
    "under_min_racks",
    AFTER_REASSIGNMENT,
)


def _loss_rows(document: OutageDocument) -> Iterator[dict[str, Any]]:
    """A row for each loss and topic it harms; one without a topic where it harms none."""
    for loss in document["losses"]:
        topics: Sequence[Mapping[str, Any]] = loss["topics"] or [{}]
        for topic in topics:
            yield {"racks": loss["racks"], "lost": loss["lost"], "survived": loss["survived"], **topic}
