"""The source of a snapshot, as the functions of `rackspan.api` take it, and the address of a running cluster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rackspan.model.snapshot import ReadSnapshot

if TYPE_CHECKING:
    from rackspan.traffic import ClusterReading


@dataclass(frozen=True, slots=True)
class ClusterName:
    """What rackspan.toml calls a cluster: the `name` to show, and the `cluster` of `--cluster`."""

    name: str
    cluster: str


@dataclass(frozen=True, slots=True)
class Source:
    """Reads one snapshot at each call of `read`. `name`, an address or a path, is used in messages; `named` is the cluster's, if it has one.

    `read_traffic` of a running cluster reads all that changes all the time too, for a collector that does so every so many seconds,
    with the counters of some gateways.
    """

    name: str
    read: Callable[[], ReadSnapshot]
    read_traffic: "Callable[[float, Sequence[str]], ClusterReading] | None" = None
    named: ClusterName | None = None

    @property
    def identity(self) -> tuple[str, str]:
        """By name, and, of two clusters with one name, by what `--cluster` calls them."""
        return self.name, "" if self.named is None else self.named.cluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster and how to reach it. `timeout_seconds` bounds all requests of one snapshot together."""

    bootstrap_servers: str
    command_config: Path | None = None
    timeout_seconds: float = 30.0
