"""`partition_durability` and `outage_impact` made by Spark, beside the same computed by DuckDB and by Polars.

From the Parquet files of a warehouse's landing tables to sorted rows in Parquet, as `pipeline run` has Spark do it; and beside it
with Spark's Delta Lake, which reads the log and commits. Spark's start is left out; each engine runs once before it counts, and
who takes longer than a minute for that is not run again: that run is its figure. The sums of all must be equal before
anything is printed. Processor seconds stand beside the elapsed ones, which a busy machine changes less. Polars is left
out beyond ten million rows. RACKSPAN_BENCH_ROWS=1000000,10000000 runs some sizes alone. All of them need 12 GB of memory and
20 GB of disk below TMPDIR.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from benchmarks import _pipeline_peers as peers
from benchmarks._fleet import MIN_INSYNC_RACKS, SNAPSHOTS, fleet
from benchmarks._measure import Figures, machine, processor_seconds, seconds
from rackspan.audit import RackPolicy
from rackspan.pipeline import TABLES, Warehouse
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.jobs.tables import JOBS
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.spark import session

POLICY = RackPolicy(min_insync_racks=MIN_INSYNC_RACKS)
RUNS = {1_000_000: 3, 10_000_000: 2, 100_000_000: 1}
"""By rows. All of it takes some forty minutes on two cores that have nothing else to do, most of it for the last."""

POLARS_ROWS_MAX = 10_000_000
GROWTH_MAX = 1.2
"""Times linear: what ten times the rows may cost."""

SPARK, SPARK_DELTA = "Spark", "Spark on Delta"

SLOW_SECONDS = 60
DRIVER_MEMORY = "4g"

PEERS: Mapping[str, Mapping[str, Callable[[Path, Path], None]]] = {
    "partition_durability": {"DuckDB": peers.duckdb_durability, "Polars": peers.polars_durability},
    "outage_impact": {"DuckDB": peers.duckdb_outage, "Polars": peers.polars_outage},
}

SUMS: Mapping[str, str] = {
    "partition_durability": "select count(*), sum(isr_size), sum(len(replica_racks)), sum(len(isr_racks)), "
    + ", ".join(f"count(*) filter (state = '{state}')" for state in peers.STATES),
    "outage_impact": "select count(*), sum(offline), sum(under_min_isr), sum(under_min_racks)",
}
"""What must be equal. The cluster's own rows of outage_impact are sums of the others, which the peers do not make."""

OURS_ALONE: Mapping[str, str] = {"partition_durability": "", "outage_impact": "where topic is not null"}


def main() -> None:
    sizes = list(map(int, os.environ.get("RACKSPAN_BENCH_ROWS", ",".join(map(str, RUNS))).split(",")))
    print(f"tables from {SNAPSHOTS} snapshots; {machine()}; load before {os.getloadavg()[0]:.1f}")
    os.environ.setdefault("SPARK_DRIVER_MEMORY", DRIVER_MEMORY)
    with session.spark_session("local[*]") as spark, tempfile.TemporaryDirectory() as folder:
        grown: dict[str, list[Figures]] = {name: [] for name in PEERS}
        for rows in sizes:
            warehouse = fleet(Path(folder) / f"{rows}", rows)
            for name in PEERS:
                grown[name].append(compare(spark, warehouse, name, rows, Path(folder)))
            shutil.rmtree(warehouse.root)
        for name, figures in grown.items():
            for (less, small), (more, large) in pairwise(zip(sizes, figures, strict=True)):
                longer = Figures(tuple(value / small.median for value in large.values))
                most = GROWTH_MAX * more / less
                print(
                    f"{name}: {more // less} times the rows take {longer.text('times as long', 1)}, at most {most:.0f}"
                )


