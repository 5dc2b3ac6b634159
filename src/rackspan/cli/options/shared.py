"""The options that commands share, each declared once."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Annotated, TypeAlias

import typer

from rackspan import api
from rackspan.api import Cluster, Source
from rackspan.audit import RackPolicy
from rackspan.cli.options import settings
from rackspan.errors import UsageError
from rackspan.model import INT32_MAX, INT64_MAX, ClusterSnapshot, UnrackedPolicy
from rackspan.placement import RandomGenerator
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.new_partitions import PlacerChoice
from rackspan.placement.spec_format import DEFAULT_PLACER

_READ, _JUDGE, _PLACE = "Reading a cluster", "Counting racks", "Placing replicas"


class Output(StrEnum):
    HUMAN = "human"
    JSON = "json"
    YAML = "yaml"


BootstrapServer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "--bootstrap-servers",
        envvar="RACKSPAN_BOOTSTRAP_SERVER",
        metavar="HOST:PORT[,…]",
        help="A running cluster.",
        rich_help_panel=_READ,
    ),
]
CommandConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        envvar="RACKSPAN_COMMAND_CONFIG",
        metavar="FILE",
        help="Client properties, as Kafka's own tools take them.",
        rich_help_panel=_READ,
    ),
]
Timeout: TypeAlias = Annotated[
    int,
    typer.Option(
        "--timeout",
        envvar="RACKSPAN_TIMEOUT",
        metavar="MS",
        help="The longest that reading the cluster may take, in milliseconds.",
        min=1,
        max=INT32_MAX,
        rich_help_panel=_READ,
    ),
]
SnapshotPath: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--snapshot",
        envvar="RACKSPAN_SNAPSHOT",
        metavar="FILE-OR-DIR",
        help="A snapshot instead of a cluster: a JSON file or a Parquet folder.",
        rich_help_panel=_READ,
    ),
]
RackLocatorClass: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--rack-locator-class",
        envvar="RACKSPAN_RACK_LOCATOR_CLASS",
        metavar="NAME|MODULE:CLASS",
        help="The source of racks, where it is not the brokers: properties, file, command, host-pattern, availability-zones, or a class of your own.",
        rich_help_panel=_READ,
    ),
]
RackLocatorProperties: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--rack-locator-properties",
        envvar="RACKSPAN_RACK_LOCATOR_PROPERTIES",
        metavar="KEY=VALUE[,…]",
        help="The configs of the rack locator.",
        rich_help_panel=_READ,
    ),
]
Unracked: TypeAlias = Annotated[
    UnrackedPolicy,
    typer.Option(
        "--unracked",
        envvar="RACKSPAN_UNRACKED",
        help="How brokers without broker.rack are counted.",
        rich_help_panel=_JUDGE,
    ),
]
MinInsyncRacks: TypeAlias = Annotated[
    int,
    typer.Option(
        "--min-insync-racks",
        envvar="RACKSPAN_MIN_INSYNC_RACKS",
        metavar="N",
        help="Racks that must hold a record that acks=all acknowledges, on a Kafka without min.insync.racks.",
        min=1,
        max=INT32_MAX,
        rich_help_panel=_JUDGE,
    ),
]
OutputFormat: TypeAlias = Annotated[
    Output,
    typer.Option("--output", "-o", envvar="RACKSPAN_OUTPUT", help="The format of standard output."),
]
Warehouse: TypeAlias = Annotated[
    Path,
    typer.Option("--warehouse", envvar="RACKSPAN_WAREHOUSE", metavar="DIR", help="The folder of snapshots and tables."),
]
Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Make the change. Without it, the change is only shown.")
]
TopicPattern: TypeAlias = Annotated[
    str | None, typer.Option("--topic", metavar="REGEX", help="Only topics whose whole name matches.")
]

Placer: TypeAlias = Annotated[
    str,
    typer.Option(
        "--placer",
        metavar="NAME|MODULE:CLASS",
        help="The placer: balanced, rack-alternated, striped, or a class of your own.",
        rich_help_panel=_PLACE,
    ),
]
PlacerConfig: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--placer-config",
        metavar="KEY=VALUE",
        help="A config of the placer; repeat it for each. Broker loads are always given.",
        rich_help_panel=_PLACE,
    ),
]
IgnoreRacks: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--ignore-racks",
        "--disable-rack-aware",
        help="Place as if no broker had a rack; required where only some brokers have one.",
        rich_help_panel=_PLACE,
    ),
]
Seed: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--seed",
        metavar="N",
        help="Seed of the random generator (java.util.Random), to repeat a placement.",
        min=-INT64_MAX - 1,
        max=INT64_MAX,
        rich_help_panel=_PLACE,
    ),
]

ExcludeBrokers: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--exclude-brokers",
        envvar="RACKSPAN_EXCLUDE_BROKERS",
        metavar="ID[,ID]",
        help="Brokers that get nothing new, beside those of rackspan.toml: retiring, or in maintenance.",
    ),
]
AllowFewerRacks: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--allow-fewer-racks",
        help="Exclude brokers even where replicas are then spread worse over racks.",
        rich_help_panel=_PLACE,
    ),
]

DEFAULT_TIMEOUT_MS = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLocatorOptions:
    """A rack locator, where racks do not come from the brokers."""

    rack_locator_class: RackLocatorClass = None
    rack_locator_properties: RackLocatorProperties = None

    def of(self, read_from: Source) -> Source:
        """The same source, with racks from the named locator if there is one. Errors: UsageError."""
        if self.rack_locator_class is not None:
            return api.located(read_from, self.rack_locator_class, self.rack_locator_properties or "")
        if self.rack_locator_properties is not None:
            raise UsageError("--rack-locator-properties: for no locator; name one with --rack-locator-class")
        return read_from


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """A running cluster."""

    bootstrap_server: BootstrapServer = None
    command_config: CommandConfig = None
    timeout: Timeout = DEFAULT_TIMEOUT_MS

    def cluster(self) -> Cluster:
        """Errors: UsageError where none is named."""
        if self.bootstrap_server is None:
            raise UsageError("no cluster named: give --bootstrap-server HOST:PORT")
        return Cluster(self.bootstrap_server, self.command_config, self.timeout / 1000)

    def source(self, *, sizes: bool = True) -> Source:
        """Without `sizes`, log sizes are not requested. Errors: UsageError where no cluster is named."""
        named = self.cluster()
        return api.live_cluster(named.bootstrap_servers, named.command_config, named.timeout_seconds, sizes=sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(ClusterOptions):
    """SOURCE: a running cluster, or a snapshot of one."""

    snapshot: SnapshotPath = None

    def source(self, *, sizes: bool = True) -> Source:
        """The one cluster or file that is meant. Errors: UsageError for none and for both."""
        if self.snapshot is None and self.bootstrap_server is None:
            raise UsageError("no cluster named: give --bootstrap-server HOST:PORT or --snapshot FILE")
        if self.snapshot is None:
            return ClusterOptions.source(self, sizes=sizes)
        if self.bootstrap_server is None:
            return api.snapshot_file(self.snapshot)
        raise UsageError("--bootstrap-server and --snapshot: name one of them")

    def cluster_to_change(self) -> Cluster:
        """The running cluster that --apply is for. Errors: UsageError where none is named."""
        if self.snapshot is not None:
            raise UsageError(
                "--apply: a snapshot cannot be changed; name the cluster with --bootstrap-server HOST:PORT"
            )
        if self.bootstrap_server is None:
            raise UsageError("--apply: no cluster named; give --bootstrap-server HOST:PORT")
        return self.cluster()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyOptions:
    """How racks are counted, and how many are required."""

    unracked: Unracked = UnrackedPolicy.SHARED
    min_insync_racks: MinInsyncRacks = 1

    def policy(self, excluded_brokers: frozenset[int] = frozenset()) -> RackPolicy:
        """The options, and rackspan.toml for single topics and controllers."""
        from_file = settings.load()
        return RackPolicy(
            unracked=self.unracked,
            min_insync_racks=self.min_insync_racks,
            topic_min_insync_racks=from_file.topic_min_insync_racks,
            controller_racks=from_file.controller_racks,
            excluded_brokers=excluded_brokers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionOptions:
    """Brokers that get nothing new."""

    exclude_brokers: ExcludeBrokers = None

    def excluded(self, snapshot: ClusterSnapshot) -> frozenset[int]:
        """Those of the option and of rackspan.toml. Errors: UsageError where the option names one that the cluster lacks."""
        known, named = _broker_ids(snapshot), ids("--exclude-brokers", self.exclude_brokers)
        for broker in sorted(named - known):
            raise UsageError(f"--exclude-brokers: the cluster has no broker {broker}; name one that it has")
        return named | (settings.load().excluded_brokers or frozenset()) & known

    def warnings(self, snapshot: ClusterSnapshot) -> list[str]:
        """A line for each broker that rackspan.toml excludes and the cluster lacks."""
        gone = sorted((settings.load().excluded_brokers or frozenset()) - _broker_ids(snapshot))
        return [f"{settings.FILE}: [brokers] excluded: the cluster has no broker {broker}" for broker in gone]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Whether and where the metrics of min.insync.racks are served."""

    metrics_listen: Annotated[
        str | None,
        typer.Option(
            "--metrics-listen",
            metavar="127.0.0.1:PORT",
            help="Serve the metrics of min.insync.racks to Prometheus here; port 0 for any free one.",
        ),
    ] = None
    metrics_partitions: Annotated[
        bool, typer.Option("--metrics-partitions", help="With --metrics-listen: a series for each partition too.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementOptions:
    """The placer and its configs."""

    placer: Placer = DEFAULT_PLACER
    placer_config: PlacerConfig = None
    ignore_racks: IgnoreRacks = False
    allow_fewer_racks: AllowFewerRacks = False
    seed: Seed = None

    def choice(self, excluded: frozenset[int]) -> PlacerChoice:
        exclusion = Exclusion(excluded, self.allow_fewer_racks)
        return PlacerChoice(self.placer, pairs("--placer-config", self.placer_config), self.ignore_racks, exclusion)

    def rng(self) -> Random | RandomGenerator:
        return Random() if self.seed is None else JavaRandom(self.seed)


def _broker_ids(snapshot: ClusterSnapshot) -> frozenset[int]:
    return frozenset(int(broker.id) for broker in snapshot.brokers)


def ids(flag: str, text: str | None) -> frozenset[int]:
    """Broker ids separated by commas; none where the option is absent. Errors: UsageError."""
    items = [] if text is None else [item.strip() for item in text.split(",")]
    for item in items:
        if not item.isascii() or not item.isdigit():
            raise UsageError(f"{flag} {text}: {item!r} is not a broker id; list ids such as 3,4")
    return frozenset(map(int, items))


def pairs(flag: str, items: Sequence[str] | None) -> dict[str, str]:
    """KEY=VALUE items; a value may hold commas and equals signs. Errors: UsageError."""
    found: dict[str, str] = {}
    for item in items or ():
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{flag} {item}: not of the form KEY=VALUE; correct it")
        if key.strip() in found:
            raise UsageError(f"{flag} {item}: {key.strip()} is given twice; leave one of them out")
        found[key.strip()] = value.strip()
    return found
