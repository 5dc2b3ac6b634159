"""`pipeline follow` beside a collector: 20 clusters of 10,000 partitions every 30 s for ten minutes, under 1 % of them changing a round.

All sizes grow from each round to the next. RACKSPAN_BENCH_CHANGED=0 is a fleet in which nothing changes, RACKSPAN_BENCH_CLUSTERS=200 one of 2,000,000
partitions. The collector shares the machine; RACKSPAN_BENCH_ELSEWHERE_SECONDS=600 puts it elsewhere: in so many seconds before the first round all are
stored in another warehouse, and when a round is due its files and commits appear in this one.

Prints how far the tables are behind the snapshots, the processor time of both sides a round, and the files that an hour would make.
Afterwards every snapshot is judged once and every partition has one row. RACKSPAN_BENCH_MINUTES=2 is a shorter run.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks._measure import Figures, machine, processor_seconds
from benchmarks.audit import snapshot
from rackspan.model import ClusterSnapshot
from rackspan.model.ids import NO_BROKER
from rackspan.pipeline import TABLES, Warehouse, create_warehouse, rows
from rackspan.pipeline.delta.table import data_files, open_table
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.runs import last_run
from rackspan.pipeline.schemas import LANDING, PARTITION_DURABILITY
from rackspan.pipeline.table import table_files

CLUSTERS = int(os.environ.get("RACKSPAN_BENCH_CLUSTERS", "20"))
PARTITIONS = 10_000
EVERY_SECONDS = 30
CHANGED = float(os.environ.get("RACKSPAN_BENCH_CHANGED", "0.005"))
ELSEWHERE_SECONDS = float(os.environ.get("RACKSPAN_BENCH_ELSEWHERE_SECONDS", "0"))
PATIENCE_SECONDS = 300
"""For the last round, after the collector has ended."""


def main() -> None:
    minutes = float(os.environ.get("RACKSPAN_BENCH_MINUTES", "10"))
    rounds = max(2, int(minutes * 60 / EVERY_SECONDS))
    print(f"follow, {CLUSTERS} clusters of {PARTITIONS:,} partitions every {EVERY_SECONDS} s; {machine()}")
    with tempfile.TemporaryDirectory() as folder:
        warehouse = create_warehouse(Path(folder) / "warehouse")
        collect = elsewhere(warehouse, rounds) if ELSEWHERE_SECONDS else partial(collected, warehouse, rounds)
        words = ("-m", "rackspan", "pipeline", "follow", "--warehouse", warehouse.root, "--every", "1")
        with subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True) as following:
            # A thread of its own, since a pipe that nobody reads stops the writer.
            printer = threading.Thread(target=_print_lines, args=(following,), daemon=True)
            printer.start()
            collecting = collect()
            deadline = time.monotonic() + PATIENCE_SECONDS
            while judged(warehouse) < CLUSTERS * rounds and time.monotonic() < deadline:
                time.sleep(1)
            work = processor_seconds() - time.process_time()
            following.send_signal(signal.SIGTERM)
            following.wait()
        report(warehouse, rounds, collecting, work)


def _print_lines(following: "subprocess.Popen[str]") -> None:
    assert following.stderr is not None
    for line in following.stderr:
        print(line, end="", file=sys.stderr, flush=True)


def collected(warehouse: Warehouse, rounds: int) -> Figures:
    """Store so many rounds by the clock. Returns the seconds that each took."""
    bases, start = Bases(), datetime.now(UTC)
    fleets = _fleets(datetime.now(UTC) for _ in range(rounds))
    return _by_the_clock(start, (lambda: store_all(next(fleets), warehouse, bases) for _ in range(rounds)))


def elsewhere(warehouse: Warehouse, rounds: int) -> Callable[[], Figures]:
    """Store so many rounds in a warehouse of their own. Returns what makes each appear in this one when it is due."""
    start = datetime.now(UTC) + timedelta(seconds=ELSEWHERE_SECONDS)
    other, bases = create_warehouse(Path(warehouse.root).with_name("elsewhere")), Bases()
    stored: list[list[Path]] = []
    known = {*_files(other)}
    for fleet in _fleets(start + timedelta(seconds=EVERY_SECONDS * number) for number in range(rounds)):
        store_all(fleet, other, bases)
        # In the order of their making: rows before their commit, the table of markers last.
        new = sorted({*_files(other)} - known, key=lambda file: file.stat().st_mtime_ns)
        known |= {*new}
        stored.append([file for file in new if file.suffix == ".json" or file.parent.name != "_delta_log"])
    assert datetime.now(UTC) < start, "the rounds took longer; set RACKSPAN_BENCH_ELSEWHERE_SECONDS higher"

    def appear(files: list[Path]) -> None:
        for file in files:
            there = Path(warehouse.root, file.relative_to(other.root))
            there.parent.mkdir(parents=True, exist_ok=True)
            os.link(file, there)

    return lambda: _by_the_clock(start, (partial(appear, files) for files in stored))


def _files(warehouse: Warehouse) -> Iterator[Path]:
    return (file for file in Path(warehouse.root, "tables").rglob("*") if file.is_file())


def _by_the_clock(start: datetime, rounds: Iterable[Callable[[], object]]) -> Figures:
    took: list[float] = []
    for number, store in enumerate(rounds):
        due = start + timedelta(seconds=EVERY_SECONDS * number)
        time.sleep(max(0.0, (due - datetime.now(UTC)).total_seconds()))
        started = time.monotonic()
        store()
        took.append(time.monotonic() - started)
    return Figures(tuple(took))


def _fleets(times: Iterable[datetime]) -> Iterator[list[ClusterSnapshot]]:
    """All clusters at each time."""
    clusters = [
        replace(snapshot(PARTITIONS, misplaced=0.01, seed=seed), cluster_id=f"c{seed}") for seed in range(CLUSTERS)
    ]
    rng = np.random.default_rng(1)
    for taken_at in times:
        clusters = [_later(one, rng, taken_at) for one in clusters]
        yield clusters


def _later(one: ClusterSnapshot, rng: np.random.Generator, taken_at: datetime) -> ClusterSnapshot:
    """The same cluster later: of a thousand partitions five have lost a replica from their ISR or got it back."""
    isr = one.partitions.isr.copy()
    changed = np.flatnonzero(rng.random(len(isr)) < CHANGED)
    back = isr[changed, 2] == NO_BROKER
    isr[changed, 2] = np.where(back, one.partitions.replicas[changed, 2], NO_BROKER)
    grown = one.partitions.size_bytes + rng.integers(1, 1 << 20, len(isr))
    return replace(one, taken_at=taken_at, partitions=replace(one.partitions, isr=isr, size_bytes=grown))


def judged(warehouse: Warehouse) -> int:
    table = open_table(warehouse.table("judged"))
    return 0 if table is None else sum(file.rows for file in data_files(table))


def report(warehouse: Warehouse, rounds: int, collecting: Figures, work: float) -> None:
    ended = {row["run_id"]: datetime.fromisoformat(row["ended_at"]) for row in rows(warehouse, "runs")}
    behind: dict[str, float] = {}
    for row in rows(warehouse, "judged"):
        seconds = (ended[row["run_id"]] - datetime.fromisoformat(row["taken_at"])).total_seconds()
        # Snapshots of one round have nearly the same time; ids are in the order of time.
        behind[row["snapshot_id"]] = seconds
    in_time = [behind[identity] for identity in sorted(behind)]
    late = Figures(tuple(max(in_time[at : at + CLUSTERS]) for at in range(0, len(in_time), CLUSTERS)))
    print(f"a round is stored in {collecting.text('s', 1)}, and judged {late.text('s', 1)} after it was taken")
    print(f"the last three rounds: {', '.join(f'{one:.1f} s' for one in late.values[-3:])}; {len(ended)} runs")
    print(
        f"processor time of follow: {work / rounds:.1f} s a round of {EVERY_SECONDS} s; load {os.getloadavg()[0]:.1f}"
    )
    hours = rounds * EVERY_SECONDS / 3600
    for name in (*LANDING, *TABLES):
        table = open_table(warehouse.table(name))
        assert table is not None
        files = data_files(table)
        size = sum(file.size_bytes for file in files)
        print(f"{name}: {len(files) / hours:,.0f} files, {size / hours / 2**20:,.1f} MiB an hour")
    written = sum(file.stat().st_size for file in _files(warehouse))
    print(
        f"all data files and logs: {written / rounds / 2**20:,.3f} MiB a round, the first round's whole snapshots among them"
    )
    made = sum(
        len(batch) for batch in table_files(warehouse, PARTITION_DURABILITY, last_run(warehouse)).read(["state"])
    )
    print(f"{len(in_time)} of {CLUSTERS * rounds} snapshots judged, {made:,} rows of partition_durability at them")
    assert (len(in_time), made) == (CLUSTERS * rounds, CLUSTERS * PARTITIONS * rounds)


if __name__ == "__main__":
    main()
