"""rackspan cluster up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NotRequired, TypedDict

import typer
from msgspec import Meta

from rackspan.cli import options, output
from rackspan.cli.help import CommandGroup, HelpCommand
from rackspan.cli.signals import ended_by_signals
from rackspan.documents import Count
from rackspan.errors import UsageError
from rackspan.kafka_process import DEFAULT_VERSION

app = CommandGroup(help="A local cluster for development and tests.")


class StartedBroker(TypedDict):
    id: Count
    rack: str | None
    address: str


class StartedCluster(TypedDict):
    """A practice cluster that has started."""

    kind: Annotated[str, Meta(description="embedded, or kafka and its version.")]
    bootstrap_servers: str
    brokers: list[StartedBroker]
    metrics: NotRequired[Annotated[str, Meta(description="HOST:PORT, with --metrics-listen.")]]


@app.callback()
def _cluster() -> None:
    """Without a callback Typer turns a group of one command into that command."""


class _UpCommand(HelpCommand):
    """`--kafka` without a version takes the default one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        following = [*args[1:], "-"]
        words = [
            f"{word}={DEFAULT_VERSION}" if word == "--kafka" and after.startswith("-") else word
            for word, after in zip(args, following, strict=False)
        ]
        return super().parse_args(ctx, words)


@app.command(cls=_UpCommand)
@options.with_option_groups
def up(
    *,
    racks: Annotated[int, typer.Option("--racks", metavar="N", min=1, help="Racks, named r1, r2 …")] = 3,
    brokers: Annotated[
        int, typer.Option("--brokers", metavar="N", min=1, help="Brokers, distributed over the racks in turn.")
    ] = 6,
    kafka: Annotated[
        str | None,
        typer.Option(
            "--kafka",
            metavar="[VERSION]",
            help=f"Real Apache Kafka instead, of the version {DEFAULT_VERSION} or the one named; needs Java 17.",
        ),
    ] = None,
    metrics_options: options.MetricsOptions,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Start a cluster on loopback, print its addresses, and keep it running until Ctrl-C. For development and tests."""
    names = [f"r{index + 1}" for index in range(racks)]
    if kafka is None:
        cluster = _embedded(
            names, brokers, metrics_options.metrics_listen, partitions=metrics_options.metrics_partitions
        )
    elif metrics_options.metrics_listen is None:
        cluster = _real(names, brokers, kafka)
    else:
        raise UsageError("--metrics-listen: real Kafka has no min.insync.racks to report; leave out --kafka")
    with ended_by_signals(), cluster as found:
        _show(found, output_format)
        threading.Event().wait()


@contextmanager
def _embedded(
    racks: list[str], brokers: int, metrics_listen: str | None, *, partitions: bool
) -> Iterator[StartedCluster]:
    from rackspan.cluster import EmbeddedCluster

    with EmbeddedCluster(racks, brokers) as cluster:
        started: StartedCluster = {
            "kind": "embedded",
            "bootstrap_servers": cluster.bootstrap_servers,
            "brokers": [
                {"id": broker, "rack": cluster.rack(broker), "address": cluster.address(broker)}
                for broker in cluster.brokers
            ],
        }
        if metrics_listen is not None:
            started["metrics"] = cluster.serve_metrics(metrics_listen, partitions=partitions)
        output.note("An embedded cluster in memory, for development and tests: its data is lost when it stops.")
        yield started


@contextmanager
def _real(racks: list[str], brokers: int, version: str) -> Iterator[StartedCluster]:
    from rackspan.kafka_process import KafkaCluster

    cluster = KafkaCluster(racks, brokers, version=version, progress=output.note)
    try:
        cluster.start()
        output.note("Apache Kafka in processes of its own, for development and tests: its data is lost when it stops.")
        addresses = cluster.bootstrap_servers.split(",")
        rows: list[StartedBroker] = [
            {"id": broker.id, "rack": broker.rack, "address": address}
            for broker, address in zip(cluster.brokers, addresses, strict=True)
        ]
        yield {"kind": f"kafka {version}", "bootstrap_servers": cluster.bootstrap_servers, "brokers": rows}
    finally:
        cluster.close()


def _show(found: StartedCluster, output_format: options.Output) -> None:
    rows = [(broker["id"], broker["rack"], broker["address"]) for broker in found["brokers"]]
    servers = f"bootstrap.servers={found['bootstrap_servers']}"
    metrics = [f"metrics: http://{found['metrics']}/metrics"] if "metrics" in found else []
    table = output.table(("broker", "rack", "address"), rows)
    page = output.page(output.whole(servers), *map(output.whole, metrics), table)
    output.write(found, output_format, page, output.Rows(("id", "rack", "address"), found["brokers"]))
    # A reader at the other end of a pipe waits for it while we continue.
    output.flush()
    output.note("Ctrl-C ends it.")
