"""rackspan traffic, and the page that it prints: what crosses racks by path, by whom, and the bill; the sum is last."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Final

import typer
from rich.console import RenderableType
from rich.text import Text

from rackspan import api
from rackspan.api import Source
from rackspan.cli import exit_codes, options, output
from rackspan.cli.output import cluster_line, page, table, unread_lines
from rackspan.model.snapshot import ReadSnapshot
from rackspan.text import count_noun, human_bytes
from rackspan.traffic.json_format import BillDocument, FlowDocument, PathDocument, TrafficDocument, traffic_document

SECONDS: Final = 60.0
"""Long against the time that one reading takes, and against the bursts of most producers."""


@options.with_option_groups
def traffic(
    running: options.ClusterOptions,
    rack_options: options.RackLocatorOptions,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", min=1, max=options.SECONDS_MAX, help="How long to watch: the time between the two readings."
        ),
    ] = SECONDS,
    prices: options.Prices = None,
    network: options.Networks = None,
    counters: options.CountersOfBrokers = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Show which bytes cross racks, by path, topic and group, and what they cost a month.

    It reads offsets and log sizes twice, and groups. Kafka reports no producer's rack, and no group's bytes; gateways do, with
    --counters. Each row has its basis and its assumption.
    """
    priced = None if prices is None else options.read_file(prices, api.read_prices, "price file")
    ranges = options.networks(network)
    reading = api.measure_traffic(running.cluster(), seconds, counters or (), sleep=watching("--seconds"))
    read = rack_options.of(Source(str(running.address), lambda: ReadSnapshot(reading.after.snapshot, ()))).read()
    passed = api.traffic(reading, read.snapshot, ranges)
    document = traffic_document(
        read.snapshot,
        passed.flows,
        passed.seconds,
        groups=len(passed.reads),
        unread=passed.unread,
        prices=priced,
        name=running.title,
    )
    output.write(document, output_format, traffic_page(document), output.Rows(FLOW_COLUMNS, document["flows"]))
    raise exit_codes.finish(impossible=bool(passed.unread))


def watching(flag: str) -> Callable[[float], None]:
    """A sleep between two readings that prints first for how long, and the flag that changes it."""

    def sleep(seconds: float) -> None:
        output.note(f"watching for {seconds:g} s; {flag} changes it")
        time.sleep(seconds)

    return sleep


FLOWS_SHOWN: Final = 15
"""Of those that cross racks, the largest; -o json and csv have every one."""

FLOW_COLUMNS: Final = tuple(FlowDocument.__annotations__)


def traffic_page(document: TrafficDocument) -> RenderableType:
    summary = document["summary"]
    return page(
        cluster_line(
            summary["cluster_name"],
            summary["cluster_id"],
            f", {summary['seconds']:.1f} s: {count_noun(summary['topics'], 'topic', ',')}, {count_noun(summary['groups'], 'group', ',')}",
        ),
        *unread_lines(summary["unread"]),
        Text(),
        *_paths(document["paths"], summary["seconds"]),
        *_flows(document["flows"], summary["seconds"]),
        *([] if document["bill"] is None else _bill(document["bill"])),
        *_assumptions(document["flows"]),
        Text(_verdict(document), style="bold"),
    )


def rate(size_bytes: int, seconds: float) -> str:
    size = round(size_bytes / seconds)
    return f"{human_bytes(size)}/s" if size else "0"


def _paths(paths: Sequence[PathDocument], seconds: float) -> Iterator[RenderableType]:
    if not paths:
        return
    yield table(
        ("path", "bytes", "across racks", "of it estimated", "flows not known"),
        [
            (
                path["path"],
                rate(path["bytes"], seconds),
                rate(path["cross_rack_bytes"], seconds),
                rate(path["estimated_cross_rack_bytes"], seconds),
                path["unknown_flows"],
            )
            for path in paths
        ],
    )
    yield Text()


def _flows(flows: Sequence[FlowDocument], seconds: float) -> Iterator[RenderableType]:
    """By path, topic and group: a row for each pair of racks is too much to read."""
    across = Counter[tuple[str, str, str, str]]()
    for flow in flows:
        if flow["crosses_racks"] and flow["bytes"]:
            across[flow["path"], flow["topic"], flow["group"] or "", flow["basis"]] += flow["bytes"]
    if not across:
        return
    yield table(
        ("topic", "path", "group", "across racks", "basis"),
        [
            (topic, path, group, rate(size, seconds), basis)
            for (path, topic, group, basis), size in across.most_common(FLOWS_SHOWN)
        ],
    )
    if len(across) > FLOWS_SHOWN:
        yield Text(f"and {len(across) - FLOWS_SHOWN:,} more: -o json and csv list them", style="dim")
    yield Text()


def _bill(bill: BillDocument) -> Iterator[RenderableType]:
    by_path: dict[str, float] = {}
    for row in bill["rows"]:
        by_path[row["path"]] = by_path.get(row["path"], 0) + (row["money_a_month"] or 0)
    if by_path:
        yield table(
            ("path", f"{bill['currency']} in {bill['month_days']} days"),
            [(path, f"{by_path[path]:,.2f}") for path in sorted(by_path, key=by_path.__getitem__, reverse=True)],
        )
        yield Text()
    for reason in dict.fromkeys(row["reason"] for row in bill["unpriced"]):
        count = sum(row["reason"] == reason for row in bill["unpriced"])
        yield Text(f"not in the bill: {count_noun(count, 'row')}: {reason}", style="yellow")
    for price in bill["prices"]:
        if price["read_on"] is None:
            yield Text(f"price not compared with its source: {price['source']}", style="yellow")


def _assumptions(flows: Sequence[FlowDocument]) -> Iterator[RenderableType]:
    assumed: dict[tuple[str, str], set[str]] = {}
    for flow in flows:
        if flow["crosses_racks"] is not False:
            assumed.setdefault((flow["basis"], flow["assumption"]), set()).add(flow["path"])
    for (basis, assumption), paths in sorted(assumed.items()):
        yield Text(f"{', '.join(sorted(paths))} {basis}: {assumption}", style="dim")
    if assumed:
        yield Text()


def _verdict(document: TrafficDocument) -> str:
    seconds, bill = document["summary"]["seconds"], document["bill"]
    across = sum(path["cross_rack_bytes"] for path in document["paths"])
    every = sum(path["bytes"] for path in document["paths"])
    if not every:
        return "no bytes passed that are known"
    words = f"{rate(across, seconds)} across racks, {across / every:.0%} of what passed"
    unknown = sum(path["unknown_flows"] for path in document["paths"])
    if unknown:
        words += f"; {count_noun(unknown, 'flow', ',')} not known"
    if bill is None:
        return words
    unpriced = f", without {count_noun(len(bill['unpriced']), 'row')} of unknown price" if bill["unpriced"] else ""
    return (
        f"{words}; {bill['money_a_month']:,.2f} {bill['currency']} in {bill['month_days']} days at this rate{unpriced}"
    )
