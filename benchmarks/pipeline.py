"""The tables of `pipeline run` made by Spark, beside `partition_durability` and `outage_impact` made by DuckDB and by Polars.

From the Parquet files of a warehouse's landing tables to sorted rows in Parquet: the one job of `run`, for those two tables and for all
four; and beside it the best queries of DuckDB and Polars for the two. Spark's start and the commits are left out. Each engine's first
run is printed by itself; who takes longer than a minute for it is not run again: that run is its figure. The sums of all must be
equal before anything is printed. Processor seconds stand beside the elapsed ones, which a busy machine changes less; from
each size to the next the cost of a further million rows is printed. From each snapshot to the next one partition
in twenty changes. Polars is left out beyond ten million rows. RACKSPAN_BENCH_ROWS=1000000,10000000 runs some sizes only; the
words SIZE DIR run a single size, and keep its figures in DIR. All of them need 20 GB of memory and 30 GB of disk below TMPDIR.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import _pipeline_peers as peers
from benchmarks._fleet import MIN_INSYNC_RACKS, SNAPSHOTS, fleet
from benchmarks._measure import Figures, machine, processor_seconds, seconds
from rackspan.audit import RackPolicy
from rackspan.pipeline import TABLES, Warehouse
from rackspan.pipeline.incremental import RunWork, TableWork
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.spark import session

POLICY = RackPolicy(min_insync_racks=MIN_INSYNC_RACKS)
RUNS = {100_000: 3, 1_000_000: 3, 10_000_000: 2, 100_000_000: 1}
"""By rows."""

POLARS_ROWS_MAX = 10_000_000
GROWTH_MAX = 1.2
"""Times linear: what ten times the rows may cost."""

SPARK, SPARK_ALL, DUCKDB = "Spark", "Spark, four tables", "DuckDB"

SLOW_SECONDS = 60
DRIVER_MEMORY = "4g"

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
    figures: list[Mapping[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            words = (sys.executable, "-m", "benchmarks.pipeline", str(rows), folder)
            subprocess.run(words, check=True)
            figures.append(json.loads(Path(folder, f"{rows}.json").read_text()))
    for (less, small), (more, large) in pairwise(zip(sizes, figures, strict=True)):
        print(growth(less, small, more, large))


def growth(less: int, small: Mapping[str, float], more: int, large: Mapping[str, float]) -> str:
    """How the seconds of processors grow from one size to the next, for Spark and beside DuckDB."""
    million = {engine: (large[engine] - small[engine]) / (more - less) * 1e6 for engine in small}
    without_rows = {engine: small[engine] - million[engine] * less / 1e6 for engine in small}
    each = "; ".join(
        f"{engine} {million[engine]:.2f} s, whatever the rows {without_rows[engine]:.2f} s" for engine in small
    )
    return (
        f"{less:,} to {more:,} rows: Spark takes {large[SPARK] / small[SPARK]:.1f} times as long, at most "
        f"{GROWTH_MAX * more / less:.0f}; a million rows more: {each}; ratio {million[SPARK] / million[DUCKDB]:.1f}"
    )


def one_size(rows: int, folder: Path) -> None:
    """Print all tables at one size. Writes the seconds of processors of Spark and DuckDB for two tables to SIZE.json in the folder."""
    os.environ.setdefault("SPARK_DRIVER_MEMORY", DRIVER_MEMORY)
    with session.spark_session("local[*]", delta=False, light=True) as spark:
        warehouse = fleet(folder / f"{rows}", rows)
        work = compare(spark, warehouse, rows, folder)
        medians = {engine: work[engine].median for engine in (SPARK, DUCKDB)}
        (folder / f"{rows}.json").write_text(json.dumps(medians))
        shutil.rmtree(warehouse.root)


def compare(spark: Any, warehouse: Warehouse, rows: int, folder: Path) -> Mapping[str, Figures]:
    """Print one size. Returns the seconds of processors by engine."""
    engines: dict[str, Callable[[Path], None]] = {
        SPARK: spark_engine(spark, warehouse, tuple(peers.PEERS[DUCKDB])),
        SPARK_ALL: spark_engine(spark, warehouse, tuple(TABLES)),
    }
    engines |= {
        engine: partial(peers.both, engine, Path(warehouse.root))
        for engine in peers.PEERS
        if engine != "Polars" or rows <= POLARS_ROWS_MAX
    }
    sums, first = {}, {}
    for engine, make in engines.items():
        with removed(folder / "out") as out:
            first[engine] = timed(engine, make, out)
            sums[engine] = [summed(out, name, engine) for name in SUMS]
    assert all(found == sums[DUCKDB] for found in sums.values()), sums
    cold = "; ".join(f"{engine} {elapsed:.2f} s, {work:.2f} s" for engine, (elapsed, work) in first.items())
    print(f"{rows:>10,} rows, first run, elapsed and of processors: {cold}", flush=True)
    measured: dict[str, list[tuple[float, float]]] = {engine: [] for engine in engines}
    for _ in range(RUNS.get(rows, min(RUNS.values()))):
        # In turn, so that all meet the same machine.
        for engine, make in engines.items():
            with removed(folder / "out") as out:
                measured[engine].append(timed(engine, make, out) if first[engine][0] < SLOW_SECONDS else first[engine])
    elapsed, work = (
        {engine: Figures(tuple(one[which] for one in values)) for engine, values in measured.items()}
        for which in (0, 1)
    )
    for kind, figures in (("elapsed", elapsed), ("of processors", work)):
        print(f"{rows:>10,} rows, {kind}: {described(figures)}; load {os.getloadavg()[0]:.1f}", flush=True)
    return work


def timed(engine: str, make: Callable[[Path], None], out: Path) -> tuple[float, float]:
    """Elapsed and processor seconds."""
    # The others run in this process; Spark's idle Python processes end beside them, and are waited for by nobody.
    work = processor_seconds if engine in (SPARK, SPARK_ALL) else time.process_time
    before = work()
    elapsed = seconds(lambda: make(out))
    return elapsed, work() - before


def described(figures: Mapping[str, Figures]) -> str:
    """Each engine's figure, and how many times DuckDB's that is."""
    theirs = figures[DUCKDB]
    return "; ".join(
        f"{engine} {figure.text('s')}, ratio {figure.over(theirs).text('x', 2)}" for engine, figure in figures.items()
    )


@contextmanager
def removed(out: Path) -> Iterator[Path]:
    """A place for a run's files, which nobody reads later: forty times ten million rows fill a disk."""
    try:
        yield out
    finally:
        shutil.rmtree(out) if out.is_dir() else out.unlink(missing_ok=True)


