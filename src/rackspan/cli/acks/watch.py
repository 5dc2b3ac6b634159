"""rackspan acks watch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Final

from rackspan import api
from rackspan.acks import Watch
from rackspan.acks.json_format import ServedWatchDocument, WatchDocument, watch_document
from rackspan.cli import options, output
from rackspan.cli.pages.acks import watch_page
from rackspan.cli.signals import ended_by_signals
from rackspan.errors import UsageError


@options.with_option_groups
def watch(
    source_options: options.SourceOptions,
    rack_options: options.RackLocatorOptions,
    policy_options: options.SurvivalOptions,
    metrics_options: options.MetricsOptions,
    every: Annotated[float, options.interval("--every", "Seconds from one reading to the next.")] = 15.0,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Watch which partitions span too few racks, and what the loss of a rack would do, by metadata, until Ctrl-C.

    Prints what changes; a lost connection is reported once and tried again. Metadata shows when acks=all would be refused
    for lack of racks, not how often it was.
    """
    if source_options.snapshot == options.STANDARD_STREAM:
        raise UsageError("--snapshot -: standard input does not change; name a file or a cluster to watch")
    policy, source = policy_options.policy(), rack_options.of(source_options.source())
    # Topics that Kafka hides from this user are found by their logs only: those are not read with every reading.
    light = rack_options.of(source_options.source(sizes=False))
    watches = api.watch(source, policy, every, afterwards=light)
    with ended_by_signals():
        if metrics_options.metrics_listen is None:
            _report(watches, None, every, output_format)
            return
        listen, partitions = metrics_options.metrics_listen, metrics_options.metrics_partitions
        with _served(watches, listen, source_options.title, partitions=partitions) as served:
            _report(served.watches, served.address, every, output_format)


_COLUMNS: Final = (
    *("cluster_id", "under_min_rack_isr", "at_min_rack_isr", "leaderless"),
    *("any_rack_loss_survived", "not_survived"),
)


@dataclass(frozen=True, slots=True)
class _Served:
    """A watch whose latest reading the metrics server at `address` serves."""

    watches: Iterator[Watch]
    address: str


@contextmanager
def _served(watches: Iterator[Watch], listen: str, cluster_name: str | None, *, partitions: bool) -> Iterator[_Served]:
    """Served from the first reading on: a scrape before it would report a cluster that is down."""
    # Imported only here: other commands should not wait for the server.
    from rackspan.prometheus_metrics.families import watch_families
    from rackspan.prometheus_metrics.server import MetricsServer, listen_address

    listen_address(listen)  # Refused now, not after a reading.
    latest = next(watches)

    def recorded() -> Iterator[Watch]:
        nonlocal latest
        yield latest
        for latest in watches:
            yield latest

    with MetricsServer(
        listen, lambda: watch_families(latest, partitions=partitions, cluster_name=cluster_name)
    ) as server:
        yield _Served(recorded(), server.address)


def _report(watches: Iterable[Watch], address: str | None, every: float, output_format: options.Output) -> None:
    """Print each reading that differs from the one before."""
    printed: WatchDocument | None = None
    before = Watch()
    for now in watches:
        _report_connection(before, now, every)
        if now.latest is not None:
            document = watch_document(now.latest)
            if document != printed:
                printed = document
                served: ServedWatchDocument = {"metrics": address, **document}
                output.write(served, output_format, watch_page(document, address), output.Rows(_COLUMNS, [document]))
                # A reader at the other end of a pipe waits for it while we continue.
                output.flush()
        before = now


def _report_connection(before: Watch, now: Watch, every: float) -> None:
    if now.error is not None and before.error is None:
        output.warn([f"the cluster cannot be read: {now.error}; next try after {every:g} s"])
    elif before.error is not None and now.error is None:
        output.note("the cluster can be read again")
    noted = before.latest.partial if before.latest is not None else ()
    if now.latest is not None:
        output.warn(line for line in now.latest.partial if line not in noted)
