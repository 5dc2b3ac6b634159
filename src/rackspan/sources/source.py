"""Somewhere a snapshot can be had, as verbs and the pipeline take it; and a cluster as somebody named it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackspan.model.json_format import ReadSnapshot


@dataclass(frozen=True, slots=True)
class Source:
    """Where one snapshot at a time comes from. `name` is what messages call it: an address or a file."""

    name: str
    read: Callable[[], ReadSnapshot]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster and how to reach it. `timeout_seconds` is for each conversation as a whole."""

    bootstrap_servers: str
    command_config: Path | None = None
    timeout_seconds: float = 30.0
