"""Snapshots for the pipeline's tests: small ones by hand, many generated ones at once, recorded ones from files."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings

from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId, Topic, TopicName, columns
from rackspan.pipeline import Warehouse
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.read import read_snapshots
from rackspan.pipeline.schemas import CONTENT, SNAPSHOTS
from rackspan.sources import snapshot_file
from tests.strategies import with_known_controllers

RECORDED = Path(__file__).parent.parent / "vectors" / "snapshots"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
OF_SNAPSHOTS = tuple(table.name for table in (*CONTENT, SNAPSHOTS))
"""The landing tables that snapshots fill which come without readings."""
CLUSTER_IDS = ("007", "MkU3OEVBNTcwNTJENDM2Qg", "a/b=c %41 é*{x}")


def small(cluster_id: str | None = "one", taken_at: datetime | None = NOON, leader: int = 1) -> ClusterSnapshot:
    """Three brokers in three racks, one topic of two partitions."""
    return ClusterSnapshot(
        cluster_id=cluster_id,
        taken_at=taken_at,
        brokers=tuple(Broker(BrokerId(one), rack=RackId(f"r{one}")) for one in (1, 2, 3)),
        controllers=(Controller(BrokerId(1)), Controller(BrokerId(2)), Controller(BrokerId(3))),
        topics=(Topic(TopicName("orders"), config={"min.insync.replicas": "2"}),),
        partitions=columns(
            topic=[0, 0], partition=[0, 1], leader=[leader, 2], replicas=[[1, 2, 3], [2, 3, 1]], isr=[[1, 2, 3], [2]]
        ),
    )


def generated(count: int, cluster_ids: Sequence[str] = CLUSTER_IDS) -> list[ClusterSnapshot]:
    """So many generated snapshots, the same every time, each with a timestamp of its own, over a few clusters and two days."""
    drawn: list[ClusterSnapshot] = []

    @settings(
        max_examples=count, database=None, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(with_known_controllers())
    def draw(snapshot: ClusterSnapshot) -> None:
        drawn.append(snapshot)

    draw()
    return [
        replace(one, cluster_id=cluster_ids[number % len(cluster_ids)], taken_at=_timestamp(number))
        for number, one in enumerate(drawn[:count])
    ]


def kept(warehouse: Warehouse) -> list[ClusterSnapshot]:
    """Every snapshot of a warehouse."""
    markers = read_markers(warehouse)
    return read_snapshots(warehouse, markers.of_days(markers.count_by_day()))


def as_stored(warehouse: Warehouse, snapshots: Sequence[ClusterSnapshot]) -> list[ClusterSnapshot]:
    """The snapshots with the sizes that a warehouse has of them; all else has to be as it was given."""
    stored = {(one.cluster_id, one.taken_at): one for one in kept(warehouse)}
    found = []
    for snapshot in snapshots:
        mine = stored[snapshot.cluster_id, snapshot.taken_at]
        sizes = snapshot.partitions.size_bytes
        assert replace(mine, partitions=replace(mine.partitions, size_bytes=sizes)).same_as(snapshot)
        found.append(mine)
    return found


def zeros_in_column(file: Path, name: str) -> None:
    """Overwrite one column of a Parquet file with zeros, as a bad block would. Footer, size and the other columns stay."""
    group = pq.read_metadata(file).row_group(0)
    chunks = (group.column(number) for number in range(group.num_columns))
    chunk = next(one for one in chunks if one.path_in_schema == name)
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(file.read_bytes())
    content[first : first + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    file.write_bytes(content)


def recorded() -> list[ClusterSnapshot]:
    found = [snapshot_file.read(file).snapshot for file in sorted(RECORDED.glob("*.json"))]
    assert found, f"{RECORDED} holds no snapshots"
    return found


def _timestamp(number: int) -> datetime:
    """Two days' worth, with microseconds, some right at midnight."""
    return datetime(2026, 11, 21, tzinfo=UTC) + timedelta(
        minutes=7 * (number // 2) * (-1) ** number, microseconds=number % 3
    )
