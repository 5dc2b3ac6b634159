"""A snapshot of 1,000,000 partitions from Parquet through `rackspan audit`, beside one DuckDB query over the same files.

Then audit, harden and lint by themselves, without start and reading, beside DuckDB's query of two rules over tables in memory.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks._measure import RUNS, Figures, machine, run_process
from rackspan import api
from rackspan.audit import RackPolicy
from rackspan.audit.constraints.cluster import CLUSTER_CONSTRAINTS
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.goals import GOALS
from rackspan.model import (
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    Int32s,
    PartitionColumns,
    RackId,
    Topic,
    TopicName,
)
from rackspan.sources.snapshot_folder import read_folder, write_folder

PARTITIONS_PER_TOPIC = 100
BROKERS, RACKS, REPLICATION_FACTOR = 60, 3, 3

# One constraint of audit's: on how many racks each partition's replicas stand. DuckDB's list functions, no unnesting.
PEER = """
import duckdb, sys
rack = f"read_parquet('{sys.argv[1]}/brokers.parquet')"
duckdb.sql(f"create table racks as select map_from_entries(list((id, rack))) as of from {rack}")
print(duckdb.sql(f'''select count(*) filter (len(list_distinct(list_transform(replicas, lambda b: racks.of[b]))) < 3),
  count(*) filter (len(isr) < 2), count(*) filter (leader < 0)
  from read_parquet('{sys.argv[1]}/partitions.parquet'), racks''').fetchall())
"""

# Two constraints of audit's: racks per partition, and what is left without the fullest. One thread, and its seconds alone.
TWO_RULES = """
import duckdb, sys, time
duckdb.sql("set threads = 1; set enable_progress_bar = false")
duckdb.sql(f"create table brokers as select id as broker, rack from read_parquet('{sys.argv[1]}/brokers.parquet')")
duckdb.sql(f'''create table replicas as select row, unnest(replicas) as broker
  from (select row_number() over () as row, replicas from read_parquet('{sys.argv[1]}/partitions.parquet'))''')
started = time.process_time()
duckdb.sql('''select count(*) filter (racks < replicas), count(*) filter (replicas - fullest < 2) from (
  select count(*) as racks, sum(held) as replicas, max(held) as fullest from (
    select row, rack, count(*) as held from replicas join brokers using (broker) group by row, rack) group by row)''').fetchall()
print(time.process_time() - started)
"""

OURS = "import sys; from benchmarks.audit import operation_seconds; print(operation_seconds(*sys.argv[1:]))"


def snapshot(partitions: int, *, misplaced: float, seed: int = 1) -> ClusterSnapshot:
    """Sixty brokers in three racks; a share of partitions has one replica moved into a rack already used."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, BROKERS, partitions)
    replicas = ((first[:, None] + np.arange(REPLICATION_FACTOR)) % BROKERS).astype(np.int32)
    moved = rng.random(partitions) < misplaced
    replicas[moved, 2] = (replicas[moved, 0] + RACKS) % BROKERS
    return _in_sync(replicas, [b % RACKS for b in range(BROKERS)], PARTITIONS_PER_TOPIC, rng)


