"""A warehouse of version 0.1 becomes one of Delta tables: every row of every snapshot, once.

The old layout is written here from its description, with Arrow alone. Its writer itself, at the last commit of version 0.1, was
compared once: docs/decisions/0015-delta-lake.md.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rackspan import pipeline
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline.schemas import LANDING

IDS = pa.list_(pa.int32())
CONTROLLERS = pa.list_(pa.struct([("id", pa.int32()), ("rack", pa.string()), ("voter", pa.bool_())]))
FOLDERS = {
    ("a/b=c %41 é*{x}", datetime(2026, 11, 20, 23, 59, 59, 1, tzinfo=UTC)): (
        "cluster_id=a%2Fb%3Dc %2541 é%2A%7Bx%7D/day=2026-11-20/taken_at=20261120T235959.000001Z"
    ),
    ("a/b=c %41 é*{x}", datetime(2026, 11, 21, tzinfo=UTC)): (
        "cluster_id=a%2Fb%3Dc %2541 é%2A%7Bx%7D/day=2026-11-21/taken_at=20261121T000000.000000Z"
    ),
    ("007", datetime(2026, 11, 21, tzinfo=UTC)): "cluster_id=007/day=2026-11-21/taken_at=20261121T000000.000000Z",
}
BROKERS = [
    {"id": 1, "host": "h1", "port": 9092, "rack": "r1", "fenced": False},
    {"id": 2, "host": None, "port": None, "rack": None, "fenced": True},
]
TOPICS: list[dict[str, Any]] = [
    {"name": "orders", "topic_id": "u1", "internal": False, "config": {"min.insync.replicas": "2"}},
    {"name": "empty", "topic_id": None, "internal": True, "config": {}},
]


def partition(leader: int) -> dict[str, Any]:
    lists = {"replicas": [1, 2], "isr": [leader], "adding_replicas": [2], "removing_replicas": []}
    return {"topic": "orders", "partition": 7, "leader": leader, **lists, "size_bytes": None}


def old_warehouse(root: Path) -> Path:
    """Three snapshots, a table and an unfinished one in staging, as version 0.1 leaves them."""
    for number, ((cluster_id, taken_at), folder) in enumerate(FOLDERS.items()):
        write(root / "snapshots" / folder, cluster_id, taken_at, leader=1 + number % 2)
    (root / "tables" / "findings" / "cluster_id=007").mkdir(parents=True)
    (root / "tables" / "manifest.json").write_text('{"version": 2}')
    (root / "staging" / "ab" / "snapshot").mkdir(parents=True)
    (root / ".lock").touch()
    return root


def write(folder: Path, cluster_id: str, taken_at: datetime, leader: int) -> None:
    folder.mkdir(parents=True)
    head = {"version": 1, "cluster_id": cluster_id, "taken_at": taken_at, "partial": ["no sizes"]}
    controllers = [{"id": 101, "rack": "r1", "voter": True}]
    tables = {
        "cluster": pa.table(
            {name: [value] for name, value in {**head, "controllers": controllers}.items()},
            pa.schema(
                [
                    ("version", pa.int32()),
                    ("cluster_id", pa.string()),
                    ("taken_at", pa.timestamp("us", "UTC")),
                    ("partial", pa.list_(pa.string())),
                    ("controllers", CONTROLLERS),
                ]
            ),
        ),
        "brokers": pa.Table.from_pylist(BROKERS),
        "topics": pa.Table.from_pylist(
            [{**topic, "config": list(topic["config"].items())} for topic in TOPICS],
            pa.schema(
                [
                    ("name", pa.string()),
                    ("topic_id", pa.string()),
                    ("internal", pa.bool_()),
                    ("config", pa.map_(pa.string(), pa.string())),
                ]
            ),
        ),
        "partitions": pa.Table.from_pylist([partition(leader)]),
    }
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")


def without_keys(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("cluster_id", "taken_at", "day", "snapshot_id")}


def test_every_row_of_every_snapshot_is_in_the_new_warehouse_once(tmp_path: Path) -> None:
    old = old_warehouse(tmp_path / "old")
    for new_ones in (True, False):
        stored = [one.stored for one in pipeline.import_version_0_1(old, tmp_path / "new")]
        assert [one is not None and one.new for one in stored] == [new_ones] * len(FOLDERS)
    new = pipeline.open_warehouse(tmp_path / "new")
    rows = {name: list(pipeline.rows(new, name)) for name in LANDING}
    keys = sorted((cluster_id, taken_at) for cluster_id, taken_at in FOLDERS)
    assert [(row["cluster_id"], datetime.fromisoformat(row["taken_at"])) for row in rows["snapshots"]] == keys
    assert all(row["partial"] == ["no sizes"] for row in rows["snapshots"])
    assert all(row["controllers"] == [{"id": 101, "rack": "r1", "voter": True}] for row in rows["snapshots"])
    assert [without_keys(row) for row in rows["brokers"]] == BROKERS * 3
    assert [without_keys(row) for row in rows["topics"]] == sorted(TOPICS, key=lambda topic: topic["name"]) * 3
    leaders = {key: 1 + number % 2 for number, key in enumerate(FOLDERS)}
    assert [without_keys(row) for row in rows["partitions"]] == [partition(leaders[key]) for key in keys]
    assert sorted(path.name for path in old.iterdir()) == [".lock", "snapshots", "staging", "tables"]


def test_a_damaged_snapshot_is_named_and_the_others_are_stored(tmp_path: Path) -> None:
    old = old_warehouse(tmp_path / "old")
    first, second, _ = (old / "snapshots" / folder for folder in FOLDERS.values())
    (first / "topics.parquet").write_bytes(b"PAR1")
    second.rename(second.with_name("taken_at=20261121T000000.000002Z"))
    errors = [str(one.error) for one in pipeline.import_version_0_1(old, tmp_path / "new") if one.error]
    assert [error.startswith(str(old)) for error in errors] == [True, True]
    assert "topics.parquet: cannot be read: " in errors[0]
    assert "holds the snapshot of a/b=c %41 é*{x} at 2026-11-21 00:00:00+00:00, so the folder was moved" in errors[1]
    assert [row["cluster_id"] for row in pipeline.rows(pipeline.open_warehouse(tmp_path / "new"), "snapshots")] == [
        "007"
    ]


def test_what_is_no_warehouse_of_version_0_1_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    pipeline.create_warehouse(tmp_path / "delta")
    (tmp_path / "empty").mkdir()
    for folder in ("delta", "empty", "absent"):
        with pytest.raises(InvalidWarehouse, match=r"not a warehouse of rackspan 0\.1"):
            pipeline.import_version_0_1(tmp_path / folder, tmp_path / "new")
    assert not (tmp_path / "new").exists()
