"""rackspan acks watch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from rackspan import api
from rackspan.acks import Watch
from rackspan.acks.json_format import watch_document
from rackspan.cli import options, output
from rackspan.cli.pages.acks import watch_page
from rackspan.cli.signals import ended_by_signals


@options.with_groups
def watch(
    where: options.Where,
    racks: options.Racks,
    judging: options.Judging,
    metrics: options.Metrics,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="From one reading to the next.")
    ] = 15.0,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Watch which partitions span too few racks, by the cluster's metadata, until Ctrl-C.

    What changes is printed; a lost connection is told once and tried again. Metadata tells when acks=all would be refused
    for want of racks, not how often it was. Exits 0 when it is ended, 1 where the first reading fails.
    """
    policy, source = judging.policy(), racks.of(where.source())
    # Topics that Kafka hides from this user are known by their logs alone: looked for once, not with every reading.
    light = racks.of(where.source(sizes=False))
    with ended_by_signals(), _served(metrics.metrics_listen, partitions=metrics.metrics_partitions) as board:
        _tell(board.kept(api.watch(source, policy, every, afterwards=light)), board.address, every, output_format)


class _Board:
    """The last that is known, for whoever scrapes."""

    def __init__(self) -> None:
        self.watch = Watch()
        self.address: str | None = None

    def kept(self, watches: Iterable[Watch]) -> Iterator[Watch]:
        for self.watch in watches:
            yield self.watch


@contextmanager
def _served(listen: str | None, *, partitions: bool) -> Iterator[_Board]:
    board = _Board()
    if listen is None:
        yield board
        return
    # The server is imported where one is asked for: other verbs should not wait for it.
    from rackspan.prometheus_metrics import MetricsServer, watch_families

    with MetricsServer(listen, lambda: watch_families(board.watch, partitions=partitions)) as server:
        board.address = server.address
        yield board


def _tell(watches: Iterable[Watch], address: str | None, every: float, output_format: options.Output) -> None:
    """Each time something is another than it was."""
    told: dict[str, Any] | None = None
    before = Watch()
    for now in watches:
        _tell_of_connection(before, now, every)
        if now.seen is not None:
            document = watch_document(now.seen)
            if document != told:
                told = document
                output.write({"metrics": address, **document}, output_format, watch_page(document, address))
                # Whoever reads this through a pipe waits for it while we go on.
                output.flush()
        before = now


def _tell_of_connection(before: Watch, now: Watch, every: float) -> None:
    if now.error is not None and before.error is None:
        output.warn([f"the cluster is not seen: {now.error}; asked again every {every:g} s"])
    elif before.error is not None and now.error is None:
        output.note("the cluster is seen again")
    noted = before.seen.partial if before.seen is not None else ()
    if now.seen is not None:
        output.warn(line for line in now.seen.partial if line not in noted)
