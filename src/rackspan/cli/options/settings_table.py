"""The settings: what a flag, its RACKSPAN_… variable, a key of rackspan.toml and a row of docs/settings.md say together, each once.

shared.py and fleet.py make flags of them, settings_file.py the strict types of rackspan.toml, tools/generated_parts.py the tables of the page.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer
from msgspec import Meta

from rackspan.audit.policy import Survive
from rackspan.cli.log_format import LogFormat
from rackspan.model import INT32_MAX, UnrackedPolicy

Text: TypeAlias = Annotated[str, Meta(pattern=r"\S")]
WholeNumber: TypeAlias = Annotated[int, Meta(ge=1, le=INT32_MAX)]


READ, JUDGE = "Reading a cluster", "Counting racks"
"""Headings of --help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSetting:
    """One setting. `key` is the flag without its dashes and the key in the file, `kind` the type of its value there.

    `meaning` is its --help under the heading `panel`, `note` what the page says beside that, `example` a value as TOML.
    """

    key: str
    meaning: str
    kind: Any = Text
    metavar: str | None = None
    panel: str | None = None
    also: tuple[str, ...] = ()
    note: str = ""
    example: str = ""
    is_path: bool = False

    @property
    def variable(self) -> str:
        return f"RACKSPAN_{self.key.replace('-', '_').upper()}"

    @property
    def parameter(self) -> str:
        return self.key.replace("-", "_")

    def option(self, meaning: str | None = None, panel: str | None = None, **more: Any) -> Any:
        """The flag, for Annotated; a command that means it in another way gives its own meaning."""
        bounds: dict[str, Any] = {"min": 1, "max": INT32_MAX} if self.kind is WholeNumber else {}
        return typer.Option(
            f"--{self.key}",
            *self.also,
            envvar=self.variable,
            metavar=self.metavar,
            help=meaning or self.meaning,
            rich_help_panel=panel or self.panel,
            **bounds,
            **more,
        )


SURVIVE: Final = DeclaredSetting(
    key="survive",
    kind=Survive,
    panel=JUDGE,
    meaning="The loss that topics and controllers have to survive.",
    note="`rack` (the default), `broker` or `none`.",
    example='"rack"',
)
REQUIRE_CONTROLLERS: Final = DeclaredSetting(
    key="require-controllers",
    kind=bool,
    panel=JUDGE,
    meaning="No loss is survived by a cluster whose controllers are not known. Managed Kafka shows none.",
    note="`false` by default.",
    example="true",
)
MIN_INSYNC_RACKS: Final = DeclaredSetting(
    key="min-insync-racks",
    kind=WholeNumber,
    metavar="N",
    panel=JUDGE,
    meaning="Racks that must hold a record that acks=all acknowledges, on a Kafka without min.insync.racks.",
    note="1 by default.",
    example="2",
)
UNRACKED: Final = DeclaredSetting(
    key="unracked",
    kind=UnrackedPolicy,
    panel=JUDGE,
    meaning="How brokers without broker.rack are counted.",
    note="`shared` (one rack of their own together, the default), `own` (each its own), `error` or `ignore`.",
    example='"shared"',
)
BOOTSTRAP_SERVER: Final = DeclaredSetting(
    key="bootstrap-server",
    also=("--bootstrap-servers",),
    metavar="HOST:PORT[,…]",
    panel=READ,
    meaning="A running cluster.",
    note="A protocol before an address, as `SASL_SSL://`, is left out. Above all tables, the one to use without a flag; not beside `cluster`.",
    example='"kafka-1:9092,kafka-2:9092"',
)
CLUSTER: Final = DeclaredSetting(
    key="cluster",
    metavar="NAME",
    panel=READ,
    meaning="A running cluster by its name in rackspan.toml: [clusters.NAME].",
    note="The one to use without a flag.",
    example='"prod-eu"',
)
COMMAND_CONFIG: Final = DeclaredSetting(
    key="command-config",
    metavar="FILE",
    panel=READ,
    meaning="Client properties, as Kafka's own tools take them.",
    note="[config check](security.md) says what becomes of each line. Above all tables, for every cluster that has none of its own.",
    example='"client.properties"',
    is_path=True,
)
TIMEOUT: Final = DeclaredSetting(
    key="timeout",
    kind=WholeNumber,
    metavar="MS",
    panel=READ,
    meaning="The longest that reading the cluster may take, in milliseconds.",
    example="30000",
)
RACK_LOCATOR_CLASS: Final = DeclaredSetting(
    key="rack-locator-class",
    metavar="NAME|MODULE:CLASS",
    panel=READ,
    meaning="The source of racks, where it is not the brokers: properties, file, command, host-pattern, availability-zones, or a class of your own.",
    note="See [rack-locators.md](rack-locators.md).",
    example='"host-pattern"',
)
RACK_LOCATOR_PROPERTIES: Final = DeclaredSetting(
    key="rack-locator-properties",
    metavar="KEY=VALUE[,…]",
    panel=READ,
    meaning="The configs of the rack locator.",
    example='"pattern=-(r[0-9])-"',
)
OUTPUT: Final = DeclaredSetting(
    key="output",
    kind=Literal["human", "json", "yaml", "csv"],
    also=("-o",),
    meaning="The format of standard output.",
    note="`human`, `json`, `yaml` or `csv`.",
    example='"json"',
)
WAREHOUSE: Final = DeclaredSetting(
    key="warehouse",
    metavar="URL",
    meaning="The snapshots and tables: a folder, or a URL such as s3://BUCKET/PATH.",
    example='"warehouse"',
    is_path=True,
)
MASTER: Final = DeclaredSetting(
    key="master",
    metavar="URL",
    meaning="Spark's master; local[*] by default.",
    example='"spark://spark:7077"',
)
OF_POLICY: Final = (SURVIVE, REQUIRE_CONTROLLERS, MIN_INSYNC_RACKS, UNRACKED)
"""Those by which a cluster is judged."""
OF_CLUSTERS: Final = (
    *OF_POLICY,
    BOOTSTRAP_SERVER,
    COMMAND_CONFIG,
    TIMEOUT,
    RACK_LOCATOR_CLASS,
    RACK_LOCATOR_PROPERTIES,
)
"""Those of [clusters.NAME]."""
IN_FILE: Final = (*OF_CLUSTERS, CLUSTER, OUTPUT, WAREHOUSE, MASTER)
"""Those of rackspan.toml that may stand above all tables, in the order of the page."""

# Flags with a variable, and no key in the file.
SNAPSHOT: Final = DeclaredSetting(
    key="snapshot",
    metavar="FILE-OR-DIR",
    panel=READ,
    meaning="A snapshot instead of a cluster: a JSON file, a Parquet folder, or - for JSON on standard input.",
)
SOURCES: Final = frozenset(f"--{setting.key}" for setting in (CLUSTER, BOOTSTRAP_SERVER, SNAPSHOT))
"""Each names the cluster that is read: a command that reads one has one of them."""

EXCLUDE_BROKERS: Final = DeclaredSetting(
    key="exclude-brokers",
    metavar="ID[,ID]",
    meaning="Brokers that get nothing new, beside those of rackspan.toml: retiring, or in maintenance.",
)
LOG_FORMAT: Final = DeclaredSetting(
    key="log-format",
    kind=LogFormat,
    meaning="The lines on standard error: text, or a JSON object each, with time, level, cluster and message.",
)
REMOTE: Final = DeclaredSetting(key="remote", metavar="URL", meaning="A Spark Connect server, sc://HOST:PORT.")
