"""`partition_durability` and `outage_impact` made by Spark, beside the same computed by DuckDB and by Polars.

From the Parquet files of a warehouse's landing tables to sorted rows in Parquet, as `pipeline run` has Spark do it; and beside it
with Spark's Delta Lake, which reads the log and commits. Spark's start is left out, and it has the settings that `run` gives it for so
many rows. Each engine's first run is printed by itself; who takes longer than a minute for it is not run again: that run is its figure. The sums of all must be equal before
anything is printed. Processor seconds stand beside the elapsed ones, which a busy machine changes less. The smallest size shows what
Spark costs whatever the rows; from each size to the next the cost of a further million rows is printed. Polars is left
out beyond ten million rows. RACKSPAN_BENCH_ROWS=1000000,10000000 runs some sizes alone; the words SIZE DIR run one, and keep its
figures in DIR. All of them need 20 GB of memory and 30 GB of disk below TMPDIR.
"""

import json
import os
import shutil
import subprocess
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
from rackspan.pipeline import SHORT_PARTITIONS, TABLES, Warehouse
from rackspan.pipeline.frames.inputs import Inputs
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.jobs.tables import JOBS
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.spark import session

POLICY = RackPolicy(min_insync_racks=MIN_INSYNC_RACKS)
RUNS = {110_000: 3, 1_000_000: 3, 10_000_000: 2, 100_000_000: 1}
"""By rows; the first is above the size up to which `run` compiles no query. All of it takes some forty minutes on two cores that have nothing else to do, most of it for the last."""

WARMING = {110_000: 4, 1_000_000: 4}
"""Runs of Spark that do not count, so that its JVM has compiled what a run of a second executes."""

POLARS_ROWS_MAX = 10_000_000
GROWTH_MAX = 1.2
"""Times linear: what ten times the rows may cost."""

SPARK, SPARK_DELTA, DUCKDB = "Spark", "Spark on Delta", "DuckDB"

SLOW_SECONDS = 60
DRIVER_MEMORY = "4g"

PEERS: Mapping[str, Mapping[str, Callable[[Path, Path], None]]] = {
    "partition_durability": {DUCKDB: peers.duckdb_durability, "Polars": peers.polars_durability},
    "outage_impact": {DUCKDB: peers.duckdb_outage, "Polars": peers.polars_outage},
}

SUMS: Mapping[str, str] = {
    "partition_durability": "select count(*), sum(isr_size), sum(len(replica_racks)), sum(len(isr_racks)), "
    + ", ".join(f"count(*) filter (state = '{state}')" for state in peers.STATES),
    "outage_impact": "select count(*), sum(offline), sum(under_min_isr), sum(under_min_racks)",
}
"""What must be equal. The cluster's own rows of outage_impact are sums of the others, which the peers do not make."""

OURS_ALONE: Mapping[str, str] = {"partition_durability": "", "outage_impact": "where topic is not null"}


def main() -> None:
    """Each size in a process of its own, since a JVM keeps the flags that it began with."""
    sizes = list(map(int, os.environ.get("RACKSPAN_BENCH_ROWS", ",".join(map(str, RUNS))).split(",")))
    print(f"tables from {SNAPSHOTS} snapshots; {machine()}; load before {os.getloadavg()[0]:.1f}", flush=True)
    grown: dict[str, list[Mapping[str, float]]] = {name: [] for name in PEERS}
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            words = (sys.executable, "-m", "benchmarks.pipeline", str(rows), folder)
            subprocess.run(words, check=True)
            for name in PEERS:
                grown[name].append(json.loads(Path(folder, f"{name}.json").read_text()))
    for name, figures in grown.items():
        for (less, small), (more, large) in pairwise(zip(sizes, figures, strict=True)):
            print(growth(name, less, small, more, large))


def growth(name: str, less: int, small: Mapping[str, float], more: int, large: Mapping[str, float]) -> str:
    """How the seconds of processors grow from one size to the next, for Spark and beside DuckDB."""
    million = {engine: (large[engine] - small[engine]) / (more - less) * 1e6 for engine in small}
    without_rows = {engine: small[engine] - million[engine] * less / 1e6 for engine in small}
    each = "; ".join(
        f"{engine} {million[engine]:.2f} s, whatever the rows {without_rows[engine]:.2f} s" for engine in small
    )
    return (
        f"{name}, {less:,} to {more:,} rows: Spark takes {large[SPARK] / small[SPARK]:.1f} times as long, at most "
        f"{GROWTH_MAX * more / less:.0f}; a million rows more: {each}; ratio {million[SPARK] / million[DUCKDB]:.1f}"
    )


def one_size(rows: int, folder: Path) -> None:
    """Print all tables at one size. Writes the seconds of processors of Spark and DuckDB to NAME.json in the folder."""
    os.environ.setdefault("SPARK_DRIVER_MEMORY", DRIVER_MEMORY)
    with session.spark_session("local[*]", short=rows <= SHORT_PARTITIONS) as spark:
        warehouse = fleet(folder / f"{rows}", rows)
        for name in PEERS:
            figures = compare(spark, warehouse, name, rows, folder)
            medians = {engine: figures[engine].median for engine in (SPARK, DUCKDB)}
            (folder / f"{name}.json").write_text(json.dumps(medians))
        shutil.rmtree(warehouse.root)


def compare(spark: Any, warehouse: Warehouse, name: str, rows: int, folder: Path) -> Mapping[str, Figures]:
    """Print one table at one size. Returns the seconds of processors by engine."""
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
            sums[engine] = summed(out, name, engine)
    assert len(set(sums.values())) == 1, sums
    cold = "; ".join(f"{engine} {elapsed:.2f} s, {work:.2f} s" for engine, (elapsed, work) in first.items())
    print(f"{rows:>10,} rows, {name}, first run, elapsed and of processors: {cold}", flush=True)
    again = [engine for engine, (elapsed, _) in first.items() if engine == SPARK or elapsed < SLOW_SECONDS]
    for _ in range(WARMING.get(rows, 0)):
        for engine in (SPARK, SPARK_DELTA):
            with removed(folder / "out") as out:
                engines[engine](out)
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
    return work


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
    work = RunWork(peers.RUN_ID, stored, {name: TableWork(TABLES[name], 0, tuple(range(len(stored))))})

    def make(out: Path) -> None:
        known = registrations(warehouse, stored, POLICY)
        with job.settings_for(spark, work):
            for part in job.parts(work):
                inputs = job.job_inputs(spark, warehouse, part, part.tables[name], known)
                if kind == "delta":
                    by_delta = DeltaInputs(spark, warehouse, stored, part.tables[name].judged)
                    inputs = replace(inputs, inputs=by_delta, compared=by_delta)
                rows = job.table_rows(JOBS[name](inputs), inputs.compared.snapshots, TABLES[name], work.run_id)
                rows.write.format(kind).mode("append").partitionBy("day").save(str(out))

    return make


def summed(made: Path, name: str, engine: str) -> tuple[int, ...]:
    ours = engine in (SPARK, SPARK_DELTA)
    files = f"{made}/**/*.parquet" if ours else made
    only = OURS_ALONE[name] if ours else ""
    with duckdb.connect() as connection:
        query = f"{SUMS[name]} from read_parquet('{files}', union_by_name = true) {only}"
        return tuple(connection.execute(query).fetchall()[0])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        one_size(int(sys.argv[1]), Path(sys.argv[2]))