def spark_engine(spark: Any, warehouse: Warehouse, names: Sequence[str]) -> Callable[[Path], None]:
    """The job of `pipeline run` for some tables, without their commits."""
    from rackspan.pipeline.spark.build import SparkBuild

    markers = read_markers(warehouse)
    stored = tuple(markers.of_days(markers.count_by_day()))
    tables = {name: TableWork(TABLES[name], 0, tuple(range(len(stored)))) for name in names}
    # All rows, as the peers make them; a run stores those that differ.
    work = RunWork(peers.RUN_ID, stored, tables, whole=True)

    def make(out: Path) -> None:
        SparkBuild(lambda: spark, warehouse).judged(work, POLICY)
        for name in names:
            (out / name).parent.mkdir(exist_ok=True)
            shutil.move(f"{warehouse.table(name)}/{work.run_id}", out / name)

    return make


def summed(made: Path, name: str, engine: str) -> tuple[int, ...]:
    by_spark = engine in (SPARK, SPARK_ALL)
    files, only = (f"{made}/{name}/**/*.parquet", OURS_ALONE[name]) if by_spark else (f"{made}/{name}.parquet", "")
    with duckdb.connect() as connection:
        query = f"{SUMS[name]} from read_parquet('{files}', union_by_name = true) {only}"
        return tuple(connection.execute(query).fetchall()[0])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        one_size(int(sys.argv[1]), Path(sys.argv[2]))
