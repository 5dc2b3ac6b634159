"""rackspan advise, and the page that it prints: the first pieces of advice, each with its command; the count is last."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from rackspan import api
from rackspan.advice.advice import Concern
from rackspan.advice.json_format import AdvisedDocument, RankedAdviceDocument, advice_document
from rackspan.api import Source
from rackspan.cli import exit_codes, options, output
from rackspan.cli.options.given import Level
from rackspan.cli.options.quantities import byte_count
from rackspan.cli.options.settings_table import WAREHOUSE
from rackspan.cli.output import cluster_line, page, unread_lines, whole
from rackspan.cli.traffic.flows import SECONDS, watching
from rackspan.errors import UsageError
from rackspan.model.snapshot import ReadSnapshot
from rackspan.text import count_noun, human_bytes
from rackspan.traffic import Interval

HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _TrafficOptions:
    """How traffic is measured and priced, and what saving is worth a piece of advice."""

    seconds: Annotated[
        float | None,
        typer.Option("--seconds", min=1, max=options.SECONDS_MAX, help="How long to watch traffic; 60 by default."),
    ] = None
    prices: options.Prices = None
    network: options.Networks = None
    counters: options.Counters = None
    least: Annotated[
        str | None,
        typer.Option("--least", metavar="SIZE", help="Leave out what saves fewer bytes in 30 days; 10GiB by default."),
    ] = None

    def refuse_any(self, reason: str) -> None:
        """Errors: UsageError for the first of these options that is given."""
        flag = next((f"--{field.name}" for field in fields(self) if getattr(self, field.name) not in (None, [])), None)
        if flag is not None:
            raise UsageError(f"{flag}: {reason}")


@options.with_option_groups
def advise(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.SurvivalOptions,
    traffic_options: _TrafficOptions,
    warehouse: Annotated[
        str | None,
        WAREHOUSE.option("In place of SOURCE: the tables of a pipeline, without Spark."),
    ] = None,
    cluster_id: Annotated[
        str | None, typer.Option("--cluster-id", metavar="ID", help="The cluster of a warehouse that has several.")
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Rank what to do first: risks, then bytes that need not cross racks, each with its command.

    A snapshot has no traffic: of it only risks are known. A warehouse has savings of its last hour with readings.
    """
    stored = warehouse if _counts(source_options) else None
    if cluster_id is not None and stored is None:
        raise UsageError("--cluster-id: only a warehouse may have several clusters; give it with --warehouse")
    if stored is not None:
        traffic_options.refuse_any("the tables of a warehouse are made already; see rackspan pipeline run")
        document = _of_warehouse(stored, cluster_id, policy_options)
    else:
        document = source_options.addressed(_of_source(source_options, rack_options, policy_options, traffic_options))
    output.write(document, output_format, advice_page(document), output.Rows(ADVICE_COLUMNS, document["advice"]))
    raise exit_codes.finish(impossible=bool(document["summary"]["unread"]), to_act_on=bool(document["advice"]))


def _of_source(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.SurvivalOptions,
    traffic_options: _TrafficOptions,
) -> AdvisedDocument:
    prices, least = traffic_options.prices, traffic_options.least
    if source_options.address is None and source_options.snapshot is not None:
        traffic_options.refuse_any("a snapshot has no traffic; name a running cluster with --bootstrap-server")
    priced = None if prices is None else options.read_file(prices, api.read_prices, "price file")
    ranges = options.networks(traffic_options.network)
    source, reading = _measured(source_options, traffic_options.seconds or SECONDS, traffic_options.counters or ())
    read = rack_options.of(source).read()
    output.warn([*read.warnings, *policy_options.warnings(read.snapshot)])
    found = api.advise(
        read.snapshot,
        policy_options.policy(),
        None if reading is None else api.traffic(reading, read.snapshot, ranges),
        priced,
        None if least is None else byte_count(least),
    )
    return advice_document(
        read.snapshot,
        found,
        seconds=None if reading is None else reading.seconds,
        currency=None if priced is None else priced.currency,
        unread=read.snapshot.unread if reading is None else reading.unread,
        name=source_options.title,
    )


def _measured(
    source_options: options.SourceOptions, seconds: float, counters: Sequence[str]
) -> tuple[Source, Interval | None]:
    """Where the snapshot comes from, and the traffic of a running cluster. Its second reading is the snapshot."""
    source = source_options.source()
    if source_options.address is None:
        return source, None
    passed = api.measure_traffic(
        source_options.cluster(), seconds, counters, of_brokers=False, sleep=watching("--seconds")
    )
    measured = ReadSnapshot(passed.after.snapshot, ())
    return Source(source.name, lambda: measured), passed


