"""The whole system on one page: read, judge, decide, act. `cli` and `web` are skins over these.

Every verb takes values and returns values; the clock, the network and the disk are met in `sources` and `pipeline`.
"""

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rackspan import acks as _acks
from rackspan import audit as _audit
from rackspan import pipeline as _pipeline
from rackspan import plan as _plan
from rackspan import reassign as _reassign
from rackspan import streams as _streams
from rackspan.acks import HardenAdvice
from rackspan.audit import Audit, Finding, RackLoss, RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.model.json_format import ReadSnapshot
from rackspan.pipeline import Collected, RunReport
from rackspan.plan import Caps, Step
from rackspan.reassign import Plan, ReassignmentDocument, Request
from rackspan.sources import rack_locator as _rack_locator
from rackspan.sources import rack_locators as _rack_locators
from rackspan.sources import snapshot_file as _snapshot_file
from rackspan.sources.properties_file import read_properties
from rackspan.sources.source import Source

__all__ = [
    "Source",
    "assign_tasks",
    "audit",
    "collect",
    "collect_every",
    "harden",
    "lint_reassignment",
    "live_cluster",
    "located",
    "outage",
    "plan_reassignment",
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


def located(source: Source, rack_locator_class: str, rack_locator_properties: str) -> Source:
    """The same with the racks that a locator finds, asked anew at every reading. Errors: UsageError, RackLocatorFailed."""
    locator = _rack_locators.make(rack_locator_class, _rack_locator.parse_properties(rack_locator_properties))

    def read() -> ReadSnapshot:
        taken = source.read()
        return ReadSnapshot(_rack_locator.located(taken.snapshot, locator), taken.warnings)

    return Source(source.name, read)


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


# ── move


def plan_reassignment(
    snapshot: ClusterSnapshot, policy: RackPolicy, request: Request, caps: Caps
) -> tuple[Plan, Sequence[Step]]:
    """The least movement that does what is asked, with the bound that proves it, in steps by risk."""
    planned = _reassign.plan(snapshot, policy, request)
    return planned, _plan.in_steps(planned, policy, caps)


def lint_reassignment(snapshot: ClusterSnapshot, policy: RackPolicy, document: ReassignmentDocument) -> list[Finding]:
    """What is wrong with anyone's plan: where it leads, what it passes through, what it copies needlessly."""
    return _reassign.lint(snapshot, policy, document)


# ── acknowledge


def harden(
    snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy(), topic_filter: re.Pattern[str] | None = None
) -> list[HardenAdvice]:
    """For each topic the least min.insync.replicas that forces its racks, and what that costs."""
    return _acks.harden(snapshot, policy, topic_filter)


# ── assign


def assign_tasks(problem: object, assignor: str, beyond: Sequence[str] = ()) -> dict[str, Any]:
    """Stream tasks to clients at least cross-rack cost (KIP-925), with a certificate that nothing is cheaper."""
    return _streams.assign(problem, assignor, _streams.options_named(*beyond), time.perf_counter)


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
    _pipeline.draw_report(_pipeline.open_warehouse(warehouse), policy, out, master)
    return out
