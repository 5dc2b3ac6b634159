"""The whole system on one page: read, judge, decide, act. `cli` and `web` are skins over these.

Every verb takes values and returns values; the clock, the network and the disk are met in `sources` and `pipeline`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rackspan import acks as _acks
from rackspan import audit as _audit
from rackspan.acks import HardenAdvice
from rackspan.audit import Audit, RackLoss, RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.model.json_format import ReadSnapshot
from rackspan.sources import rack_locator as _rack_locator
from rackspan.sources import rack_locators as _rack_locators
from rackspan.sources import snapshot_file as _snapshot_file


@dataclass(frozen=True, slots=True)
class Source:
    """Somewhere a snapshot can be had. `name` is what the user called it."""

    name: str
    read: Callable[[], ReadSnapshot]


def snapshot_file(path: Path) -> Source:
    """A JSON file or Parquet folder."""
    return Source(str(path), lambda: _snapshot_file.read(path))


def located(source: Source, rack_locator_class: str, rack_locator_properties: str) -> Source:
    """The same with the racks that a locator finds, asked anew at every reading. Errors: UsageError, RackLocatorFailed."""
    locator = _rack_locators.make(rack_locator_class, _rack_locator.parse_properties(rack_locator_properties))

    def read() -> ReadSnapshot:
        taken = source.read()
        return ReadSnapshot(_rack_locator.located(taken.snapshot, locator), taken.warnings)

    return Source(source.name, read)


def live_cluster(bootstrap_servers: str, command_config: Path | None, timeout_seconds: float) -> Source:
    """A running cluster."""
    raise NotImplementedError


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


def harden(
    snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy(), topic_filter: re.Pattern[str] | None = None
) -> list[HardenAdvice]:
    """For each topic the least min.insync.replicas that forces its racks, and what that costs."""
    return _acks.harden(snapshot, policy, topic_filter)