def _counts(source_options: options.SourceOptions) -> bool:
    """Whether the warehouse is named at a higher level than a cluster or snapshot. Errors: UsageError for two flags."""
    level = source_options.given.level("warehouse")
    if level is source_options.level is Level.FLAG:
        raise UsageError("--warehouse: is read in place of a cluster or snapshot; name one of them")
    return level > source_options.level


def _of_warehouse(warehouse: str, cluster_id: str | None, policy_options: options.SurvivalOptions) -> AdvisedDocument:
    snapshot, found, hour, unread = api.advise_stored(warehouse, policy_options.policy(), cluster_id)
    output.warn(policy_options.warnings(snapshot))
    return advice_document(
        snapshot,
        [each.advice for each in found],
        seconds=None if hour is None else HOUR_SECONDS,
        hour=hour,
        currency=next((each.currency for each in found if each.currency), None),
        unread=unread,
        seconds_at_risk=[each.seconds_at_risk for each in found],
    )


ADVICE_SHOWN: Final = 10
"""-o json and csv have all."""

ADVICE_COLUMNS: Final = tuple(RankedAdviceDocument.__annotations__)

_STYLES: Final = {Concern.RISK: "bold red", Concern.WARNING: "yellow", Concern.MONEY: "cyan"}


def advice_page(document: AdvisedDocument) -> RenderableType:
    summary, advice = document["summary"], document["advice"]
    watched = "" if summary["seconds"] is None else f", traffic of {summary['seconds']:.1f} s"
    since = "" if summary["hour"] is None else f" from {summary['hour']}"
    left_out = len(advice) - ADVICE_SHOWN
    return page(
        cluster_line(
            summary["cluster_name"],
            summary["cluster_id"],
            f" at {summary['taken_at'] or 'an unknown time'}{watched}{since}: {count_noun(summary['topics'], 'topic', ',')}",
        ),
        *unread_lines(summary["unread"]),
        Text(),
        *[line for each in advice[:ADVICE_SHOWN] for line in _lines(each)],
        *([Text(f"and {left_out:,} more: -o json and csv list them", style="dim")] if left_out > 0 else []),
        Text(_verdict(document), style="bold"),
    )


def _lines(advice: RankedAdviceDocument) -> Iterator[RenderableType]:
    about = advice["group"] or advice["topic"]
    yield Text.assemble(
        f"{advice['rank']:>2}  ",
        (advice["concern"], _STYLES[Concern(advice["concern"])]),
        f"  {advice['kind']}{'' if about is None else f', {about}'}{_saved(advice)}",
    )
    yield Text(f"    {advice['reason']}")
    if advice["seconds_at_risk"]:
        yield Text(f"    at risk for {advice['seconds_at_risk']:,.0f} s of the last 30 days")
    yield whole(f"    {advice['command']}") if _is_command(advice["command"]) else Text(f"    {advice['command']}")
    if advice["cost"]:
        yield Text(f"    cost: {advice['cost']}", style="dim")
    if advice["undo"]:
        yield Text(f"    undo: {advice['undo']}", style="dim")
    if advice["assumption"]:
        yield Text(f"    assumes: {advice['assumption']}", style="dim")
    yield Text()


def _is_command(words: str) -> bool:
    return words.startswith(("rackspan ", "kafka-"))


def _saved(advice: RankedAdviceDocument) -> str:
    size, money = advice["bytes_a_month"], advice["money_a_month"]
    if size is None:
        return ""
    priced = "" if money is None else f", {money:,.2f} {advice['currency']} less"
    return f": {human_bytes(abs(size))} {'less' if size >= 0 else 'more'} across racks in 30 days{priced}"


def _verdict(document: AdvisedDocument) -> str:
    counts = document["summary"]["by_concern"]
    named = [
        count_noun(counts[concern], noun)
        for concern, noun in ((Concern.RISK, "risk"), (Concern.WARNING, "warning"), (Concern.MONEY, "saving"))
        if counts[concern]
    ]
    measured = "" if document["summary"]["seconds"] is not None else "; traffic was not measured"
    return f"{', '.join(named) if named else 'nothing to do'}{measured}"
