"""rackspan pipeline collect, run, follow, rebuild, check, maintain, report, table, export."""

import dataclasses
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rackspan import api
from rackspan.api import Source
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.log_format import LogFormat
from rackspan.cli.options.settings_table import LOG_FORMAT, MASTER, REMOTE
from rackspan.cli.pages.pipeline import check_page
from rackspan.cli.signals import stopped_by_signals
from rackspan.errors import UsageError
from rackspan.text import count_noun, utc_text

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

    from rackspan.pipeline import Collected, RunReport
    from rackspan.pipeline.follow import FollowedBatch
    from rackspan.pipeline.judging.newest_losses import NewestLosses
    from rackspan.prometheus_metrics.server import Collect
    from rackspan.traffic import PriceFile

app = CommandGroup(
    name="pipeline",
    help="A series of snapshots, audited on Spark: tables and a report.",
)

Master = Annotated[str | None, MASTER.option()]
Remote = Annotated[str | None, REMOTE.option()]

Log = Annotated[LogFormat, LOG_FORMAT.option()]

Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Prices by path and side, for the table bill; every hour of it is made by them.",
    ),
]

TABLES: Final = (
    "partition_durability",
    "findings",
    "outage_impact",
    "drift",
    "traffic",
    "bill",
    "groups",
    "group_lag",
    "consumer_groups",
    "stream_groups",
    "client_findings",
    "advice",
    "durability_time",
    "refusals",
    "brokers",
    "topics",
    "partitions",
    "readings",
    "logs",
    "group_descriptions",
    "group_members",
    "committed_offsets",
    "gateway_counters",
    "broker_counters",
    "snapshots",
    "judged",
    "runs",
    "clusters",
)
"""The names of the pipeline's tables, repeated here: importing the pipeline would make every command wait for Arrow."""


