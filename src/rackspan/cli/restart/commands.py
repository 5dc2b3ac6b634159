"""rackspan restart safe, plan; watch is in watch.py."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from rackspan import api
from rackspan.audit.constraints.cluster import alike_racks, failed_log_dir_lines
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.restart.pages import LISTS, restart_plan_page, stop_page
from rackspan.cli.restart.watch import guarded, watch
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot
from rackspan.restart import BlockOn, RestartRequest, StopJudgement, StopPolicy
from rackspan.restart.json_format import (
    RestartPlanDocument,
    StopDocument,
    SufferingDocument,
    restart_plan_document,
    stop_document,
)
from rackspan.restart.planner import left_over_lines

app = CommandGroup(name="restart", help="Restart brokers: which may stop, and all of them in few safe batches.")


class BatchGroup(StrEnum):
    """The brokers that a batch may mix."""

    RACK = "rack"


@dataclass(frozen=True, slots=True, kw_only=True)
class _StopOptions:
    """What a stop may cost."""

    margin: Annotated[
        int,
        typer.Option(
            "--margin",
            metavar="N",
            min=0,
            help="Replicas in sync to keep above the minimum, if the replication factor allows it.",
        ),
    ] = 0
    accept: Annotated[
        str | None,
        typer.Option("--accept", metavar="REGEX", help="Let topics suffer whose whole name matches."),
    ] = None
    block_on: Annotated[
        str | None,
        typer.Option(
            "--block-on",
            metavar="HARM[,HARM]",
            help="Also refuse a stop that leaves one copy in sync (one-copy), or stops an only replica (rf1).",
        ),
    ] = None

    def policy(self) -> StopPolicy:
        """Errors: UsageError for an invalid pattern and for an unknown harm."""
        try:
            accepted = None if self.accept is None else re.compile(self.accept)
        except re.error as error:
            raise UsageError(
                f"--accept {self.accept!r}: not a regular expression: {error}; write one such as orders-.*"
            ) from None
        known = {str(harm): harm for harm in BlockOn}
        names = [] if self.block_on is None else self.block_on.split(",")
        for name in names:
            if name not in known:
                raise UsageError(f"--block-on {self.block_on}: {name!r} is not a harm; name {' or '.join(known)}")
        return StopPolicy(self.margin, frozenset(known[name] for name in names), accepted)


@app.command("safe")
@options.with_option_groups
def safe(
    *,
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    broker: Annotated[
        str | None, typer.Option("--broker", metavar="ID[,ID]", help="The brokers to stop together.")
    ] = None,
    rack: Annotated[
        list[str] | None,
        typer.Option("--rack", metavar="RACK[,RACK]", help="Every broker of these racks. It may be repeated."),
    ] = None,
    stop_options: _StopOptions,
    wait_seconds: Annotated[
        int,
        typer.Option(
            "--wait", metavar="SECONDS", min=0, help="Read again every second for so long, until they may stop."
        ),
    ] = 0,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Judge whether brokers may stop together, and name the partitions that would suffer. A check, not a lock."""
    if (broker is None) == (not rack):
        raise UsageError("name the brokers to stop, with either --broker ID[,ID] or --rack RACK[,RACK]")
    if wait_seconds and source_options.snapshot == options.STANDARD_STREAM:
        raise UsageError("--wait: for a cluster or a file; standard input does not change")
    stop = stop_options.policy()
    # With the log directories, which show topics on disk that this user may not see: such a topic may suffer.
    source, policy = rack_options.of(guarded(source_options, source_options.source())), policy_options.policy()

    def judge(snapshot: ClusterSnapshot) -> StopJudgement:
        chosen = options.ids("--broker", broker) if not rack else api.brokers_in_racks(snapshot, tuple(rack), policy)
        return api.judge_stop(snapshot, chosen, policy, stop)

    read, judged = api.wait_until_safe(source, judge, wait_seconds)
    output.warn([*read.warnings, *policy_options.warnings(read.snapshot), *alike_racks(read.snapshot, policy)])
    output.warn(failed_log_dir_lines(read.snapshot))
    document = stop_document(read.snapshot, judged)
    output.write(document, output_format, stop_page(document), output.Rows(_STOP_COLUMNS, _stop_rows(document)))
    raise exit_codes.finish(impossible=bool(judged.partial), to_act_on=not judged.safe)


@app.command("plan")
@options.with_option_groups
def plan(
    *,
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    brokers: Annotated[
        str | None,
        typer.Option(
            "--brokers", metavar="ID[,ID]", help="The brokers to restart, instead of all that are up or hold replicas."
        ),
    ] = None,
    by: Annotated[BatchGroup | None, typer.Option("--by", help="One rack at a time.")] = None,
    max_batch: Annotated[
        int | None, typer.Option("--max-batch", metavar="N", min=1, help="The most brokers of a batch.")
    ] = None,
    stop_options: _StopOptions,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Plan a rolling restart in the fewest batches, each safe with every other broker up and in sync."""
    stop = stop_options.policy()
    chosen = None if brokers is None else options.ids("--brokers", brokers)
    read = rack_options.of(guarded(source_options, source_options.source())).read()
    policy = policy_options.policy()
    output.warn([*read.warnings, *policy_options.warnings(read.snapshot), *alike_racks(read.snapshot, policy)])
    output.warn(failed_log_dir_lines(read.snapshot))
    output.warn(left_over_lines(read.snapshot, policy) if chosen is None else ())
    request = RestartRequest(chosen, by_rack=by is BatchGroup.RACK, max_batch=max_batch)
    planned = api.plan_restart(read.snapshot, policy, stop, request)
    document = source_options.addressed(restart_plan_document(planned))
    output.write(
        document, output_format, restart_plan_page(document), output.Rows(_BATCH_COLUMNS, _batch_rows(document))
    )
    raise exit_codes.finish(impossible=bool(planned.blocked or planned.partial), to_act_on=bool(planned.batches))


app.command("watch")(watch)

_STOP_COLUMNS = ("list", *SufferingDocument.__annotations__)
_BATCH_COLUMNS = (
    "batch",
    "brokers",
    "reason",
    "leaders_moved",
    "most_leaders",
    "most_bytes",
    "at_minimum",
    "waits_for",
)


def _stop_rows(document: StopDocument) -> Iterator[dict[str, Any]]:
    for name in LISTS:
        for partition in document[name]:
            yield {"list": name, **partition}


def _batch_rows(document: RestartPlanDocument) -> Iterator[dict[str, Any]]:
    for number, batch in enumerate(document["batches"], 1):
        yield {"batch": number, **batch}
