"""The source of a snapshot, as the functions of `rackspan.api` take it, and the address of a running cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackspan.model.snapshot import ReadSnapshot


@dataclass(frozen=True, slots=True)
class Source:
    """Reads one snapshot at each call of `read`. `name`, an address or a path, is used in messages."""

    name: str
    read: Callable[[], ReadSnapshot]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster and how to reach it. `timeout_seconds` bounds all requests of one snapshot together."""

    bootstrap_servers: str
    command_config: Path | None = None
    timeout_seconds: float = 30.0
