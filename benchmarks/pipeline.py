"""`partition_durability` and `outage_impact` made by Spark, beside the same computed by DuckDB and by Polars.

From a warehouse's snapshots to sorted Parquet files. Spark's start is left out; each engine runs once unmeasured. The sums
of all three must be equal before anything is printed. Beside the seconds on the wall stand those of processors, which a
busy machine changes less. RACKSPAN_BENCH_ROWS=1000000 runs one size alone.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from benchmarks import _pipeline_peers as peers
from benchmarks._fleet import MIN_INSYNC_RACKS, SNAPSHOTS, fleet
from benchmarks._measure import Figures, machine, processor_seconds, seconds
from rackspan.audit import RackPolicy
from rackspan.pipeline import Warehouse, incremental, session
from rackspan.pipeline.warehouse import stored_snapshots

POLICY = RackPolicy(min_insync_racks=MIN_INSYNC_RACKS)
ROWS = (1_000_000, 10_000_000)
RUNS = 3

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
    sizes = [int(os.environ["RACKSPAN_BENCH_ROWS"])] if "RACKSPAN_BENCH_ROWS" in os.environ else ROWS
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"tables from {SNAPSHOTS} snapshots, {RUNS} runs; {machine()}; load before {load}")
    with session.spark_session("local[*]") as spark, tempfile.TemporaryDirectory() as folder:
        grown: dict[str, list[Figures]] = {name: [] for name in PEERS}
        for rows in sizes:
            warehouse = fleet(Path(folder) / f"{rows}", rows)
            for name in PEERS:
                grown[name].append(compare(spark, warehouse, name, rows, Path(folder)))
        for name, (small, *large) in grown.items():
            for one in large:
                print(f"{name}: {sizes[-1] // sizes[0]} times the rows take {one.over(small).text('times as long', 1)}")


def compare(spark: Any, warehouse: Warehouse, name: str, rows: int, folder: Path) -> Figures:
    """Print one table at one size. Returns our seconds."""
    engines = {"Spark": spark_engine(spark, warehouse, name)} | {
        engine: lambda out, make=make: make(warehouse.root, out) for engine, make in PEERS[name].items()
    }
    sums = {}
    for engine, make in engines.items():
        with removed(folder / "out") as out:
            make(out)
            sums[engine] = summed(out, name, engine)
    assert len(set(sums.values())) == 1, sums
    timed: dict[str, list[tuple[float, float]]] = {engine: [] for engine in engines}
    for _ in range(RUNS):
        # In turn, so that all meet the same machine.
        for engine, make in engines.items():
            with removed(folder / "out") as out:
                before = processor_seconds()
                on_the_wall = seconds(lambda make=make, out=out: make(out))  # type: ignore[misc]
                timed[engine].append((on_the_wall, processor_seconds() - before))
    wall, work = (
        {engine: Figures(tuple(one[which] for one in values)) for engine, values in timed.items()} for which in (0, 1)
    )
    for kind, figures in (("on the wall", wall), ("of processors", work)):
        print(f"{rows:>10,} rows, {name}, {kind}: {told(figures)}", flush=True)
    return wall["Spark"]


def told(figures: Mapping[str, Figures]) -> str:
    ours = figures["Spark"]
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


def spark_engine(spark: Any, warehouse: Warehouse, name: str) -> Callable[[Path], None]:
    """What `pipeline run` does for one table, up to the files it would put in force."""
    from rackspan.pipeline.jobs import build as job

    work = [one for one in incremental.work(stored_snapshots(warehouse), POLICY) if one.table.name == name]
    return lambda out: job.build(spark, warehouse, {name: work}, POLICY, out)


def summed(made: Path, name: str, engine: str) -> tuple[int, ...]:
    files = f"{made}/**/*.parquet" if engine == "Spark" else made
    only = OURS_ALONE[name] if engine == "Spark" else ""
    with duckdb.connect() as connection:
        asked = f"{SUMS[name]} from read_parquet('{files}', union_by_name = true) {only}"
        return tuple(connection.execute(asked).fetchall()[0])


if __name__ == "__main__":
    main()
