"""The sources of a command that reads many clusters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from rackspan import api
from rackspan.api import ClusterName, Source
from rackspan.cli.options import settings_table
from rackspan.cli.options.given import Given, Level
from rackspan.cli.options.settings import Settings
from rackspan.cli.options.shared import (
    DEFAULT_TIMEOUT_MS,
    CommandConfig,
    RackLocatorOptions,
    Timeout,
    cluster_address,
    snapshot_source,
)
from rackspan.errors import UsageError

_READ: Final = "Reading clusters"

_KINDS: Final = ("cluster_names", "all_clusters", "bootstrap_server", "snapshot", "from_snapshots")
"""The parameters that name sources. Those of the highest level count, together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions(RackLocatorOptions):
    """Clusters and snapshots, one or many."""

    cluster_names: Annotated[
        list[str] | None,
        settings_table.CLUSTER.option("A running cluster by its name in rackspan.toml; repeat it for each.", _READ),
    ] = None
    all_clusters: Annotated[
        bool, typer.Option("--all-clusters", help="Every cluster of rackspan.toml.", rich_help_panel=_READ)
    ] = False
    bootstrap_server: Annotated[
        list[str] | None,
        settings_table.BOOTSTRAP_SERVER.option("A running cluster; repeat it for each.", _READ),
    ] = None
    command_config: CommandConfig = None
    timeout: Timeout = DEFAULT_TIMEOUT_MS
    snapshot: Annotated[
        list[Path] | None,
        settings_table.SNAPSHOT.option(
            "An existing snapshot, or - for JSON on standard input; repeat it for each.", _READ
        ),
    ] = None
    from_snapshots: Annotated[
        Path | None,
        typer.Option("--from-snapshots", metavar="DIR", help="Every snapshot in a folder.", rich_help_panel=_READ),
    ] = None
    given: Given = field(default_factory=Given)

    def sources(self) -> list[Source]:
        """Errors: UsageError for none, for a cluster that is not named, for a flag that no source uses."""
        named = [name for name in _KINDS if getattr(self, name)]
        highest = max((self.given.level(name) for name in named), default=Level.DEFAULT)
        counting = {name for name in named if self.given.level(name) is highest}
        if not counting:
            raise UsageError(
                "no source named: give --bootstrap-server HOST:PORT, --cluster NAME, --all-clusters, --snapshot FILE "
                "or --from-snapshots DIR"
            )
        self._refuse_unused(counting)
        return [
            *(self._named(name) for name in self._names(counting)),
            *(
                self.of(api.live_cluster(servers, self.command_config, self.timeout / 1000))
                for servers in (self.bootstrap_server or () if "bootstrap_server" in counting else ())
            ),
            *(self.of(snapshot_source(path)) for path in (self.snapshot or () if "snapshot" in counting else ())),
            *(self.of(entry) for entry in self._folder(counting)),
        ]

    def _refuse_unused(self, counting: set[str]) -> None:
        if counting <= {"snapshot", "from_snapshots"}:
            for name, flag in (("command_config", "--command-config"), ("timeout", "--timeout")):
                if self.given.by_flag(name):
                    raise UsageError(f"{flag}: snapshots are read without a connection; leave it out")

    def _names(self, counting: set[str]) -> list[str]:
        if "all_clusters" not in counting:
            return list(dict.fromkeys(self.cluster_names or ())) if "cluster_names" in counting else []
        if "cluster_names" in counting:
            raise UsageError("--cluster and --all-clusters: name one of them")
        if not self.given.settings.cluster_names:
            raise UsageError("--all-clusters: no cluster is named in rackspan.toml; add [clusters.NAME]")
        return self.given.settings.cluster_names

    def _named(self, name: str) -> Source:
        """A cluster of rackspan.toml. What its table has counts, where no flag or variable is given."""
        chosen = self.given.settings.for_cluster(name)
        config = self._own(chosen, "command_config")
        live = api.live_cluster(
            cluster_address(chosen),
            None if config is None else Path(config),
            self._own(chosen, "timeout") / 1000,
            name=chosen.title,
            named=ClusterName(chosen.title or name, name),
        )
        locator = RackLocatorOptions(
            rack_locator_class=self._own(chosen, "rack_locator_class"),
            rack_locator_properties=self._own(chosen, "rack_locator_properties"),
        )
        return locator.of(live)

    def _own(self, chosen: Settings, option: str) -> Any:
        if self.given.level(option) > Level.FILE:
            return getattr(self, option)
        return chosen.options().get(option.replace("_", "-"), getattr(self, option))

    def _folder(self, counting: set[str]) -> Iterator[Source]:
        if "from_snapshots" in counting and self.from_snapshots is not None:
            yield from api.snapshot_files(self.from_snapshots)