@app.command()
@options.with_option_groups
def collect(
    *,
    warehouse: options.Warehouse,
    fleet_options: options.FleetOptions,
    every: Annotated[
        float | None,
        options.interval("--every", "Repeat every so many seconds, until Ctrl-C."),
    ] = None,
    period: Annotated[
        float | None,
        options.interval(
            "--period",
            "Without --every, how many seconds pass from one such command to the next, as a scheduler starts it: a snapshot says something for three of them.",
        ),
    ] = None,
    traffic_every: Annotated[
        float | None,
        options.interval(
            "--traffic-every",
            "Store offsets, sizes of logs, groups and counters of running clusters too, every so many seconds.",
            at_least=1,
        ),
    ] = None,
    counters: options.CountersOfBrokers = None,
    metrics_listen: Annotated[
        str | None,
        typer.Option(
            "--metrics-listen",
            metavar="HOST:PORT",
            help="With --every, serve Prometheus metrics here; port 0 for any free one.",
        ),
    ] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Store one snapshot of every source in the warehouse, each completely or not at all, each once."""
    if metrics_listen is not None and every is None:
        raise UsageError("--metrics-listen serves metrics of many rounds; add --every SECONDS")
    if period is not None and every is not None:
        raise UsageError("--period is that of a scheduler, and --every has one of its own; leave --period out")
    sources = fleet_options.sources()
    _refuse_traffic(sources, every, traffic_every, counters)
    output.begin_log(log_format)
    clusters = frozenset(source.name for source in sources)
    urls = counters or ()
    if every is None:
        raise exit_codes.finish(
            impossible=_report_collected(api.collect(sources, warehouse, traffic_every, urls, period), clusters) > 0
        )
    # Imported only here: other commands should not wait for it.
    from rackspan.pipeline.collect import CollectTotals, metric_families

    totals = CollectTotals(every)

    def counted(collected: "Collected") -> "Collected":
        totals.add(collected, time.time())
        return collected

    with _served(metrics_listen, lambda: metric_families(totals)):
        _report_collected(map(counted, api.collect_every(sources, warehouse, every, traffic_every, urls)), clusters)


def _refuse_traffic(
    sources: Sequence[Source], every: float | None, traffic_every: float | None, counters: Sequence[str] | None
) -> None:
    """Errors: UsageError where options for readings have no effect, or are of no cluster in particular."""
    running = sum(source.read_traffic is not None for source in sources)
    if traffic_every is None:
        if counters:
            raise UsageError("--counters are read with the offsets of a cluster; add --traffic-every SECONDS")
        return
    if not running:
        raise UsageError("--traffic-every reads running clusters, and snapshots have no offsets; leave it out")
    if every is not None and traffic_every < every:
        raise UsageError(
            f"--traffic-every {traffic_every:g}: a reading is stored with a snapshot, of which there is one every {every:g} s; "
            "give as much or more"
        )
    if counters and running > 1:
        raise UsageError("--counters are those of one cluster; collect each cluster by itself")


def _prices(file: Path | None) -> "PriceFile | None":
    return None if file is None else options.read_file(file, api.read_prices, "price file")


@app.command()
@options.with_option_groups
def run(
    warehouse: options.Warehouse,
    policy_options: options.SurvivalOptions,
    master: Master = None,
    remote: Remote = None,
    prices: Prices = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Bring every table up to date with what was collected. Snapshots that the tables have already are not judged again."""
    if master is not None and remote is not None:
        raise UsageError("--master and --remote both name a Spark; give one of them")
    output.begin_log(log_format)
    output.warn(policy_options.fleet_warnings())
    policy, price_file = policy_options.fleet_policy(), _prices(prices)
    with output.going_on("the run"):
        made = api.run_pipeline(warehouse, policy, master, remote, price_file)
    raise exit_codes.finish(impossible=_report_run(made, warehouse))


@app.command()
@options.with_option_groups
def rebuild(
    warehouse: options.Warehouse,
    policy_options: options.SurvivalOptions,
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="A derived table; every one, unless it is given.")
    ] = None,
    master: Master = None,
    remote: Remote = None,
    prices: Prices = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Make all rows of a derived table again from the snapshots, even if its files or its log are damaged or gone."""
    if master is not None and remote is not None:
        raise UsageError("--master and --remote both name a Spark; give one of them")
    output.begin_log(log_format)
    output.warn(policy_options.fleet_warnings())
    policy, price_file = policy_options.fleet_policy(), _prices(prices)
    with output.going_on("the rebuild"):
        made = api.rebuild_pipeline(warehouse, table, policy, master, remote, price_file)
    raise exit_codes.finish(impossible=_report_run(made, warehouse))


@app.command()
def check(
    warehouse: options.Warehouse,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole", help="Read every data file completely, judge every snapshot and make every hour again."
        ),
    ] = False,
    max_age: Annotated[
        float | None,
        typer.Option(
            "--max-age",
            metavar="MINUTES",
            min=0,
            max=options.DAYS_MAX * 24 * 60,
            help="A cluster without a snapshot for so long is a problem, and so is a snapshot that no run has judged for so long.",
        ),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Judge the warehouse: logs, files and rows, and how old each cluster's newest snapshot is. Changes nothing, needs no Spark."""
    with output.going_on("the check"):
        report = api.check_warehouse(
            warehouse, whole=whole, max_age=None if max_age is None else timedelta(minutes=max_age)
        )
    document = {"warehouse": warehouse, **dataclasses.asdict(report)}
    for cluster in document["clusters"]:
        cluster["newest"] = utc_text(cluster["newest"])
    columns = ("kind", "table", "cluster", "problem", "remedy", "name")
    output.write(document, output_format, check_page(document), output.Rows(columns, document["problems"]))
    raise exit_codes.finish(to_act_on=bool(report.problems))


