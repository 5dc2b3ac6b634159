"""The options that commands share, each declared once."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from rackspan import api
from rackspan.api import Cluster, Source
from rackspan.audit.findings import DocumentT, at_address
from rackspan.audit.policy import Survive
from rackspan.cli.options import settings_table
from rackspan.cli.options.given import Given, Level
from rackspan.cli.options.input_files import STANDARD_STREAM, standard_input
from rackspan.cli.options.settings import FILE, Settings
from rackspan.errors import UsageError
from rackspan.model import INT64_MAX, ClusterSnapshot, UnrackedPolicy
from rackspan.model.client_networks import ClientNetworks
from rackspan.text import count_noun, nearest

if TYPE_CHECKING:
    # Most commands have these options' module, and place nothing.
    from rackspan.placement import RandomGenerator
    from rackspan.placement.new_partitions import PlacerChoice

DAYS_MAX: Final = 36_500
"""A century: Python's clocks and times reach further, but not without end."""
SECONDS_MAX: Final = DAYS_MAX * 86_400


def interval(flag: str, meaning: str, at_least: float = 0.1) -> Any:
    """The option of how many seconds lie between two rounds of a command that repeats them."""
    return typer.Option(flag, metavar="SECONDS", min=at_least, max=SECONDS_MAX, help=meaning)


_PLACE = "Placing replicas"


class Output(StrEnum):
    HUMAN = "human"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class AuditOutput(StrEnum):
    """Those of Output, and a page for a browser."""

    HUMAN = "human"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    HTML = "html"


def _choose_cluster(context: typer.Context, name: str | None) -> str | None:
    """Give the options of [clusters.NAME] to the rest of the command line. Errors: UsageError for an unknown name."""
    if name is not None:
        chosen = (context.obj or Settings()).for_cluster(name)
        context.obj = chosen
        own = {key.replace("-", "_"): value for key, value in chosen.options(chosen.cluster_sections).items()}
        # Not as --bootstrap-server: that flag names another cluster.
        own.pop("bootstrap_server")
        context.default_map = {**(context.default_map or {}), **own}
    return name


ClusterName: TypeAlias = Annotated[str | None, settings_table.CLUSTER.option(is_eager=True, callback=_choose_cluster)]
BootstrapServer: TypeAlias = Annotated[str | None, settings_table.BOOTSTRAP_SERVER.option()]
CommandConfig: TypeAlias = Annotated[Path | None, settings_table.COMMAND_CONFIG.option()]
Timeout: TypeAlias = Annotated[int, settings_table.TIMEOUT.option()]
SnapshotPath: TypeAlias = Annotated[Path | None, settings_table.SNAPSHOT.option()]
RackLocatorClass: TypeAlias = Annotated[str | None, settings_table.RACK_LOCATOR_CLASS.option()]
RackLocatorProperties: TypeAlias = Annotated[str | None, settings_table.RACK_LOCATOR_PROPERTIES.option()]
Unracked: TypeAlias = Annotated[UnrackedPolicy, settings_table.UNRACKED.option()]
MinInsyncRacks: TypeAlias = Annotated[int, settings_table.MIN_INSYNC_RACKS.option()]
Survives: TypeAlias = Annotated[Survive, settings_table.SURVIVE.option()]
RequireControllers: TypeAlias = Annotated[bool, settings_table.REQUIRE_CONTROLLERS.option()]
OutputFormat: TypeAlias = Annotated[Output, settings_table.OUTPUT.option()]
AuditFormat: TypeAlias = Annotated[AuditOutput, settings_table.OUTPUT.option()]
Warehouse: TypeAlias = Annotated[str, settings_table.WAREHOUSE.option()]
Apply: TypeAlias = Annotated[
    bool, typer.Option("--apply", help="Make the change. Without it, the change is only shown.")
]
TopicPattern: TypeAlias = Annotated[
    str | None, typer.Option("--topic", metavar="REGEX", help="Only topics whose whole name matches.")
]

Networks: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--network",
        metavar="CIDR=RACK",
        help="Clients with these addresses are in that rack, whatever they declare; once for each range.",
    ),
]

Counters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--counters",
        metavar="URL",
        help="Metrics of a gateway that clients go through, to judge by the bytes that pass; once for each gateway and worker.",
    ),
]

CountersOfBrokers: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--counters",
        metavar="URL",
        help="Metrics of a gateway that clients go through, or of a broker's JMX exporter (also ID=URL), to judge by the bytes that pass; once for each.",
    ),
]

Prices: TypeAlias = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="Prices by path and side, for a bill of a month at this rate."),
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
        help="Place as if no broker had a rack, whatever a rack locator returns; required where only some brokers have one.",
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