def compare(spark: Any, warehouse: Warehouse, name: str, rows: int, folder: Path) -> Figures:
    """Print one table at one size. Returns our seconds."""
    engines = {
        SPARK: spark_engine(spark, warehouse, name, "parquet"),
        SPARK_DELTA: spark_engine(spark, warehouse, name, "delta"),
    }
    engines |= {
        engine: partial(make, Path(warehouse.root))
        for engine, make in PEERS[name].items()
        if engine != "Polars" or rows <= POLARS_ROWS_MAX
    }
    sums, first = {}, {}
    for engine, make in engines.items():
        with removed(folder / "out") as out:
            first[engine] = timed(make, out)
            print(f"{rows:,} rows, {name}, {engine}: {first[engine][0]:.1f} s at first", file=sys.stderr, flush=True)
            sums[engine] = summed(out, name, engine)
    assert len(set(sums.values())) == 1, sums
    again = [engine for engine, (elapsed, _) in first.items() if engine == SPARK or elapsed < SLOW_SECONDS]
    measured: dict[str, list[tuple[float, float]]] = {engine: [] for engine in engines}
    for _ in range(RUNS.get(rows, min(RUNS.values()))):
        # In turn, so that all meet the same machine.
        for engine, make in engines.items():
            with removed(folder / "out") as out:
                measured[engine].append(timed(make, out) if engine in again else first[engine])
    elapsed, work = (
        {engine: Figures(tuple(one[which] for one in values)) for engine, values in measured.items()}
        for which in (0, 1)
    )
    for kind, figures in (("elapsed", elapsed), ("of processors", work)):
        print(f"{rows:>10,} rows, {name}, {kind}: {described(figures)}; load {os.getloadavg()[0]:.1f}", flush=True)
    return elapsed[SPARK]


def timed(make: Callable[[Path], None], out: Path) -> tuple[float, float]:
    """Elapsed and processor seconds."""
    before = processor_seconds()
    elapsed = seconds(lambda: make(out))
    return elapsed, processor_seconds() - before


def described(figures: Mapping[str, Figures]) -> str:
    ours = figures[SPARK]
    peers = [
        f"; {engine} {one.text('s')}, ratio {ours.over(one).text('x', 1)}"
        for engine, one in figures.items()
        if one is not ours
    ]
    return f"Spark {ours.text('s')}" + "".join(peers)


@contextmanager
def removed(out: Path) -> Iterator[Path]:
    """A place for a run's files, which nobody reads later: forty times ten million rows fill a disk."""
    try:
        yield out
    finally:
        shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)


class DeltaInputs(Inputs):
    """The same rows, read by Spark's Delta Lake instead of from the files that delta-rs lists."""

    def _numbered(self, table: Table) -> DataFrame:
        rows = self.spark.read.format("delta").load(self.warehouse.spark_path(table.name))
        numbers = F.broadcast(self.snapshots.select("snapshot", "snapshot_id"))
        return rows.drop("cluster_id", "taken_at", "day").join(numbers, "snapshot_id").drop("snapshot_id")


def spark_engine(spark: Any, warehouse: Warehouse, name: str, kind: str) -> Callable[[Path], None]:
    """What `pipeline run` makes of one table, in Parquet files that it has delta-rs commit; or all of it by Spark's Delta Lake."""
    from rackspan.pipeline.frames.registrations import registrations
    from rackspan.pipeline.jobs import build as job

    markers = read_markers(warehouse)
    stored = tuple(markers.of_days(markers.count_by_day()))
    one = TableWork(TABLES[name], 0, tuple(range(len(stored))))
    work = RunWork("0000000001-benchmark", stored, {name: one})

    def make(out: Path) -> None:
        known = registrations(warehouse, stored, POLICY)
        inputs = job.job_inputs(spark, warehouse, work, one, known)
        if kind == "delta":
            by_delta = DeltaInputs(spark, warehouse, stored, one.judged)
            inputs = replace(inputs, inputs=by_delta, compared=by_delta)
        rows = job.table_rows(JOBS[name](inputs), inputs.compared.snapshots, one.table, work.run_id)
        rows.write.format(kind).partitionBy("day").save(str(out))

    return make


def summed(made: Path, name: str, engine: str) -> tuple[int, ...]:
    ours = engine in (SPARK, SPARK_DELTA)
    files = f"{made}/**/*.parquet" if ours else made
    only = OURS_ALONE[name] if ours else ""
    with duckdb.connect() as connection:
        query = f"{SUMS[name]} from read_parquet('{files}', union_by_name = true) {only}"
        return tuple(connection.execute(query).fetchall()[0])


if __name__ == "__main__":
    main()
