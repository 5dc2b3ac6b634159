"""The whole system on one page: read, judge, decide, act. `cli` and `web` are skins over these.

Every verb takes values and returns values; the clock, the network and the disk are met in `sources` and `pipeline`.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from rackspan import audit as _audit
from rackspan import pipeline as _pipeline
from rackspan.audit import Audit, RackLoss, RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.model.json_format import ReadSnapshot
from rackspan.pipeline import Collected, RunReport
from rackspan.sources import snapshot_file as _snapshot_file
from rackspan.sources.properties_file import read_properties
from rackspan.sources.source import Source

__all__ = [
    "Source",
    "audit",
    "collect",
    "collect_every",
    "live_cluster",
    "outage",
    "report",
    "run_pipeline",
    "snapshot",
    "snapshot_file",
    "snapshot_files",
    "table",
]

# ── where snapshots come from


def live_cluster(bootstrap_servers: str, command_config: Path | None, timeout_seconds: float) -> Source:
    """A running cluster. Errors: UsageError for a command config that cannot be read or followed."""
    # The Kafka client is imported where a cluster is read: judging a file should not wait for it.
    from rackspan.sources.connection import ConnectionSettings
    from rackspan.sources.live_cluster import read_cluster

    properties = {} if command_config is None else read_properties(command_config)
    connection = ConnectionSettings(bootstrap_servers, properties, timeout_seconds)
    return Source(bootstrap_servers, lambda: ReadSnapshot(read_cluster(connection), ()))


def snapshot_file(path: Path) -> Source:
    """A JSON file or Parquet folder."""
    return Source(str(path), lambda: _snapshot_file.read(path))


def snapshot_files(folder: Path) -> list[Source]:
    """Every snapshot in a folder, by name. Errors: UsageError for none."""
    return list(_pipeline.from_folder(folder))


# ── see


def snapshot(source: Source, out: Path) -> ReadSnapshot:
    """One moment of a cluster, written to `out`: a JSON file where the name ends in .json, a Parquet folder otherwise."""
    taken = source.read()
    _snapshot_file.write(taken.snapshot, out)
    return taken


def audit(snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy()) -> Audit:
    """Everything that is wrong, and whether the loss of each rack is survived."""
    return _audit.audit(snapshot, policy)


def outage(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    *,
    lose: tuple[str, ...] | None = None,
    pairs: bool = False,
) -> tuple[RackLoss, list[RackLoss]]:
    """What is harmed already, and what losing each rack, each pair, or the named racks together would do."""
    return _audit.outage(snapshot, policy, lose=lose, pairs=pairs)


# ── the pipeline


def collect(sources: list[Source], warehouse: Path) -> Iterator[Collected]:
    """One snapshot of each source into the warehouse; a source that fails does not keep the others from being read."""
    return _pipeline.collect(sources, _pipeline.create_warehouse(warehouse))


def collect_every(sources: list[Source], warehouse: Path, seconds: float) -> Iterator[Collected]:
    """The same, a round every so many seconds, until the caller stops asking."""
    kept = _pipeline.create_warehouse(warehouse)
    return _pipeline.collect_every(sources, kept, seconds, now=time.monotonic, sleep=time.sleep)


def run_pipeline(warehouse: Path, policy: RackPolicy = RackPolicy(), master: str | None = None) -> RunReport:
    """Bring every table up to date with what was collected, on Spark."""
    return _pipeline.run(_pipeline.open_warehouse(warehouse), policy, master)


def table(warehouse: Path, name: str, limit: int | None = None) -> Iterator[dict[str, object]]:
    """The rows of a table in the order of its grain, without Spark."""
    return _pipeline.rows(_pipeline.open_warehouse(warehouse), name, limit)


def report(warehouse: Path, policy: RackPolicy, out: Path, master: str | None = None) -> Path:
    """One page about every cluster of the warehouse, drawn from its tables."""
    _pipeline.report(_pipeline.open_warehouse(warehouse), policy, out, master)
    return out