ExcludeBrokers: TypeAlias = Annotated[str | None, settings_table.EXCLUDE_BROKERS.option()]
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

    cluster_name: ClusterName = None
    bootstrap_server: BootstrapServer = None
    command_config: CommandConfig = None
    timeout: Timeout = DEFAULT_TIMEOUT_MS
    given: Given = field(default_factory=Given)

    @property
    def address(self) -> str | None:
        """The bootstrap servers of the cluster that is named; None for none and for a snapshot. Errors: UsageError for two."""
        match self._named_by():
            case "cluster_name":
                return cluster_address(self.given.settings)
            case "bootstrap_server":
                return self.bootstrap_server
            case _:
                return None

    def cluster(self) -> Cluster:
        """Errors: UsageError where none is named."""
        if self.address is None:
            raise UsageError("no cluster named: give --bootstrap-server HOST:PORT or --cluster NAME")
        return Cluster(self.address, self.command_config, self.timeout / 1000)

    def source(self, *, sizes: bool = True) -> Source:
        """Without `sizes`, log sizes are not requested. Errors: UsageError where no cluster is named."""
        named = self.cluster()
        return api.live_cluster(
            named.bootstrap_servers, named.command_config, named.timeout_seconds, sizes=sizes, name=self.title
        )

    @property
    def title(self) -> str | None:
        """The name to show of the cluster that --cluster names; None where it is named in another way."""
        return self.given.settings.title if self._named_by() == "cluster_name" else None

    def addressed(self, document: DocumentT) -> DocumentT:
        """The document with the cluster's address and client properties in the commands of Kafka's tools, if they are known."""
        return at_address(document, self.address, self.client_properties)

    @property
    def client_properties(self) -> str | None:
        """The file of --command-config."""
        return None if self.command_config is None else str(self.command_config)

    @property
    def level(self) -> Level:
        """The level of the option that names the cluster or a snapshot; the default's if none does."""
        return max(map(self.given.level, self._named), default=Level.DEFAULT)

    @property
    def _named(self) -> list[str]:
        return [name for name in _SOURCES if getattr(self, name, None) is not None]

    def _named_by(self) -> str | None:
        """The option that names the cluster: the one of the highest level. Errors: UsageError for two of one level."""
        counting = [name for name in self._named if self.given.level(name) is self.level]
        if len(counting) > 1:
            raise UsageError(f"{' and '.join(_SOURCES[name] for name in counting)}: name one of them")
        return counting[0] if counting else None


_SOURCES = {"cluster_name": "--cluster", "bootstrap_server": "--bootstrap-server", "snapshot": "--snapshot"}
"""The options that name a cluster or a snapshot, by parameter."""


def snapshot_source(path: Path) -> Source:
    """The snapshot of a file, or of standard input for `-`."""
    return api.snapshot_text(standard_input(), "standard input") if path == STANDARD_STREAM else api.snapshot_file(path)


