"""rackspan advise."""

from collections.abc import Sequence
from typing import Annotated, Final, NoReturn

import typer

from rackspan import api
from rackspan.advice.json_format import advice_document
from rackspan.api import Source
from rackspan.cli import exit_codes, options, output
from rackspan.cli.options.given import Level
from rackspan.cli.options.quantities import byte_count
from rackspan.cli.options.settings_table import WAREHOUSE
from rackspan.cli.traffic.advise_page import ADVICE_COLUMNS, advice_page
from rackspan.cli.traffic.flows import SECONDS
from rackspan.errors import UsageError
from rackspan.model.snapshot import ReadSnapshot

HOUR_SECONDS: Final = 3600.0


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
    of_traffic = {
        "--seconds": seconds,
        "--prices": prices,
        "--network": network or None,
        "--counters": counters or None,
        "--least": least,
    }
    given = [flag for flag, value in of_traffic.items() if value is not None]
    if stored is not None:
        _of_warehouse(stored, cluster_id, policy_options, given, output_format)
    if source_options.address is None and source_options.snapshot is not None and given:
        raise UsageError(f"{given[0]}: a snapshot has no traffic; name a running cluster with --bootstrap-server")
    priced = None if prices is None else options.read_file(prices, api.read_prices, "price file")
    ranges = options.networks(network)
    reading = None
    source = source_options.source()
    if source_options.address is not None:
        waited = SECONDS if seconds is None else seconds
        reading = api.measure_traffic(source_options.cluster(), waited, counters or (), of_brokers=False)
        measured = ReadSnapshot(reading.after.snapshot, ())
        source = Source(source.name, lambda: measured)
    read = rack_options.of(source).read()
    output.warn([*read.warnings, *policy_options.warnings(read.snapshot)])
    found = api.advise(
        read.snapshot,
        policy_options.policy(),
        None if reading is None else api.traffic(reading, read.snapshot, ranges),
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


def _counts(source_options: options.SourceOptions) -> bool:
    """Whether the warehouse is named at a higher level than a cluster or snapshot. Errors: UsageError for two flags."""
    level = source_options.given.level("warehouse")
    if level is source_options.level is Level.FLAG:
        raise UsageError("--warehouse: is read in place of a cluster or snapshot; name one of them")
    return level > source_options.level


def _of_warehouse(
    warehouse: str,
    cluster_id: str | None,
    policy_options: options.SurvivalOptions,
    given: Sequence[str],
    output_format: options.Output,
) -> NoReturn:
    if given:
        raise UsageError(f"{given[0]}: the tables of a warehouse are made already; see rackspan pipeline run")
    snapshot, found, hour = api.advise_stored(warehouse, policy_options.policy(), cluster_id)
    output.warn(policy_options.warnings(snapshot))
    document = advice_document(
        snapshot,
        [each.advice for each in found],
        seconds=None if hour is None else HOUR_SECONDS,
        currency=next((each.currency for each in found if each.currency), None),
        unread=snapshot.unread,
        seconds_at_risk=[each.seconds_at_risk for each in found],
    )
    output.write(document, output_format, advice_page(document), output.Rows(ADVICE_COLUMNS, document["advice"]))
    raise exit_codes.finish(impossible=bool(snapshot.unread), to_act_on=bool(found))
