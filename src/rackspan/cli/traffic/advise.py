"""rackspan advise."""

from typing import Annotated

import typer

from rackspan import api
from rackspan.advice.json_format import advice_document
from rackspan.api import Source
from rackspan.cli import exit_codes, options, output
from rackspan.cli.options.quantities import byte_count
from rackspan.cli.traffic.advise_page import ADVICE_COLUMNS, advice_page
from rackspan.cli.traffic.flows import SECONDS
from rackspan.errors import UsageError
from rackspan.model.snapshot import ReadSnapshot


@options.with_option_groups
def advise(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.SurvivalOptions,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=1, help="How long to watch traffic; 60 by default.")
    ] = None,
    prices: options.Prices = None,
    network: options.Networks = None,
    counters: options.Counters = None,
    least: Annotated[
        str | None,
        typer.Option("--least", metavar="SIZE", help="Leave out what saves fewer bytes in 30 days; 10GiB by default."),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Rank what to do first: risks, then bytes that need not cross racks, each with its command.

    A snapshot has no traffic: of it only risks are known.
    """
    of_traffic = {
        "--seconds": seconds,
        "--prices": prices,
        "--network": network or None,
        "--counters": counters or None,
        "--least": least,
    }
    given = [flag for flag, value in of_traffic.items() if value is not None]
    if source_options.address is None and source_options.snapshot is not None and given:
        raise UsageError(f"{given[0]}: a snapshot has no traffic; name a running cluster with --bootstrap-server")
    priced = None if prices is None else options.read_file(prices, api.read_prices, "price file")
    ranges = options.networks(network)
    reading = None
    source = source_options.source()
    if source_options.address is not None:
        reading = api.measure_traffic(source_options.cluster(), SECONDS if seconds is None else seconds, counters or ())
        measured = ReadSnapshot(reading.after.snapshot, ())
        source = Source(source.name, lambda: measured)
    read = rack_options.of(source).read()
    output.warn([*read.warnings, *policy_options.warnings(read.snapshot)])
    found = api.advise(
        read.snapshot,
        policy_options.policy(),
        reading,
        ranges,
        priced,
        None if least is None else byte_count(least),
    )
    unread = read.snapshot.unread if reading is None else reading.unread
    document = advice_document(
        read.snapshot,
        found,
        seconds=None if reading is None else reading.seconds,
        currency=None if priced is None else priced.currency,
        unread=unread,
        name=source_options.title,
    )
    output.write(document, output_format, advice_page(document), output.Rows(ADVICE_COLUMNS, document["advice"]))
    raise exit_codes.finish(impossible=bool(unread), to_act_on=bool(found))
