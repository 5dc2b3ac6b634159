"""Makes ReportData from a warehouse: the tables in force, and the latest snapshot of each cluster in them, summarized."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import pyarrow as pa

from rackspan.audit.policy import ClusterPolicies
from rackspan.errors import InvalidWarehouse
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.pipeline.delta.table import data_files, read_files
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.read import read_snapshot
from rackspan.pipeline.report.data import ReportData
from rackspan.pipeline.report.summaries import Tables, summarize
from rackspan.pipeline.runs import Run, last_run
from rackspan.pipeline.schemas import DRIFT, FINDINGS, JUDGED, OUTAGE_IMPACT, PARTITION_DURABILITY, Table
from rackspan.pipeline.warehouse import Warehouse, existing_table


def report_data(
    warehouse: Warehouse, policies: ClusterPolicies, names: Mapping[str, str] = MappingProxyType({})
) -> tuple[Run, ReportData]:
    """The run in force, a summary of its tables, and the outcome of each loss for the latest snapshot of each cluster.

    `names`: what to call clusters, by id.
    Snapshots collected since that run are left out. Errors: InvalidWarehouse where nothing has been run; UsageError where
    a policy refuses a cluster.
    """
    run = last_run(warehouse)
    if run is None:
        raise InvalidWarehouse(
            f"{warehouse.root}: has no table {PARTITION_DURABILITY.name} yet; "
            f"run rackspan pipeline run --warehouse {warehouse.root}"
        )
    tables = (PARTITION_DURABILITY, FINDINGS, OUTAGE_IMPACT, DRIFT)
    return run, summarize(
        Tables(*(partial(table_batches, warehouse, run, table) for table in tables)),
        latest_snapshots(warehouse, run),
        policies,
    ).named(names)


def table_batches(warehouse: Warehouse, run: Run, table: Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Columns of a table as a run left it. Errors: InvalidWarehouse."""
    opened = existing_table(warehouse, table.name, run.versions[table.name])
    return read_files(opened, data_files(opened), pa.schema([table.schema.field(name) for name in columns]))


def latest_snapshots(warehouse: Warehouse, run: Run) -> Mapping[str, ClusterSnapshot]:
    """The latest snapshot of each cluster that the run's tables have and that is stored still."""
    latest: dict[str, str] = {}
    for batch in table_batches(warehouse, run, JUDGED, ("cluster_id", "snapshot_id")):
        for cluster, identity in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            latest[cluster] = max(identity, latest.get(cluster, ""))
    stored = read_markers(warehouse).named(latest.values())
    return {one.cluster_id: read_snapshot(warehouse, one) for one in stored}