@app.command()
@options.with_option_groups
def follow(
    *,
    warehouse: options.Warehouse,
    policy_options: options.SurvivalOptions,
    master: Master = None,
    every: Annotated[
        float,
        options.interval("--every", "Seconds from one look for snapshots to the next."),
    ] = 10.0,
    available_now: Annotated[bool, typer.Option("--available-now", help="Judge what is stored now, and end.")] = False,
    prices: Prices = None,
    metrics_listen: Annotated[
        str | None,
        typer.Option(
            "--metrics-listen",
            metavar="HOST:PORT",
            help="Serve Prometheus metrics here, such as 127.0.0.1:9404; port 0 for any free one.",
        ),
    ] = None,
    log_format: Log = LogFormat.TEXT,
) -> None:
    """Judge snapshots as they are stored, until Ctrl-C or SIGTERM. The tables get the rows that `run` would give them."""
    output.begin_log(log_format)
    output.warn(policy_options.fleet_warnings())
    left_out = 0
    policies, losses = policy_options.fleet_policy(), None
    if metrics_listen is not None:
        # Imported only here: other commands should not wait for it.
        from rackspan.pipeline.judging.newest_losses import NewestLosses

        titles = policy_options.given.settings.titles()
        losses = NewestLosses(policies, titles, lambda line: output.warn([line]))
    with stopped_by_signals() as stop, _batches_served(metrics_listen, losses) as record:

        def ended(batch: "FollowedBatch") -> None:
            nonlocal left_out
            record(batch)
            _report_batch(batch)
            left_out = _report_damage(batch.report, warehouse)

        api.follow_pipeline(
            warehouse,
            policies,
            ended,
            stop,
            master=master,
            every=every,
            available_now=available_now,
            prices=_prices(prices),
            losses=losses,
        )
    output.note("ended")
    raise exit_codes.finish(impossible=bool(left_out))


@app.command()
def maintain(
    warehouse: options.Warehouse,
    keep_days: Annotated[
        int | None,
        typer.Option(
            "--keep-days",
            metavar="DAYS",
            min=1,
            max=options.DAYS_MAX,
            help="Drop snapshots and rows of days before the last DAYS.",
        ),
    ] = None,
    vacuum_hours: Annotated[
        float,
        typer.Option(
            "--vacuum-hours",
            metavar="HOURS",
            min=1,
            max=options.DAYS_MAX * 24,
            help="Delete files that no version of the last HOURS has.",
        ),
    ] = 168.0,
    drop_damaged: Annotated[
        bool,
        typer.Option(
            "--drop-damaged",
            help="Give up the snapshots that damaged files hold rows of, as far as no other file has them. Requires a yes.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --drop-damaged: drop what is named at once.")] = False,
    undo_drop: Annotated[
        bool,
        typer.Option(
            "--undo-drop",
            help="Bring back what --drop-damaged has dropped, as far as its files are not deleted yet.",
        ),
    ] = False,
) -> None:
    """Join small files, delete unused ones, and drop old days on request. Needs no Spark; readers and collectors may go on."""
    if yes and not drop_damaged:
        raise UsageError("--yes: there is nothing to agree to; give it with --drop-damaged")
    if drop_damaged and undo_drop:
        raise UsageError("--drop-damaged would drop what --undo-drop brings back; give one of them")
    damaged = 0
    with output.going_on("maintain"):
        for done in api.maintain(
            warehouse,
            keep_days,
            vacuum_hours,
            give_up=output.note if drop_damaged else None,
            agree=None if yes else _confirm_drop,
            undo=output.note if undo_drop else None,
        ):
            damaged += len(done.damaged)
            output.warn([*done.repaired, *done.damaged])
            dropped = f"{count_noun(done.days_dropped, 'day', ',')} dropped, " if done.days_dropped else ""
            joined = f"{count_noun(done.joined, 'file', ',')} joined into {done.into:,}, {done.deleted:,} deleted"
            output.note(f"{done.name}: {dropped}{joined}")
    raise exit_codes.finish(impossible=damaged > 0)


def _confirm_drop() -> None:
    """Wait for a yes to what was named. Errors: UsageError without a yes."""
    if not (sys.stdin.isatty() and typer.confirm("Drop it?", err=True)):
        raise UsageError("nothing is dropped; add --yes to drop what is named above")


