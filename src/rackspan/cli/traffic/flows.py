"""rackspan traffic."""

from typing import Annotated, Final

import typer

from rackspan import api
from rackspan.api import Source
from rackspan.cli import exit_codes, options, output
from rackspan.cli.traffic.flows_page import FLOW_COLUMNS, traffic_page
from rackspan.model.snapshot import ReadSnapshot
from rackspan.traffic.json_format import traffic_document

SECONDS: Final = 60.0
"""Long against the time that one reading takes, and against the bursts of most producers."""


@options.with_option_groups
def traffic(
    running: options.ClusterOptions,
    rack_options: options.RackLocatorOptions,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="How long to watch: the time between the two readings.")
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
    reading = api.measure_traffic(running.cluster(), seconds, counters or ())
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