def skewed(partitions: int, *, misplaced: float, seed: int = 1) -> ClusterSnapshot:
    """Three hundred brokers in six racks, the first ones of a rack with most replicas; a share of partitions has two in one rack."""
    rng = np.random.default_rng(seed)
    racks = rng.permuted(np.tile(np.arange(6), (partitions, 1)), axis=1)[:, :REPLICATION_FACTOR]
    within = (50 * rng.random((partitions, REPLICATION_FACTOR)) ** 2).astype(np.int64)
    twice = rng.random(partitions) < misplaced
    racks[twice, 2], within[twice, 2] = racks[twice, 0], (within[twice, 0] + 1) % 50
    return _in_sync((racks * 50 + within).astype(np.int32), [b // 50 for b in range(300)], 50, rng)


def _in_sync(replicas: Int32s, racks: Sequence[int], per_topic: int, rng: np.random.Generator) -> ClusterSnapshot:
    """Every replica in sync. `racks`: the rack of each broker."""
    topics, none = len(replicas) // per_topic, np.empty((len(replicas), 0), dtype=np.int32)
    return ClusterSnapshot(
        cluster_id="bench",
        brokers=tuple(Broker(BrokerId(b), RackId(f"r{rack}")) for b, rack in enumerate(racks)),
        controllers=tuple(Controller(BrokerId(1_000 + n), RackId(f"r{n}")) for n in range(3)),
        topics=tuple(Topic(TopicName(f"topic-{n:06}"), config={"min.insync.replicas": "2"}) for n in range(topics)),
        partitions=PartitionColumns(
            topic=np.repeat(np.arange(topics, dtype=np.int32), per_topic),
            partition=np.tile(np.arange(per_topic, dtype=np.int32), topics),
            leader=replicas[:, 0].copy(),
            replicas=replicas,
            isr=replicas.copy(),
            adding_replicas=none,
            removing_replicas=none.copy(),
            offline_replicas=none.copy(),
            size_bytes=rng.integers(0, 10**10, len(replicas)),
        ),
    )


def _lint(read: ClusterSnapshot) -> Callable[[], object]:
    planned = api.plan_reassignment(read, RackPolicy())
    return lambda: api.lint_reassignment(read, RackPolicy(), planned)


OPERATIONS: Final[Mapping[str, Callable[[ClusterSnapshot], Callable[[], object]]]] = {
    "audit": lambda read: lambda: api.audit(read).clean,
    "audit, all words": lambda read: lambda: list(api.audit(read).findings),
    "harden": lambda read: lambda: api.harden(read, RackPolicy(min_insync_racks=2)),
    "lint of its plan": _lint,
}


def operation_seconds(operation: str, folder: str) -> float:
    """The processor seconds of one operation on the snapshot in a folder, once it has run on a small one."""
    prepared = OPERATIONS[operation]
    prepared(skewed(1_000, misplaced=0.1))()
    work = prepared(read_folder(Path(folder)).snapshot)
    started = time.process_time()
    work()
    return time.process_time() - started


def main() -> None:
    print(f"audit from a Parquet snapshot, whole processes, {RUNS} runs; {machine()}")
    constraints = len(PARTITION_CONSTRAINTS) + len(CLUSTER_CONSTRAINTS)
    print(f"audit judges {constraints} constraints and {len(GOALS)} goals, DuckDB one constraint")
    with tempfile.TemporaryDirectory() as folder:
        for partitions, misplaced in ((100_000, 0.0), (1_000_000, 0.0), (1_000_000, 0.01)):
            path = Path(folder) / f"{partitions}-{misplaced}"
            write_folder(snapshot(partitions, misplaced=misplaced), path)
            _compare(path, partitions, misplaced)
        print("processor seconds of the operation alone, one thread")
        for misplaced in (0.0, 0.001, 0.01, 0.1):
            path = Path(folder) / f"skewed-{misplaced}"
            write_folder(skewed(1_000_000, misplaced=misplaced), path)
            for operation in ("audit",) if misplaced < 0.1 else OPERATIONS:
                _compare_operation(operation, path, misplaced)


def _compare_operation(operation: str, path: Path, misplaced: float) -> None:
    ours, peer = [sys.executable, "-c", OURS, operation, str(path)], [sys.executable, "-c", TWO_RULES, str(path)]
    pairs = [(_printed_seconds(ours), _printed_seconds(peer)) for _ in range(RUNS)]
    mine, theirs = (Figures(values) for values in zip(*pairs, strict=True))
    print(
        f"{operation}, {misplaced:.1%} misplaced: {mine.text('s')}; DuckDB: {theirs.text('s')}; "
        f"ratio {mine.over(theirs).text('x', 1)}"
    )


def _printed_seconds(words: Sequence[str]) -> float:
    return float(subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout)


def _compare(path: Path, partitions: int, misplaced: float) -> None:
    audit = [
        sys.executable,
        "-m",
        "rackspan",
        "audit",
        "--snapshot",
        str(path),
        "-o",
        "json",
        "--min-insync-racks",
        "2",
    ]
    peer = [sys.executable, "-c", PEER, str(path)]
    # In turn, so that both meet the same machine.
    pairs = [(run_process(audit, ok=(0, 2)), run_process(peer)) for _ in range(RUNS)]
    ours = Figures(tuple(one.seconds for one, _ in pairs))
    theirs = Figures(tuple(other.seconds for _, other in pairs))
    megabytes = Figures(tuple(one.megabytes for one, _ in pairs))
    print(
        f"{partitions:>9,} partitions, {misplaced:.0%} misplaced: {ours.text('s')}, {megabytes.text('MB', 0)}; "
        f"DuckDB: {theirs.text('s')}; ratio {ours.over(theirs).text('x')}"
    )
