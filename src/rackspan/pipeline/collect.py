"""Collects snapshots: reads sources and stores what they give, many snapshots with one append.

Begin with collect(). The caller provides the sources: a source is a name and a function that reads a snapshot.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rackspan.errors import InvalidSnapshot, InvalidWarehouse, RackspanError, UsageError
from rackspan.model.snapshot import ReadSnapshot
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import SnapshotLocation, store_all
from rackspan.pipeline.warehouse import NOT_REPAIRED, Warehouse
from rackspan.sources.source import Source

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

SNAPSHOTS_MAX: Final = 200
PARTITIONS_MAX: Final = 500_000
"""What is stored with one append: some 200 MB in memory. The rounds of a fleet are smaller, so each is one append."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of reading one source once: `stored`, or the `error` that prevented it."""

    source: str
    stored: SnapshotLocation | None = None
    warnings: tuple[str, ...] = ()
    error: RackspanError | None = None


@dataclass(slots=True)
class CollectTotals:
    """What a `collect --every` has done since it started, for its metrics."""

    stored: int = 0
    failed: int = 0
    last_stored: float | None = None
    """Seconds since 1970."""

    def add(self, collected: Collected, now: float) -> None:
        """Count one source that was read at `now`."""
        if collected.error is not None:
            self.failed += 1
        elif collected.stored is not None:
            self.stored += 1
            self.last_stored = now


def metric_families(totals: CollectTotals) -> "Iterator[Family]":
    """The Prometheus metrics of a `collect --every`."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    yield CounterMetricFamily("rackspan_collect_snapshots", "Snapshots stored", totals.stored)
    yield CounterMetricFamily("rackspan_collect_failures", "Sources that could not be read or stored", totals.failed)
    if totals.last_stored is not None:
        name = "rackspan_collect_last_stored_timestamp_seconds"
        yield GaugeMetricFamily(name, "When the last snapshot was stored, in seconds since 1970", totals.last_stored)


def from_folder(folder: Path) -> Iterator[Source]:
    """A source for every snapshot in a folder, by name: .json files and Parquet folders. Errors: UsageError for none."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder; name one that holds snapshots")
    snapshots = [entry for entry in sorted(folder.iterdir()) if _may_be_snapshot(entry)]
    if not snapshots:
        raise UsageError(f"{folder}: holds no snapshots (files that end in .json, or Parquet folders); name another")
    # The executors of Spark import this package and have no parser of documents.
    from rackspan.sources import snapshot_file

    return (Source(str(path), lambda path=path: snapshot_file.read(path)) for path in snapshots)  # type: ignore[misc]  # mypy types no lambda with a default.


def collect(sources: Iterable[Source], warehouse: Warehouse, bases: Bases | None = None) -> Iterator[Collected]:
    """Read every source once and store its snapshot. A source that fails does not stop the others.

    A snapshot that follows one of `bases`, or an earlier one of this call, is stored as what differs from it.
    What was repaired when the warehouse was opened comes first, as warnings, and as an error if a part of a snapshot is lost.
    """
    yield from _repaired(warehouse)
    bases = Bases() if bases is None else bases
    warehouse = replace(warehouse, repair=NOT_REPAIRED)
    batch: list[tuple[str, ReadSnapshot | RackspanError]] = []
    partitions = 0
    for source in sources:
        try:
            read = source.read()
            partitions += len(read.snapshot.partitions)
            batch.append((source.name, read))
        except RackspanError as error:
            batch.append((source.name, error))
        if len(batch) == SNAPSHOTS_MAX or partitions >= PARTITIONS_MAX:
            yield from _stored(batch, warehouse, bases)
            batch, partitions = [], 0
    yield from _stored(batch, warehouse, bases)


def collect_every(
    sources: list[Source],
    warehouse: Warehouse,
    seconds: float,
    *,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[Collected]:
    """Collect in rounds, one every `seconds` by the clock `now`, until the caller stops iterating.

    A round that takes longer than the interval is followed by the next one at once; missed rounds are not repeated.
    """
    due, bases = now(), Bases()
    while True:
        yield from collect(sources, warehouse, bases)
        warehouse = replace(warehouse, repair=NOT_REPAIRED)
        due = max(due + seconds, now())
        sleep(max(0.0, due - now()))


def _repaired(warehouse: Warehouse) -> Iterator[Collected]:
    repair = warehouse.repair
    if repair.lines or repair.lost:
        lost = InvalidWarehouse("; ".join(repair.lost)) if repair.lost else None
        yield Collected(warehouse.root, warnings=repair.lines, error=lost)


def _stored(
    batch: list[tuple[str, ReadSnapshot | RackspanError]], warehouse: Warehouse, bases: Bases
) -> Iterator[Collected]:
    snapshots = [read.snapshot for _, read in batch if isinstance(read, ReadSnapshot)]
    outcomes = iter(store_all(snapshots, warehouse, bases) if snapshots else [])
    for name, read in batch:
        if isinstance(read, RackspanError):
            yield Collected(name, error=read)
            continue
        outcome = next(outcomes)
        if isinstance(outcome, InvalidSnapshot):
            yield Collected(name, error=InvalidSnapshot(f"{name}: {outcome}"))
        else:
            yield Collected(name, outcome, (*read.warnings, *read.snapshot.partial))


def _may_be_snapshot(entry: Path) -> bool:
    return entry.suffix == ".json" if entry.is_file() else (entry / "cluster.parquet").is_file()
