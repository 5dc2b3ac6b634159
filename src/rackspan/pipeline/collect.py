"""Collects snapshots: reads sources and stores what they give, many snapshots with one append.

Begin with collect(). The caller provides the sources: a source is a name and a function that reads a snapshot.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rackspan.daemon_threads import DaemonExecutor
from rackspan.errors import InvalidSnapshot, InvalidWarehouse, RackspanError, UnreadableStore, UsageError
from rackspan.model.snapshot import ClusterSnapshot, ReadSnapshot
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.names import StoredNames, how_to_restore
from rackspan.pipeline.landing.store import SnapshotLocation, store_all
from rackspan.pipeline.warehouse import NOT_REPAIRED, Warehouse
from rackspan.sources.source import ClusterName, Source
from rackspan.traffic import ClusterReading

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

SNAPSHOTS_MAX: Final = 200
PARTITIONS_MAX: Final = 500_000
"""What is stored with one append: some 200 MB in memory. The rounds of a fleet are smaller, so each is one append."""

CLUSTERS_AT_ONCE: Final = 32
"""Running clusters that are read side by side."""

STORE_SECONDS: Final = 2.0
"""What has been read is stored where nothing more comes for so long."""


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of reading one source once: `stored`, or the `error` that prevented it."""

    source: str
    stored: SnapshotLocation | None = None
    warnings: tuple[str, ...] = ()
    error: RackspanError | None = None


@dataclass(frozen=True, slots=True)
class TrafficReadings:
    """Readings of running clusters every so many seconds, with the counters of gateways, by the URLs of their metrics."""

    period_seconds: float
    counters: Sequence[str] = ()


SourceRead: TypeAlias = ReadSnapshot | ClusterReading | RackspanError
"""What reading a source once gave."""


class SourceReaders:
    """Reads sources: running clusters side by side, files one after another.

    A cluster that has not responded within `budget_seconds` of a round is left to a later one, which does not read it again meanwhile.
    """

    def __init__(self, budget_seconds: float | None = None) -> None:
        self._budget_seconds = budget_seconds
        self._executor: DaemonExecutor | None = None
        self._in_flight: dict[Future[SourceRead], Source] = {}

    def read(
        self, sources: Iterable[Source], traffic: TrafficReadings | None
    ) -> Iterator[tuple[Source, SourceRead] | None]:
        """Each source with its result as it comes; None while the others take longer, so that what is there can be stored."""
        began = time.monotonic()
        busy = {source.identity for source in self._in_flight.values()}
        for source in sources:
            if source.read_traffic is None:
                yield source, _read(source, None)
            elif source.identity not in busy:
                if self._executor is None:
                    self._executor = DaemonExecutor(CLUSTERS_AT_ONCE, "read-cluster")
                self._in_flight[self._executor.submit(_read, source, traffic)] = source
        while self._in_flight:
            done, _ = wait(self._in_flight, STORE_SECONDS, FIRST_COMPLETED)
            for future in done:
                yield self._in_flight.pop(future), future.result()
            if not done:
                yield None
                if self._budget_seconds is not None and time.monotonic() - began >= self._budget_seconds:
                    return


def _read(source: Source, traffic: TrafficReadings | None) -> SourceRead:
    try:
        if traffic is not None and source.read_traffic is not None:
            return source.read_traffic(traffic.period_seconds, traffic.counters)
        return source.read()
    except RackspanError as error:
        return error


@dataclass(slots=True)
class CollectTotals:
    """What a `collect --every` has done since it started, for its metrics. `interval_seconds`: of `--every`."""

    interval_seconds: float
    stored: int = 0
    failed: int = 0
    failing: set[str] = field(default_factory=set)
    """The sources that failed when they were read last, and the warehouse if nothing could be stored in it."""

    last_stored: float | None = None
    """Seconds since 1970."""

    def add(self, collected: Collected, now: float) -> None:
        """Count one source that was read at `now`."""
        if collected.error is not None:
            self.failed += 1
            self.failing.add(collected.source)
        elif collected.stored is not None:
            self.stored += 1
            self.failing -= {collected.source, collected.stored.warehouse}
            self.last_stored = now


