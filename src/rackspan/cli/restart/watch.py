"""rackspan restart watch."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rackspan import api
from rackspan.cli import exit_codes, options, output
from rackspan.cli.reassign.execution import DEFAULT_PATIENCE_SECONDS, EXECUTION, JournalPath, Patience, journal_beside
from rackspan.cli.reassign.progress import LINE_EVERY_SECONDS
from rackspan.cli.signals import stopped_by_signals
from rackspan.errors import UsageError
from rackspan.restart.execution.decision import AwaitBrokers, RestartFinished
from rackspan.restart.execution.json_format import RestartEventDocument, restart_event_document
from rackspan.restart.execution.plan_file import command_for
from rackspan.sources.source import Source
from rackspan.text import count_noun, noun_and_ids, utc_text

if TYPE_CHECKING:
    from rackspan.apply import RestartUpdate


@options.with_option_groups
def watch(
    cluster_options: options.ClusterOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.PolicyOptions,
    plan: Annotated[
        Path, typer.Option("--plan", metavar="FILE", help="What rackspan restart plan -o json has printed.")
    ],
    command: Annotated[
        str | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Restart each batch by this command of the shell; {brokers} in it stands for ids such as 1,4.",
            rich_help_panel=EXECUTION,
        ),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Run the command of --exec. Without it, the command is only shown.")
    ] = False,
    journal: JournalPath = None,
    patience: Patience = DEFAULT_PATIENCE_SECONDS,
    every: Annotated[float, options.interval("--every", "Seconds from one reading to the next.")] = 1.0,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Follow a rolling restart batch by batch, or carry it out with --exec; the same command resumes it.

    The next batch may stop once each broker of the one before is back, in every ISR that it was in, and restart safe says yes.
    """
    if apply and command is None:
        raise UsageError("--apply: for --exec; without it nothing is changed")
    batches = output.read_plan_file(plan, api.read_restart_plan, "plan of rackspan restart plan -o json")
    path, policy = journal or journal_beside(plan), policy_options.policy()
    # The log directories show topics that this user may not see: they are read before a batch may stop.
    source, light = (
        rack_options.of(guarded(cluster_options, cluster_options.source(sizes=sizes))) for sizes in (True, False)
    )
    report = _Report(output_format)
    if command is not None and not apply:
        read = source.read()
        output.warn_of(read)
        raise exit_codes.finish(
            to_act_on=_show(report, api.restart_step(read.snapshot, batches, path, policy), command)
        )
    pace = {"patience_seconds": patience, "every_seconds": every}
    if not batches.batches:
        output.note("the plan has no batch: nothing to restart")
        raise exit_codes.finish()
    last = None
    if command is None:
        last = report.follow(api.watch_restart(source, batches, path, policy, afterwards=light, **pace), drawn=True)
    else:
        with stopped_by_signals() as stop:
            cluster, ending = cluster_options.cluster(), stop.is_set
            updates = api.carry_out_restart(
                cluster, source, batches, path, command, policy, afterwards=light, stopping=ending, **pace
            )
            with closing(updates):
                last = report.follow(updates, drawn=False)
    raise exit_codes.finish(to_act_on=_is_left(last))


def _is_left(last: "RestartUpdate | None") -> bool:
    """Whether a run that ended is to be resumed; prints that."""
    if last is not None and isinstance(last.effect, RestartFinished):
        return False
    output.note("ended; run the same command again to resume")
    return True


def guarded(cluster_options: options.ClusterOptions, source: Source) -> Source:
    """The same source; with the values of min.insync.racks of the gateways if it is a running cluster."""
    return source if cluster_options.address is None else api.with_gateway_values(source, cluster_options.cluster())


def _show(report: "_Report", step: "RestartUpdate", command: str) -> bool:
    """Print what --apply would run, and why not now; returns whether anything is left to run."""
    batches = step.state.batches.batches
    for number, batch in list(enumerate(batches, 1))[step.state.done :]:
        report.write(
            {
                "event": "would-run",
                "batch": number,
                "batches": len(batches),
                "brokers": list(batch.brokers),
                "reason": command_for(command, batch.brokers),
                "as_of": None if step.snapshot.taken_at is None else utc_text(step.snapshot.taken_at),
            }
        )
    event = restart_event_document(step.effect, step.state, step.snapshot)
    if isinstance(step.effect, AwaitBrokers | RestartFinished) and event is not None:
        report.write(event)
    return step.state.done < len(batches)


class _Report:
    """Events on standard output, each at once; waits on standard error, drawn on a terminal, or lines that are not too many."""

    def __init__(self, output_format: options.Output, now: Callable[[], float] = time.monotonic) -> None:
        self._format, self._now, self._first = output_format, now, True
        self._waits_for, self._waits_since = "", 0.0

    def write(self, event: RestartEventDocument) -> None:
        output.write_line(event, self._format, _words(event), first=self._first)
        self._first = False

    def follow(self, updates: "Iterator[RestartUpdate]", *, drawn: bool) -> "RestartUpdate | None":
        """Report each update; returns the last one. `drawn`: nobody else writes to the terminal."""
        last = None
        with _bar() if drawn and output.stderr_console().is_terminal else nullcontext() as bar:
            for last in updates:
                event = restart_event_document(last.effect, last.state, last.snapshot)
                if event is None:
                    continue
                if bar is not None:
                    bar(event)
                if not isinstance(last.effect, AwaitBrokers):
                    self.write(event)
                elif self._is_due(last.effect.why):
                    if self._format is not options.Output.HUMAN:
                        self.write(event)
                    elif bar is None:
                        output.note(last.effect.why)
        return last

    def _is_due(self, why: str) -> bool:
        """Whether a wait is another one than before but for its numbers, or has lasted for LINE_EVERY_SECONDS."""
        what = re.sub(r"[\d,]+", "", why)
        if what == self._waits_for and self._now() - self._waits_since < LINE_EVERY_SECONDS:
            return False
        self._waits_for, self._waits_since = what, self._now()
        return True


_BAR_COLUMNS: Final = 12


@contextmanager
def _bar() -> Iterator[Callable[[RestartEventDocument], None]]:
    """A bar of the batches that are done, and what is waited for."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    # On a narrow terminal the words take more lines: cut, they would lack what is waited for.
    words = TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, overflow="fold"))
    columns = (BarColumn(bar_width=_BAR_COLUMNS), words, TimeElapsedColumn())
    with Progress(*columns, console=output.stderr_console(), transient=True, expand=True) as progress:
        task = progress.add_task("reading the cluster")

        def draw(event: RestartEventDocument) -> None:
            done = event["batch"] if event["event"] in ("batch-done", "done") else event["batch"] - 1
            progress.update(task, total=event["batches"], completed=done, description=_words(event))

        yield draw


def _words(event: RestartEventDocument) -> str:
    which = noun_and_ids("broker", event["brokers"]) if event["brokers"] else ""
    batch = f"batch {event['batch']} of {event['batches']}"
    match event["event"]:
        case "would-run":
            return f"{batch} ({which}): would run: {event['reason']}"
        case "may-stop":
            return f"{batch}: {which} may stop now"
        case "command":
            return f"{batch}: the command for {which} is started"
        case "stopped":
            return f"{batch}: {which} stopped"
        case "leaders-elected":
            return f"{batch}: preferred leaders of {event['reason']} elected"
        case "batch-done":
            return f"{batch}: done, {which} back in sync"
        case "done":
            return f"done: {count_noun(event['batches'], 'batch', plural='batches')}"
        case _:
            return event["reason"] or ""
