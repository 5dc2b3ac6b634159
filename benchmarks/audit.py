"""A snapshot of 1,000,000 partitions from Parquet through `rackspan audit`, beside one DuckDB query over the same files."""

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks._measure import RUNS, Figures, machine, run_process
from rackspan.audit.constraints.cluster import CLUSTER_CONSTRAINTS
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.goals import GOALS
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, PartitionColumns, RackId, Topic, TopicName
from rackspan.sources.snapshot_folder import write_folder

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


def snapshot(partitions: int, *, misplaced: float, seed: int = 1) -> ClusterSnapshot:
    """Sixty brokers in three racks; a share of partitions has one replica moved into a rack already used."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, BROKERS, partitions)
    replicas = ((first[:, None] + np.arange(REPLICATION_FACTOR)) % BROKERS).astype(np.int32)
    moved = rng.random(partitions) < misplaced
    replicas[moved, 2] = (replicas[moved, 0] + RACKS) % BROKERS
    topics = partitions // PARTITIONS_PER_TOPIC
    none = np.empty((partitions, 0), dtype=np.int32)
    return ClusterSnapshot(
        cluster_id="bench",
        brokers=tuple(Broker(BrokerId(b), RackId(f"r{b % RACKS}")) for b in range(BROKERS)),
        controllers=tuple(Controller(BrokerId(b), RackId(f"r{b % RACKS}")) for b in range(3)),
        topics=tuple(Topic(TopicName(f"topic-{n:06}"), config={"min.insync.replicas": "2"}) for n in range(topics)),
        partitions=PartitionColumns(
            topic=np.repeat(np.arange(topics, dtype=np.int32), PARTITIONS_PER_TOPIC),
            partition=np.tile(np.arange(PARTITIONS_PER_TOPIC, dtype=np.int32), topics),
            leader=replicas[:, 0].copy(),
            replicas=replicas,
            isr=replicas.copy(),
            adding_replicas=none,
            removing_replicas=none.copy(),
            size_bytes=rng.integers(0, 10**10, partitions),
        ),
    )


def main() -> None:
    print(f"audit from a Parquet snapshot, whole processes, {RUNS} runs; {machine()}")
    constraints = len(PARTITION_CONSTRAINTS) + len(CLUSTER_CONSTRAINTS)
    print(f"audit judges {constraints} constraints and {len(GOALS)} goals, DuckDB one constraint")
    with tempfile.TemporaryDirectory() as folder:
        for partitions, misplaced in ((100_000, 0.0), (1_000_000, 0.0), (1_000_000, 0.01)):
            path = Path(folder) / f"{partitions}-{misplaced}"
            write_folder(snapshot(partitions, misplaced=misplaced), path)
            _compare(path, partitions, misplaced)


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