@app.command()
@options.with_option_groups
def report(
    warehouse: options.Warehouse,
    out: Annotated[Path, typer.Option("--out", metavar="FILE.html", help="The file to write.")],
    policy_options: options.SurvivalOptions,
) -> None:
    """Write one page from the tables: the summary, racks by topics, durability over time, findings. Needs no Spark."""
    output.warn(policy_options.fleet_warnings())
    left_out = _LeftOut()
    titles = policy_options.given.settings.titles()
    policy = policy_options.fleet_policy()
    with output.going_on("the report"):
        warnings = api.report(warehouse, policy, out, titles, left_out)
    output.warn(warnings)
    output.note_settings()
    output.note(f"{out}: written; it needs no network to be read")
    raise exit_codes.finish(impossible=left_out.files > 0)


@app.command()
def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"{', '.join(TABLES)}.")],
    warehouse: options.Warehouse,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=0, help="The most rows to print.")] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="The rows as of a time in ISO 8601, such as 2026-11-22T14:00:00Z."),
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="What is stored: rows that differ from those of the snapshot before.")
    ] = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Print a table's rows at each snapshot, in the order of its grain. Needs no Spark."""
    if at is not None and changes:
        raise UsageError("--at shows rows as of a time, --changes what is stored; give one of them")
    left_out = _LeftOut()
    timestamp = None if at is None else _timestamp(at)
    rows = api.table(warehouse, name, limit, left_out, changes=changes, at=timestamp)
    columns = api.table_columns(name, changes=changes)
    names = api.cluster_names(warehouse) if output_format is options.Output.HUMAN and name != "clusters" else {}

    def why_none() -> str:
        # What was left out has been named, and would be read once more for the reason.
        return "" if limit == 0 or left_out.files else api.why_no_rows(warehouse, name, timestamp)

    _write_rows(rows, columns, output_format, names, why_none)
    raise exit_codes.finish(impossible=left_out.files > 0)


def _timestamp(text: str) -> datetime:
    """A time with its offset. Errors: UsageError."""
    try:
        timestamp = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--at {text}: not a time in ISO 8601; write it as 2026-11-22T14:00:00Z") from None
    if timestamp.tzinfo is None:
        raise UsageError(f"--at {text}: the offset is missing; end it with Z for UTC")
    return timestamp


def _write_rows(
    rows: "Iterator[dict[str, Any]]",
    columns: Sequence[str],
    output_format: options.Output,
    names: Mapping[str, str],
    why_none: Callable[[], str],
) -> None:
    """The rows of a table. On a page clusters are shown by their names, those that have none by their ids."""
    if output_format is options.Output.JSON:
        output.write_json_array(rows)
        return
    if output_format is options.Output.CSV:
        # Row by row: a table may be larger than memory.
        output.write([], output_format, "", output.Rows(columns, rows))
        return
    listed = list(rows)
    named = ([_cell(_named(row[name], name, names)) for name in columns] for row in listed)
    page = output.page(output.table(columns, named))
    if not listed and (reason := why_none()):
        page = output.page(page, reason)
    output.write(listed, output_format, page, output.Rows(columns, listed))


def _named(value: Any, column: str, names: Mapping[str, str]) -> Any:
    return names.get(value, value) if column == "cluster_id" else value


@app.command()
def export(
    warehouse: options.Warehouse,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write NAME.parquet to.")],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="All tables, unless some are named.")
    ] = None,
) -> None:
    """Write tables of the newest run as plain Parquet files, one a table. Needs no Spark."""
    left_out = _LeftOut()
    for table in api.export_tables(warehouse, names or [], out, left_out):
        output.note(f"{table.file}: written, {count_noun(table.rows, 'row', ',')}")
    raise exit_codes.finish(impossible=left_out.files > 0)


class _LeftOut:
    """Prints a warning for each damaged file that a reader leaves out, and counts them."""

    def __init__(self) -> None:
        self.files = 0

    def __call__(self, line: str) -> None:
        self.files += 1
        output.warn([line])


