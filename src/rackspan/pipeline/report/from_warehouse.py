"""Makes ReportData from a warehouse: the tables in force, and the latest snapshot of each cluster in them, summarized."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from rackspan.audit.policy import ClusterPolicies
from rackspan.errors import InvalidWarehouse
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.pipeline.changes.at_each_snapshot import by_cluster
from rackspan.pipeline.changes.known_time import micros
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.names import how_to_restore, shown_names
from rackspan.pipeline.landing.read import Damage, find_damage, read_snapshots
from rackspan.pipeline.report.summaries import KnownUntil, Tables, summarize
from rackspan.pipeline.report.traffic_sums import HourTables, first_hour, traffic_reports
from rackspan.pipeline.runs import Run, last_run
from rackspan.pipeline.schemas import DRIFT, FINDINGS, JUDGED, OUTAGE_IMPACT, PARTITION_DURABILITY, SNAPSHOTS
from rackspan.pipeline.schemas.hours import ADVICE, BILL, TRAFFIC
from rackspan.pipeline.schemas.readings import READINGS
from rackspan.pipeline.table import TableFiles, how_to_repair, table_files
from rackspan.pipeline.warehouse import Warehouse, naming_check
from rackspan.report.data import ReportData
from rackspan.report.traffic import TrafficReport


def report_data(
    warehouse: Warehouse,
    policies: ClusterPolicies,
    names: Mapping[str, str] = MappingProxyType({}),
    left_out: Callable[[str], None] | None = None,
) -> tuple[Run, ReportData]:
    """The run in force, a summary of its tables, and the outcome of each loss for the latest snapshot of each cluster.

    `names`: what to call clusters, by id, in place of the names that they were collected by. With `left_out`, damaged files are left out, and it gets a line for each.
    Snapshots collected since that run are left out. Errors: InvalidWarehouse where nothing has been run; UsageError where
    a policy refuses a cluster.
    """
    run = last_run(warehouse)
    if run is None:
        raise InvalidWarehouse(
            f"{warehouse.root}: has no table {PARTITION_DURABILITY.name} yet; "
            f"run rackspan pipeline run --warehouse {warehouse.root}"
        )
    with naming_check(warehouse):
        durability, findings, impact, drift = (
            table_files(warehouse, table, run, left_out)
            for table in (PARTITION_DURABILITY, FINDINGS, OUTAGE_IMPACT, DRIFT)
        )
        tables = Tables(
            durability.read, findings.read, impact.read, drift.read, _known_until(durability), _known_until(impact)
        )
        latest = latest_snapshots(warehouse, run, left_out)
        data = summarize(tables, latest, policies)
        data = data.with_traffic(_traffic(warehouse, run, latest, left_out))
        return run, data.named({**_stored_names(warehouse, left_out), **names})


def _known_until(files: TableFiles) -> Mapping[str, KnownUntil]:
    """Until when the snapshots with rows in a table say something, by cluster."""
    return {
        cluster_id: {micros(snapshot.taken_at): micros(snapshot.known_until) for snapshot in of_cluster}
        for cluster_id, of_cluster in by_cluster(files.visible).items()
    }


def _stored_names(warehouse: Warehouse, left_out: Callable[[str], None] | None) -> Mapping[str, str]:
    """The names that clusters were collected by. With `left_out`, a table that cannot be read gets a line, and ids are shown."""
    try:
        return shown_names(warehouse)
    except InvalidWarehouse as error:
        if left_out is None:
            raise
        left_out(f"{error}; clusters are shown by their ids; {how_to_restore(warehouse)}")
        return {}


def latest_snapshots(
    warehouse: Warehouse, run: Run, left_out: Callable[[str], None] | None = None
) -> Mapping[str, ClusterSnapshot]:
    """The latest snapshot of each cluster that the run's tables have and that is stored still."""
    latest: dict[str, str] = {}
    for batch in table_files(warehouse, JUDGED, run, left_out).read(("cluster_id", "snapshot_id")):
        for cluster, identity in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            latest[cluster] = max(identity, latest.get(cluster, ""))
    markers = read_markers(warehouse, skip_damaged=left_out is not None)
    stored = markers.named(latest.values())
    damage = Damage({}, {})
    if left_out is not None:
        damage = find_damage(warehouse, stored)
        for reason in {**(markers.damaged or {}), **damage.snapshots}.values():
            left_out(f"{reason}; the newest snapshot is left out; {how_to_repair(warehouse, SNAPSHOTS.name)}")
    whole = [snapshot for snapshot in stored if snapshot.snapshot_id not in damage.snapshots]
    read = read_snapshots(warehouse, whole)
    return {marker.cluster_id: snapshot for marker, snapshot in zip(whole, read, strict=True)}


def _traffic(
    warehouse: Warehouse, run: Run, latest: Mapping[str, ClusterSnapshot], left_out: Callable[[str], None] | None
) -> Mapping[str, TrafficReport]:
    """The traffic of each cluster that has readings. None in a run of an older rackspan, which has no tables of hours."""
    of_hours = (TRAFFIC, BILL, ADVICE)
    if any(table.name not in run.versions for table in of_hours):
        return {}
    readings = stored_readings(warehouse, run, latest, left_out)
    if not readings:
        return {}
    read_at = {cluster_id: of_cluster.newest for cluster_id, of_cluster in readings.items()}
    first_day = min(map(first_hour, read_at.values())).date()
    opened = (table_files(warehouse, table, run, left_out) for table in of_hours)
    shown = (
        replace(files, files=[file for file in files.files if file.day is None or file.day >= first_day])
        for files in opened
    )
    return {
        cluster_id: replace(
            report,
            unread=readings[cluster_id].unread_since(report.first_hour),
            readings=readings[cluster_id].count,
        )
        for cluster_id, report in traffic_reports(HourTables(*(files.read for files in shown)), read_at).items()
    }


@dataclass(slots=True)
class StoredReadings:
    """The readings of one cluster: when the newest was taken, how many there are, and, by when, what others or it could not read."""

    newest: datetime
    count: int = 0
    unread: dict[datetime, tuple[str, ...]] = field(default_factory=dict)

    def unread_since(self, at: datetime) -> tuple[str, ...]:
        """What readings from a time on could not read, each line once."""
        lines = (line for read_at in sorted(self.unread) if read_at >= at for line in self.unread[read_at])
        return tuple(dict.fromkeys(lines))


def stored_readings(
    warehouse: Warehouse,
    run: Run,
    latest: Mapping[str, ClusterSnapshot],
    left_out: Callable[[str], None] | None = None,
) -> dict[str, StoredReadings]:
    """The readings of each cluster that has any, of those that its latest snapshot does not precede."""
    found: dict[str, StoredReadings] = {}
    for batch in table_files(warehouse, READINGS, run, left_out).read(("cluster_id", "taken_at", "partial")):
        for cluster_id, at, partial in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            snapshot = latest.get(cluster_id)
            if snapshot is not None and snapshot.taken_at is not None and at <= snapshot.taken_at:
                readings = found.setdefault(cluster_id, StoredReadings(at))
                readings.newest = max(at, readings.newest)
                readings.count += 1
                if partial:
                    readings.unread[at] = tuple(partial)
    return found
