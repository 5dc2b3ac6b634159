"""`make bench-year`: one cluster over many days: bytes and rows by what changed, judging by the snapshots that changed, and the cost model.

A year of 100,000 partitions every 5 minutes, 0.2 % of them changed, scaled down to four days of 10,000 partitions every 15 minutes. Half of the
partitions that change lose a replica from their ISR, the others, those of the round before, have it back. Everything is stored as a
collector does, and judged once an hour in this process, without Spark. Figures of one, two and four days; then a day with twice the changes,
one in which every second snapshot is as the one before, and another policy for all that is kept.

RACKSPAN_BENCH_PARTITIONS, RACKSPAN_BENCH_PERIOD and RACKSPAN_BENCH_RUN (seconds from one snapshot, or run, to the next), RACKSPAN_BENCH_DAYS and
RACKSPAN_BENCH_CHANGED for another size: 100000, 300, 3600, 365 and 0.002 are the whole year, some days of work. RACKSPAN_BENCH_MAINTAINED=1
joins the files of each day after it, as `pipeline maintain` does; bytes are then those of data files in force, since it deletes other files
and old logs by the clock, and predictions do not know of it.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks._cost_model import (
    Fleet,
    bytes_a_day,
    driver_seconds_a_day,
    policy_change_seconds,
    store_seconds_a_day,
    task_seconds_a_day,
)
from benchmarks._fleet import FIRST
from benchmarks._in_process import InProcessBuild
from benchmarks._measure import machine
from benchmarks.audit import snapshot
from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.model.ids import NO_BROKER
from rackspan.pipeline import Warehouse, create_warehouse
from rackspan.pipeline.delta.table import data_files, open_table
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.schemas import CONTENT, TABLES

if TYPE_CHECKING:
    from deltalake import DeltaTable

PARTITIONS: Final = int(os.environ.get("RACKSPAN_BENCH_PARTITIONS", "10000"))
PERIOD_SECONDS: Final = float(os.environ.get("RACKSPAN_BENCH_PERIOD", "900"))
DAYS: Final = int(os.environ.get("RACKSPAN_BENCH_DAYS", "4"))
CHANGED: Final = float(os.environ.get("RACKSPAN_BENCH_CHANGED", "0.002"))
RUN_SECONDS: Final = int(os.environ.get("RACKSPAN_BENCH_RUN", "3600"))
MAINTAINED: Final = os.environ.get("RACKSPAN_BENCH_MAINTAINED") == "1"


@dataclass(frozen=True, slots=True)
class Measured:
    """What some days took: bytes and rows that are stored, processor seconds so far."""

    bytes: int
    rows: Mapping[str, int]
    store_seconds: float
    judging: InProcessBuild
    changed_snapshots: int

    @property
    def derived_rows(self) -> int:
        return sum(self.rows[name] for name in TABLES)


def main() -> None:
    fleet = Fleet(1, PARTITIONS, PERIOD_SECONDS, CHANGED)
    print(f"a cluster of {PARTITIONS:,} partitions every {PERIOD_SECONDS:.0f} s, {CHANGED:.1%} changed; {machine()}")
    with tempfile.TemporaryDirectory() as folder:
        warehouse = create_warehouse(Path(folder) / "warehouse")
        days = dict(enumerate(_days(warehouse, fleet, DAYS), start=1))
        shown = [day for day in (1, 2, 4, 8, 16, 30, 90, 180, 365) if day in days]
        for day in shown:
            _print(f"{day} days", days[day], days[1], fleet, day)
        build = InProcessBuild(warehouse)
        build.run(RackPolicy(min_insync_racks=2))
        predicted = policy_change_seconds(fleet, DAYS)
        print(
            f"another policy, {DAYS} days judged again: {build.run_seconds:.1f} s of processors (predicted {predicted:.1f})"
        )
    for words, other in (
        ("twice the changes", replace(fleet, changed=2 * CHANGED)),
        ("every second snapshot unchanged", replace(fleet, changing=0.5)),
    ):
        with tempfile.TemporaryDirectory() as folder:
            (day_of_other,) = _days(create_warehouse(Path(folder) / "warehouse"), other, 1)
            _print(f"1 day, {words}", day_of_other, days[1], other, 1)


def _print(words: str, measured: Measured, one: Measured, fleet: Fleet, days: int) -> None:
    content = sum(measured.rows[table.name] for table in CONTENT)
    print(
        f"{words}: {measured.bytes / 2**20:,.2f} MiB, {measured.bytes / one.bytes:.2f} times a day's "
        f"(predicted {days * bytes_a_day(fleet) / 2**20:,.2f}); rows: {content:,} landing, "
        f"{measured.derived_rows:,} derived, {measured.derived_rows / one.derived_rows:.2f} times"
    )
    snapshots = measured.changed_snapshots / one.changed_snapshots
    judging, of_one = measured.judging, one.judging
    print(
        f"  processors: storing {measured.store_seconds:.1f} s (predicted {days * store_seconds_a_day(fleet):.1f}); runs {judging.run_seconds:.1f} "
        f"(predicted {days * (driver_seconds_a_day(fleet) + task_seconds_a_day(fleet)):.1f}), of that judging {judging.judged_seconds:.1f}, "
        f"{judging.judged_seconds / of_one.judged_seconds:.2f} times for {snapshots:.2f} times the changed snapshots, and tables of hours "
        f"{judging.hours_seconds:.1f}"
    )


def _days(warehouse: Warehouse, fleet: Fleet, days: int) -> Iterator[Measured]:
    """What is stored, and what it took, at the end of each day."""
    bases, build, storing, changed = Bases(), InProcessBuild(warehouse), 0.0, 0
    runs_a_day = 86_400 // RUN_SECONDS
    in_time = _history(fleet)
    for number in range(1, days * runs_a_day + 1):
        for _ in range(int(RUN_SECONDS / fleet.period_seconds)):
            now, differs = next(in_time)
            changed += differs
            began = time.process_time()
            store_all([replace(now, cluster_id=f"c{cluster}") for cluster in range(fleet.clusters)], warehouse, bases)
            storing += time.process_time() - began
        build.run(RackPolicy())
        if number % runs_a_day == 0:
            if MAINTAINED:
                maintain(warehouse, now=lambda: datetime.now(UTC))
            yield Measured(_bytes(warehouse), _rows(warehouse), storing, replace(build), changed)


def _history(fleet: Fleet) -> Iterator[tuple[ClusterSnapshot, bool]]:
    """The cluster at each time, and whether it differs from the one before; all sizes grow."""
    rng, one = np.random.default_rng(1), snapshot(fleet.partitions, misplaced=0.01, seed=0)
    whole, broken, number = one.partitions.isr, np.empty(0, np.intp), 0
    while True:
        differs = number == 0 or rng.random() < fleet.changing
        if differs and number:
            broken = rng.choice(fleet.partitions, round(fleet.partitions * fleet.changed / 2), replace=False)
        isr = whole.copy()
        isr[broken, 2] = NO_BROKER
        grown = one.partitions.size_bytes + rng.integers(1, 1 << 20, fleet.partitions)
        one = replace(
            one,
            taken_at=FIRST + timedelta(seconds=fleet.period_seconds * number),
            partitions=replace(one.partitions, isr=isr, size_bytes=grown),
        )
        yield one, differs
        number += 1


def _bytes(warehouse: Warehouse) -> int:
    if MAINTAINED:
        return sum(file.size_bytes for table in _tables(warehouse).values() for file in data_files(table))
    return sum(file.stat().st_size for file in Path(warehouse.root, "tables").rglob("*") if file.is_file())


def _rows(warehouse: Warehouse) -> Mapping[str, int]:
    return {name: sum(file.rows for file in data_files(table)) for name, table in _tables(warehouse).items()}


def _tables(warehouse: Warehouse) -> "Mapping[str, DeltaTable]":
    tables = {table.name: open_table(warehouse.table(table.name)) for table in (*CONTENT, *TABLES.values())}
    return {name: table for name, table in tables.items() if table is not None}


if __name__ == "__main__":
    main()
