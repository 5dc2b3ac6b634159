"""rackspan cluster: a practice cluster, up until Ctrl-C, and its faults from other shells."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, TypeAlias, TypedDict

import typer
from msgspec import Meta

from rackspan.cli import options, output
from rackspan.cli.help import CommandGroup, HelpCommand
from rackspan.cli.signals import ended_by_signals
from rackspan.documents import Count
from rackspan.errors import UsageError
from rackspan.kafka_process import DEFAULT_VERSION

if TYPE_CHECKING:
    from rackspan.practice.control import ControlledCluster
    from rackspan.practice.control_file import ControlFile
    from rackspan.practice.faults import PracticeCluster

app = CommandGroup(help="A local cluster for development and tests.")


class StartedBroker(TypedDict):
    id: Count
    rack: str | None
    address: str


class StartedControl(TypedDict):
    """Where faults are injected over HTTP."""

    address: Annotated[str, Meta(description="HOST:PORT, on loopback.")]
    token: Annotated[str, Meta(description="For the header `Authorization: Bearer TOKEN` of every request.")]
    file: Annotated[str, Meta(description="A file that has both, for its owner alone. It is removed at the end.")]


class StartedCluster(TypedDict):
    """A practice cluster that has started."""

    kind: Annotated[str, Meta(description="embedded, or kafka and its version.")]
    bootstrap_servers: str
    brokers: list[StartedBroker]
    control: StartedControl
    metrics: NotRequired[Annotated[str, Meta(description="HOST:PORT, with --metrics-listen.")]]


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
    racks: Annotated[
        str, typer.Option("--racks", metavar="N|NAME,…", help="Racks: their number, for r1, r2 …, or their names.")
    ] = "3",
    brokers: Annotated[
        int, typer.Option("--brokers", metavar="N", min=1, help="Brokers, distributed over the racks in turn.")
    ] = 6,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A config of every broker; repeat it for each."),
    ] = None,
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
    """Start a cluster on loopback, print its addresses, and keep it running until Ctrl-C. For development and tests.

    Other shells and programs lose its racks and brokers: `rackspan cluster lose r1`, or HTTP at the address printed.
    """
    names, configs = _racks(racks, brokers), options.pairs("--config", config)
    if kafka is None:
        cluster = _embedded(names, brokers, configs, metrics_options)
    elif metrics_options.metrics_listen is None:
        cluster = _real(names, brokers, configs, kafka)
    else:
        raise UsageError("--metrics-listen: real Kafka has no min.insync.racks to report; leave out --kafka")
    kind = "embedded" if kafka is None else f"kafka {kafka}"
    with ended_by_signals(), cluster as (running, metrics), _controlled(running, kind) as control:
        started: StartedCluster = {
            "kind": kind,
            "bootstrap_servers": running.bootstrap_servers,
            "brokers": [
                {"id": broker, "rack": running.rack(broker), "address": running.address(broker)}
                for broker in running.brokers
            ],
            "control": control,
        }
        if metrics is not None:
            started["metrics"] = metrics
        _show(started, output_format)
        threading.Event().wait()  # unlimited: Ctrl-C ends it


def _racks(text: str, brokers: int) -> list[str]:
    """Errors: UsageError."""
    if text.isascii() and text.isdigit() and int(text) > 0:
        return [f"r{index + 1}" for index in range(int(text))]
    names = [name.strip() for name in text.split(",")]
    if not all(names) or text.lstrip("-").isdigit():
        raise UsageError(f"--racks {text}: expected a number from 1, or names such as a,b,c")
    if len(names) > brokers:
        raise UsageError(f"--racks {text}: rack {names[brokers]} gets none of {brokers} brokers; raise --brokers")
    return names


_Running: TypeAlias = tuple["PracticeCluster", str | None]
"""A cluster, and HOST:PORT of its metrics if they are served."""


@contextmanager
def _embedded(
    racks: list[str], brokers: int, config: dict[str, str], metrics_options: options.MetricsOptions
) -> Iterator[_Running]:
    from rackspan.cluster import EmbeddedCluster

    with EmbeddedCluster(racks, brokers, config=config) as cluster:
        listen, partitions = metrics_options.metrics_listen, metrics_options.metrics_partitions
        metrics = None if listen is None else cluster.serve_metrics(listen, partitions=partitions)
        output.note("An embedded cluster in memory, for development and tests: its data is lost when it stops.")
        yield cluster, metrics


@contextmanager
def _real(racks: list[str], brokers: int, config: dict[str, str], version: str) -> Iterator[_Running]:
    from rackspan.practice.kafka import PracticeKafka

    with PracticeKafka(
        racks, brokers, config=config, version=version, controllers=None, progress=output.note
    ) as cluster:
        output.note("Apache Kafka in processes of its own, for development and tests: its data is lost when it stops.")
        yield cluster, None


@contextmanager
def _controlled(cluster: "PracticeCluster", kind: str) -> Iterator[StartedControl]:
    from rackspan.practice.control import ControlServer
    from rackspan.practice.control_file import ControlFile, announced, control_folder

    with closing(ControlServer(cluster, kind)) as server:
        control = ControlFile(server.address, server.token, kind, cluster.bootstrap_servers)
        with announced(control, control_folder()) as file:
            yield {"address": server.address, "token": server.token, "file": str(file)}


def _show(found: StartedCluster, output_format: options.Output) -> None:
    rows = [(broker["id"], broker["rack"], broker["address"]) for broker in found["brokers"]]
    servers = f"bootstrap.servers={found['bootstrap_servers']}"
    control = f"control: http://{found['control']['address']}, with the token in {found['control']['file']}"
    metrics = [f"metrics: http://{found['metrics']}/metrics"] if "metrics" in found else []
    table = output.table(("broker", "rack", "address"), rows)
    page = output.page(output.whole(servers), output.whole(control), *map(output.whole, metrics), table)
    output.write(found, output_format, page, output.Rows(("id", "rack", "address"), found["brokers"]))
    # A reader at the other end of a pipe waits for it while we continue.
    output.flush()
    output.note("Ctrl-C ends it.")


# Faults of a cluster that is up.

Control: TypeAlias = Annotated[
    str | None,
    typer.Option("--control", metavar="HOST:PORT", help="The address that `cluster up` printed, if several are up."),
]
# One argument each, or a list with commas as `restart watch --exec` and `outage --lose` have it.
Racks: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="RACK", help="Racks by name: a b, or a,b.", show_default=False)
]
Brokers: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="BROKER", help="Brokers by id: 1 4, or 1,4.", show_default=False)
]


@app.command()
def lose(racks: Racks, control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN) -> None:
    """Lose racks of the practice cluster that is up: their brokers are killed, and fenced. `restore` is the inverse."""
    _inject("lose", {"racks": _rack_names(racks)}, control, output_format)


@app.command()
def restore(racks: Racks, control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN) -> None:
    """Restore lost racks of the practice cluster that is up: their brokers start again."""
    _inject("restore", {"racks": _rack_names(racks)}, control, output_format)


@app.command()
def kill(brokers: Brokers, control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN) -> None:
    """Kill brokers of the practice cluster that is up, without a shutdown. `restart` is the inverse."""
    _inject("kill", {"brokers": _broker_ids(brokers)}, control, output_format)


@app.command()
def restart(
    brokers: Brokers, control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN
) -> None:
    """Start brokers of the practice cluster that is up again; running ones are killed first."""
    _inject("restart", {"brokers": _broker_ids(brokers)}, control, output_format)


@app.command()
def pause(
    brokers: Brokers, control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN
) -> None:
    """Pause brokers of the practice cluster that is up: they accept connections and send nothing. `resume` is the inverse."""
    _inject("pause", {"brokers": _broker_ids(brokers)}, control, output_format)


@app.command()
def resume(
    brokers: Brokers, control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN
) -> None:
    """Resume paused brokers of the practice cluster that is up."""
    _inject("resume", {"brokers": _broker_ids(brokers)}, control, output_format)


@app.command()
def undo(control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN) -> None:
    """Undo every fault of the practice cluster that is up."""
    _inject("undo", {}, control, output_format)


@app.command()
def status(control: Control = None, output_format: options.OutputFormat = options.Output.HUMAN) -> None:
    """Show the brokers of the practice cluster that is up, and the faults that they have."""
    from rackspan.practice.control_client import read

    _show_states(read(_found(control)), output_format)


def _rack_names(words: list[str]) -> list[str]:
    """Errors: UsageError."""
    names = [name.strip() for word in words for name in word.split(",")]
    if not all(names):
        raise UsageError(f"RACK {' '.join(words)}: a name is empty; list racks such as a,b")
    return names


def _broker_ids(words: list[str]) -> list[int]:
    """Errors: UsageError."""
    return sorted({broker for word in words for broker in options.ids("BROKER", word)})


def _inject(fault: str, targets: Mapping[str, Any], control: str | None, output_format: options.Output) -> None:
    from rackspan.practice.control_client import send

    _show_states(send(_found(control), fault, targets), output_format)


def _found(control: str | None) -> "ControlFile":
    from rackspan.practice.control_file import control_folder, find_control

    return find_control(control_folder(), control)


def _show_states(cluster: "ControlledCluster", output_format: options.Output) -> None:
    rows = [
        (broker["id"], broker["rack"], broker["address"], ", ".join(broker["states"])) for broker in cluster["brokers"]
    ]
    table = output.table(("broker", "rack", "address", "state"), rows)
    listed = [{**broker, "states": " ".join(broker["states"])} for broker in cluster["brokers"]]
    output.write(cluster, output_format, output.page(table), output.Rows(("id", "rack", "address", "states"), listed))