def cluster_address(chosen: Settings) -> str:
    """The bootstrap servers of the chosen cluster, which every [clusters.NAME] has."""
    return str(chosen.options(chosen.cluster_sections)["bootstrap-server"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(ClusterOptions):
    """SOURCE: a running cluster, or a snapshot of one."""

    snapshot: SnapshotPath = None

    def source(self, *, sizes: bool = True) -> Source:
        """The one cluster or file that is meant. Errors: UsageError for none and for both."""
        named = self._named_by()
        if named is None:
            raise UsageError("no cluster named: give --bootstrap-server HOST:PORT, --cluster NAME or --snapshot FILE")
        if named != "snapshot" or self.snapshot is None:
            return ClusterOptions.source(self, sizes=sizes)
        for name, flag in (("command_config", "--command-config"), ("timeout", "--timeout")):
            if self.given.by_flag(name):
                raise UsageError(f"{flag}: a snapshot is read without a connection; leave it out")
        return snapshot_source(self.snapshot)

    def cluster_to_change(self) -> Cluster:
        """The running cluster that --apply is for. Errors: UsageError where none is named."""
        if self._named_by() == "snapshot":
            raise UsageError(
                "--apply: a snapshot cannot be changed; name the cluster with --bootstrap-server HOST:PORT or --cluster NAME"
            )
        if self.address is None:
            raise UsageError("--apply: no cluster named; give --bootstrap-server HOST:PORT or --cluster NAME")
        return self.cluster()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionOptions:
    """Brokers that get nothing new."""

    exclude_brokers: ExcludeBrokers = None
    given: Given = field(default_factory=Given)

    def excluded(self, snapshot: ClusterSnapshot) -> frozenset[int]:
        """Those of the option and of rackspan.toml, and cordoned ones. Errors: UsageError where the option names one that the cluster lacks."""
        known, named = _broker_ids(snapshot), ids("--exclude-brokers", self.exclude_brokers)
        for broker in sorted(named - known):
            raise UsageError(f"--exclude-brokers: the cluster has no broker {broker}; name one that it has")
        return named | self._in_file & known | {int(broker.id) for broker in snapshot.brokers if broker.cordoned}

    def warnings(self, snapshot: ClusterSnapshot) -> list[str]:
        """A line for each broker that rackspan.toml excludes and the cluster lacks, and for each that is cordoned."""
        gone = sorted(self._in_file - _broker_ids(snapshot))
        return [
            *(f"{FILE}: [brokers] excluded: the cluster has no broker {broker}" for broker in gone),
            *(
                f"broker {broker.id}: all of its log directories are cordoned, so it is excluded; "
                "clear its config cordoned.log.dirs to place replicas on it"
                for broker in snapshot.brokers
                if broker.cordoned
            ),
        ]

    @property
    def _in_file(self) -> frozenset[int]:
        return self.given.settings.excluded_brokers


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """Whether and where the metrics of min.insync.racks are served."""

    metrics_listen: Annotated[
        str | None,
        typer.Option(
            "--metrics-listen",
            metavar="HOST:PORT",
            help="Serve the metrics of min.insync.racks to Prometheus here, such as 127.0.0.1:9404; port 0 for any free one.",
        ),
    ] = None
    metrics_partitions: Annotated[
        bool, typer.Option("--metrics-partitions", help="With --metrics-listen: a series for each partition too.")
    ] = False

    def __post_init__(self) -> None:
        if self.metrics_partitions and self.metrics_listen is None:
            raise UsageError("--metrics-partitions: no metrics are served; add --metrics-listen 127.0.0.1:PORT")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementOptions:
    """The placer and its configs."""

    placer: Placer = "balanced"
    placer_config: PlacerConfig = None
    ignore_racks: IgnoreRacks = False
    allow_fewer_racks: AllowFewerRacks = False
    seed: Seed = None

    def choice(self, excluded: frozenset[int]) -> "PlacerChoice":
        from rackspan.placement.new_partitions import PlacerChoice

        exclusion = api.Exclusion(excluded, self.allow_fewer_racks)
        configs = pairs("--placer-config", self.placer_config)
        choice = PlacerChoice(self.placer, configs, self.ignore_racks, exclusion)
        choice.check_configs()
        return choice

    def warnings(self, rack_options: RackLocatorOptions) -> list[str]:
        """A line where the racks of a locator are not used."""
        if not self.ignore_racks or rack_options.rack_locator_class is None:
            return []
        return [
            f"--ignore-racks: the racks that {rack_options.rack_locator_class} returns have no effect on the placement"
        ]

    def rng(self) -> "Random | RandomGenerator":
        from rackspan.placement.kafka.java_random import JavaRandom

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
            raise UsageError(f"{flag} {item}: expected KEY=VALUE")
        if key.strip() in found:
            raise UsageError(f"{flag} {item}: {key.strip()} is given twice; leave one of them out")
        found[key.strip()] = value.strip()
    return found


def networks(items: Sequence[str] | None) -> ClientNetworks:
    """--network CIDR=RACK, once for each range. Errors: UsageError."""
    ranges: dict[str, str] = {}
    for item in items or ():
        addresses, equals, rack = item.partition("=")
        if not (equals and addresses and rack):
            raise UsageError(f"--network {item}: expected CIDR=RACK, such as 10.0.1.0/24=eu-1a")
        ranges[addresses] = rack
    return ClientNetworks(ranges)


def topic_filter(topic: str | None) -> re.Pattern[str] | None:
    """The regular expression of --topic. Errors: UsageError."""
    try:
        return None if topic is None else re.compile(topic)
    except re.error as error:
        raise UsageError(f"--topic {topic!r}: not a regular expression: {error}; write one such as orders-.*") from None


def refuse_if_none_match(snapshot: ClusterSnapshot, matching: re.Pattern[str] | None) -> None:
    """Errors: UsageError where no topic matches."""
    if matching is not None and not any(matching.fullmatch(topic.name) for topic in snapshot.topics):
        alike = nearest(matching.pattern, [topic.name for topic in snapshot.topics])
        raise UsageError(
            f"--topic {matching.pattern!r}: matches none of {count_noun(len(snapshot.topics), 'topic')} by its whole name"
            f"{alike or '; write one such as orders-.*'}"
        )