def metric_families(totals: CollectTotals) -> "Iterator[Family]":
    """The Prometheus metrics of a `collect --every`."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    yield CounterMetricFamily("rackspan_collect_snapshots", "Snapshots stored", totals.stored)
    yield CounterMetricFamily("rackspan_collect_failures", "Sources that could not be read or stored", totals.failed)
    meaning = "Sources that could not be read or stored when they were read last"
    yield GaugeMetricFamily("rackspan_collect_failing_sources", meaning, len(totals.failing))
    meaning = "Seconds from one round to the next, as --every has it"
    yield GaugeMetricFamily("rackspan_collect_interval_seconds", meaning, totals.interval_seconds)
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


def collect(
    sources: Iterable[Source],
    warehouse: Warehouse,
    bases: Bases | None = None,
    *,
    names: StoredNames | None = None,
    traffic: TrafficReadings | None = None,
    readers: SourceReaders | None = None,
    period_seconds: float | None = None,
) -> Iterator[Collected]:
    """Read every source once and store its snapshot. A source that fails does not stop the others.

    A snapshot that follows one of `bases`, or an earlier one of this call, is stored as what differs from it. With `traffic`, a
    reading of each running cluster is stored with its snapshot. The name of a cluster is stored where `names` lacks it.
    `period_seconds` is how often this is called: a snapshot says something for three of them, or, without it, of the usual distances before it.
    What was repaired when the warehouse was opened comes first, as warnings, and as an error if a part of a snapshot is lost.
    """
    yield from _repaired(warehouse)
    bases = Bases() if bases is None else bases
    warehouse = replace(warehouse, repair=NOT_REPAIRED)
    names = StoredNames() if names is None else names
    batch: list[tuple[Source, SourceRead]] = []
    partitions = 0
    for found in (SourceReaders() if readers is None else readers).read(sources, traffic):
        if found is not None:
            batch.append(found)
            partitions += _partitions(found[1])
        if found is None or len(batch) == SNAPSHOTS_MAX or partitions >= PARTITIONS_MAX:
            yield from _stored(_by_name(batch), warehouse, bases, names, period_seconds)
            batch, partitions = [], 0
    yield from _stored(_by_name(batch), warehouse, bases, names, period_seconds)


def _by_name(batch: list[tuple[Source, SourceRead]]) -> list[tuple[Source, SourceRead]]:
    """In the order of names: which cluster responds first changes from round to round."""
    return sorted(batch, key=lambda found: found[0].identity)


def collect_every(
    sources: list[Source],
    warehouse: Warehouse,
    seconds: float,
    *,
    now: Callable[[], float],
    sleep: Callable[[float], None],
    traffic: TrafficReadings | None = None,
) -> Iterator[Collected]:
    """Collect in rounds, one every `seconds` by the clock `now`, until the caller stops iterating.

    A round that takes longer than the interval is followed by the next one at once; missed rounds are not repeated. Readings are taken
    in the rounds nearest to their own period. A cluster that is still being read when a round ends holds up no other. Where
    a round cannot be stored, what it read is lost, and the next one is tried.
    """
    due, bases, names, readers = now(), Bases(), StoredNames(), SourceReaders(seconds)
    traffic_due = due
    while True:
        with_traffic = traffic is not None and due + seconds / 2 > traffic_due
        if traffic is not None and with_traffic:
            traffic_due = max(traffic_due + traffic.period_seconds, due)
        try:
            yield from collect(
                sources,
                warehouse,
                bases,
                names=names,
                traffic=traffic if with_traffic else None,
                readers=readers,
                period_seconds=seconds,
            )
        except (InvalidWarehouse, UnreadableStore) as error:
            # By then the disk may have space again, or the object store respond.
            yield Collected(warehouse.root, error=error)
        warehouse = replace(warehouse, repair=NOT_REPAIRED)
        due = max(due + seconds, now())
        sleep(max(0.0, due - now()))


def _repaired(warehouse: Warehouse) -> Iterator[Collected]:
    repair = warehouse.repair
    if repair.lines or repair.lost:
        lost = InvalidWarehouse("; ".join(repair.lost)) if repair.lost else None
        yield Collected(warehouse.root, warnings=repair.lines, error=lost)


def _stored(
    batch: list[tuple[Source, SourceRead]],
    warehouse: Warehouse,
    bases: Bases,
    names: StoredNames,
    period_seconds: float | None,
) -> Iterator[Collected]:
    snapshots: list[ClusterSnapshot] = []
    readings: dict[int, ClusterReading] = {}
    for _, read in batch:
        if isinstance(read, ClusterReading):
            readings[len(snapshots)] = read
        if not isinstance(read, RackspanError):
            snapshots.append(read.snapshot)
    outcomes = iter(store_all(snapshots, warehouse, bases, readings, period_seconds) if snapshots else [])
    named: dict[str, tuple[ClusterName, datetime]] = {}
    for source, read in batch:
        name = source.name
        if isinstance(read, RackspanError):
            yield Collected(name, error=read)
            continue
        outcome, snapshot = next(outcomes), read.snapshot
        if source.named is not None and snapshot.cluster_id is not None and snapshot.taken_at is not None:
            named[snapshot.cluster_id] = source.named, snapshot.taken_at
        if isinstance(outcome, InvalidSnapshot):
            yield Collected(name, error=InvalidSnapshot(f"{name}: {outcome}"))
        elif isinstance(read, ClusterReading):
            yield Collected(name, outcome, tuple(dict.fromkeys((*read.snapshot.partial, *read.partial))))
        else:
            yield Collected(name, outcome, (*read.warnings, *read.snapshot.partial))
    try:
        names.store(warehouse, named)
    except (InvalidWarehouse, UnreadableStore) as error:
        # The snapshots are stored all the same.
        yield Collected(warehouse.root, warnings=(f"names of clusters: {error}; {how_to_restore(warehouse)}",))


def _partitions(read: SourceRead) -> int:
    return 0 if isinstance(read, RackspanError) else len(read.snapshot.partitions)


def _may_be_snapshot(entry: Path) -> bool:
    return entry.suffix == ".json" if entry.is_file() else (entry / "cluster.parquet").is_file()