@contextmanager
def _batches_served(listen: str | None, losses: "NewestLosses | None") -> "Iterator[Callable[[FollowedBatch], None]]":
    """A function that counts a batch for the metrics, which are served during the block where an address is given."""
    # Imported only here: other commands should not wait for them.
    from rackspan.pipeline.follow import FollowTotals, metric_families
    from rackspan.prometheus_metrics.rack_losses import rack_loss_families

    totals = FollowTotals()

    def count(batch: "FollowedBatch") -> None:
        totals.add(batch)
        if losses is not None:
            losses.add(batch.report.judged)

    def families() -> "Iterator[Family]":
        yield from metric_families(totals)
        if losses is not None:
            yield from rack_loss_families(losses.at(datetime.now(UTC)))

    with _served(listen, families):
        yield count


@contextmanager
def _served(listen: str | None, collect: "Collect") -> Iterator[None]:
    """Serve metrics during the block where an address is given."""
    if listen is None:
        yield
        return
    from rackspan.prometheus_metrics.server import MetricsServer

    with MetricsServer(listen, collect) as server:
        output.note(f"metrics at http://{server.address}/metrics")
        yield


def _report_batch(batch: "FollowedBatch") -> None:
    output.note_settings()
    made = batch.report
    if made.run is None:
        output.note(f"batch {batch.number}: nothing new")
        return
    again = f", {made.remade:,} judged again because of {made.reason}" if made.reason else ""
    corrected = f", {made.corrected:,} compared again" if made.corrected else ""
    behind = "" if batch.behind_seconds is None else f", {batch.behind_seconds:.1f} s behind the newest"
    output.note(
        f"batch {batch.number}, run {made.run}: {count_noun(made.snapshots, 'snapshot', ',')} judged{again}{corrected}; "
        f"{count_noun(sum(made.rows.values()), 'row', ',')} written, {made.seconds:.1f} s{behind}"
    )


def _report_run(made: "RunReport", warehouse: str) -> bool:
    """Print the lines of a run. Returns whether something is left out or lost."""
    output.note_settings()
    again = f", {made.remade:,} judged again because of {made.reason}" if made.reason else ""
    output.note(
        f"{count_noun(made.snapshots, 'snapshot', ',')} judged{again}, {made.up_to_date:,} up to date; {count_noun(sum(made.rows.values()), 'row', ',')} written, "
        f"{made.seconds:.1f} s"
    )
    return bool(_report_damage(made, warehouse)) or bool(made.repair.lost)


def _report_damage(made: "RunReport", warehouse: str) -> int:
    """Print what a run repaired, and what it left out, briefly where the run before did so too. Returns how many are left out."""
    output.warn(made.repair.lines)
    for line in made.repair.lost:
        output.fail(line)
    left_out = made.quarantined
    if left_out:
        named = "" if made.run is None else "".join(f"; {table}: {why}" for table, why in list(left_out.items())[:3])
        output.fail(
            f"{count_noun(len(left_out), 'snapshot', ',')} left out, because data files are damaged{named}; "
            f"rackspan pipeline check --warehouse {warehouse} shows what to do"
        )
    return len(left_out)


def _report_collected(collected: "Iterable[Collected]", clusters: Collection[str]) -> int:
    """Print a line for each source, which begins with its name if it is one of `clusters`, and not the warehouse; returns how many failed."""
    failed = 0
    for snapshot in collected:
        cluster = snapshot.source if snapshot.source in clusters else None
        output.warn(snapshot.warnings, cluster)
        if snapshot.error is not None:
            failed += 1
            output.fail(str(snapshot.error).removeprefix(f"{cluster}: "), cluster)
        elif snapshot.stored is not None:
            kept = "stored as" if snapshot.stored.new else "stored already as"
            output.note(f"{kept} {snapshot.stored.snapshot_id} in {snapshot.stored.warehouse}", cluster)
    return failed


def _cell(value: object) -> object:
    if isinstance(value, dict):
        return ":".join(map(str, value.values()))
    return ",".join(str(_cell(item)) for item in value) if isinstance(value, list) else value
