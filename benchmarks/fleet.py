"""`make bench-fleet`: rows of traffic, made from stored readings by tasks of hours, and summed to a bill, beside DuckDB and Polars.

One cluster of 5,000 topics of three partitions in three racks, a reading an hour. Our tasks read landing files and write files of all tables of hours,
without Spark, in one process. DuckDB and Polars only read the rows that we made, and sum them by path and topic: a lower bound of what making them could cost there.
ROWS=100000000 in the environment for another number of rows.
"""

import os
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import duckdb
import numpy as np
import polars

from benchmarks._fleet import FIRST
from benchmarks._in_process import write_hours
from rackspan.audit import RackPolicy
from rackspan.clients import ReplicaSelectors
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.pipeline import Warehouse, create_warehouse
from rackspan.pipeline.hours.work import HoursWork, concerned_hours, with_reading
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.traffic import ClusterLogs, ClusterReading

TOPICS = 5_000
SIZES = (100_000, 1_000_000, 10_000_000)


def main() -> None:
    sizes = (int(os.environ["ROWS"]),) if "ROWS" in os.environ else SIZES
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            warehouse = create_warehouse(Path(folder) / "warehouse")
            hours = -(-rows // (TOPICS * 15))
            _store(warehouse, hours)
            made, ours = _timed(lambda warehouse=warehouse: _made(warehouse))  # type: ignore[misc]
            files = f"{warehouse.table('traffic')}/*/*/*.parquet"
            summed = f"select path, topic, sum(bytes) as bytes from read_parquet('{files}') where source_rack <> destination_rack group by all"
            total, by_duckdb = _timed(lambda summed=summed: _by_duckdb(summed))  # type: ignore[misc]
            other, by_polars = _timed(lambda files=files: _by_polars(files))  # type: ignore[misc]
            assert total == other
            print(
                f"{made:,} rows of traffic: made in {ours:.1f} s of processors, {made / ours:,.0f} a second; "
                f"summed by DuckDB in {by_duckdb:.2f} s, by Polars in {by_polars:.2f} s"
            )


def _made(warehouse: Warehouse) -> int:
    markers = with_reading(read_markers(warehouse))
    given = markers.of_days(markers.count_by_day())
    work = HoursWork("0000000001-bench", tuple(concerned_hours(markers, given)))
    return sum(file.rows for file in write_hours(warehouse, work, RackPolicy())["traffic"])


def _by_duckdb(query: str) -> int:
    with duckdb.connect() as connection:
        return int(connection.execute(f"select sum(bytes) from ({query})").fetchall()[0][0])


def _by_polars(files: str) -> int:
    rows = polars.scan_parquet(files).filter(polars.col("source_rack") != polars.col("destination_rack"))
    sums = rows.group_by("path", "topic").agg(polars.col("bytes").sum()).collect()
    return int(sums["bytes"].sum())


def _timed(work: Callable[[], int]) -> tuple[int, float]:
    """The result, and the seconds of processors that it took."""
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def _store(warehouse: Warehouse, hours: int) -> None:
    bases = Bases()
    rng = np.random.default_rng(0)
    end = np.zeros(TOPICS * 3, np.int64)
    for number in range(hours + 1):
        snapshot = _cluster(number)
        logs = ClusterLogs(
            snapshot, FIRST + timedelta(hours=number), end.copy(), np.repeat(end[:, None] * 100, 3, axis=1)
        )
        reading = ClusterReading(logs, (), dict.fromkeys(range(1, 7), ReplicaSelectors.LEADER), period_seconds=3600)
        store_all([snapshot], warehouse, bases, {0: reading})
        end += rng.integers(1, 10_000, len(end))


def _cluster(number: int) -> ClusterSnapshot:
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker), RackId(f"r{1 + broker % 3}")) for broker in range(1, 7)),
        topics=tuple(Topic(TopicName(f"topic-{topic:05}")) for topic in range(TOPICS)),
        partitions=columns(
            topic=[topic for topic in range(TOPICS) for _ in range(3)],
            partition=list(range(3)) * TOPICS,
            leader=[1, 2, 3] * TOPICS,
            replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]] * TOPICS,
            isr=[[1, 2, 3]] * (3 * TOPICS),
        ),
        cluster_id="fleet",
        taken_at=FIRST + timedelta(hours=number),
    )


if __name__ == "__main__":
    main()
