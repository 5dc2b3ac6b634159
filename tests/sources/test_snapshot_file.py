from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from rackspan.errors import InvalidSnapshot, UsageError
from rackspan.model import ClusterSnapshot, json_format
from rackspan.sources import snapshot_file, snapshot_folder
from tests.model.test_json_format import MINIMAL
from tests.power_loss import FlushedFolder
from tests.strategies import snapshots


@given(snapshots())
def test_tables_give_back_the_snapshot_they_were_made_of(snapshot: ClusterSnapshot) -> None:
    assert snapshot_folder.from_tables(snapshot_folder.to_tables(snapshot)).same_as(snapshot)


@pytest.fixture
def snapshot() -> ClusterSnapshot:
    return json_format.from_document(MINIMAL).snapshot


@pytest.mark.parametrize("name", ["moment.json", "moment"])
def test_a_file_and_a_folder_give_back_what_was_written(tmp_path: Path, name: str, snapshot: ClusterSnapshot) -> None:
    snapshot_file.write(snapshot, tmp_path / name)
    assert snapshot_file.read(tmp_path / name).snapshot.same_as(snapshot)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_the_time_of_a_snapshot_is_one_of_utc_in_its_files(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    snapshot_folder.write_folder(snapshot, tmp_path / "moment")
    schema = pq.read_schema(tmp_path / "moment" / "cluster.parquet")
    assert str(schema.field("taken_at").type) == "timestamp[us, tz=UTC]"


@pytest.mark.slow
@given(snapshots())
def test_brokers_and_controllers_are_read_without_the_rest(snapshot: ClusterSnapshot) -> None:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "moment"
        snapshot_folder.write_folder(snapshot, folder)
        (folder / "partitions.parquet").unlink()
        brokers, controllers = snapshot_folder.read_registration(folder)
        assert brokers == tuple(replace(one, host=None, port=None) for one in snapshot.brokers)
        assert controllers == snapshot.controllers


def test_a_registration_that_cannot_be_read_names_the_folder(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    snapshot_folder.write_folder(snapshot, tmp_path / "moment")
    (tmp_path / "moment" / "brokers.parquet").write_bytes(b"")
    with pytest.raises(InvalidSnapshot, match=r"moment: brokers\.parquet: cannot be read: Parquet file size is 0"):
        snapshot_folder.read_registration(tmp_path / "moment")


def test_a_folder_under_partitioned_names_gains_no_columns(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    folder = tmp_path / "cluster_id=x" / "day=2026-11-21" / "moment"
    snapshot_folder.write_folder(snapshot, folder)
    assert snapshot_file.read(folder).warnings == ()


@pytest.mark.parametrize("name", ["cluster", "new/cluster", "new/cluster.json"])
def test_a_snapshot_that_was_written_is_there_after_a_power_loss(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FlushedFolder(tmp_path, monkeypatch)
    snapshot_file.write(json_format.from_document(MINIMAL).snapshot, tmp_path / name)
    written = {str(file.relative_to(tmp_path)): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert len(written) in (1, 4)
    assert disk.left() == written


def test_an_existing_folder_is_not_overwritten(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    (tmp_path / "moment").mkdir()
    with pytest.raises(UsageError, match="exists already; name a new folder"):
        snapshot_file.write(snapshot, tmp_path / "moment")
    assert list((tmp_path / "moment").iterdir()) == []


def test_a_write_that_fails_leaves_nothing_behind(
    tmp_path: Path, snapshot: ClusterSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Path) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(snapshot_file, "rename_folder", failing)
    (tmp_path / "file").write_text("in the way")
    for name in ("file/moment.json", "file/moment", "moment"):
        with pytest.raises(UsageError, match="cannot be written"):
            snapshot_file.write(snapshot, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "moment.json"
    path.touch()

    def failing(_: Path) -> bytes:
        raise OSError("a bad\nsector")

    monkeypatch.setattr(Path, "read_bytes", failing)
    with pytest.raises(InvalidSnapshot) as refusal:
        snapshot_file.read(path)
    assert str(refusal.value) == f"{path}: cannot be read: a bad sector; take the snapshot again"


def _with(tmp_path: Path, snapshot: ClusterSnapshot, name: str, table: pa.Table) -> Path:
    snapshot_folder.write_folder(snapshot, tmp_path / "s")
    pq.write_table(table, tmp_path / "s" / f"{name}.parquet")
    return tmp_path / "s"


def test_a_foreign_parquet_file_is_refused_by_table_and_column(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    path = _with(tmp_path, snapshot, "partitions", pa.table({"a": [1]}))
    with pytest.raises(InvalidSnapshot) as refusal:
        snapshot_file.read(path)
    assert str(refusal.value) == f"{path}: partitions.parquet: column topic is missing; take the snapshot again"


def test_columns_that_may_be_missing_are_nulls_and_others_are_ignored(
    tmp_path: Path, snapshot: ClusterSnapshot
) -> None:
    ids = [int(broker.id) for broker in snapshot.brokers]
    path = _with(tmp_path, snapshot, "brokers", pa.table({"colour": ["red"] * len(ids), "id": ids}))
    read = snapshot_file.read(path).snapshot
    assert [(broker.id, broker.rack, broker.host, broker.port, broker.fenced) for broker in read.brokers] == [
        (broker, None, None, None, False) for broker in ids
    ]


def test_a_required_column_with_a_null_or_that_is_there_twice_is_refused(
    tmp_path: Path, snapshot: ClusterSnapshot
) -> None:
    path = _with(tmp_path, snapshot, "brokers", pa.table({"id": pa.array([1, None], pa.int32())}))
    with pytest.raises(InvalidSnapshot, match=r"brokers\.parquet: column id holds nulls; take the snapshot again$"):
        snapshot_file.read(path)
    pq.write_table(pa.table([[1], [2]], names=["id", "id"]), path / "brokers.parquet")
    with pytest.raises(InvalidSnapshot, match=r"brokers\.parquet: column id is there twice; take the snapshot again$"):
        snapshot_file.read(path)


@pytest.mark.parametrize("rows", [0, 2])
def test_a_table_of_other_than_one_snapshot_is_refused(rows: int, tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    heads = pa.concat_tables([snapshot_folder.to_tables(snapshot)["cluster"]] * 2).slice(0, rows)
    with pytest.raises(InvalidSnapshot, match=rf"cluster\.parquet: {rows} rows, but a snapshot is one; take it again$"):
        snapshot_file.read(_with(tmp_path, snapshot, "cluster", heads))


def test_ids_beyond_int32_are_refused_by_column(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    path = _with(tmp_path, snapshot, "brokers", pa.table({"id": [2**40]}))
    with pytest.raises(InvalidSnapshot, match=r"brokers\.parquet: column id is int64, not int32, or out of its range"):
        snapshot_file.read(path)


def test_a_padding_value_in_a_list_is_refused(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    rows = snapshot_folder.to_tables(snapshot)["partitions"].to_pylist()
    table = pa.Table.from_pylist([{**rows[0], "isr": [1, -1]}], schema=snapshot_folder.PARTITION_SCHEMA)
    with pytest.raises(InvalidSnapshot, match="isr names something that is not a broker id"):
        snapshot_file.read(_with(tmp_path, snapshot, "partitions", table))


def test_a_partition_of_a_topic_that_is_not_listed_is_refused(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    table = snapshot_folder.to_tables(snapshot)["topics"].slice(0, 0)
    with pytest.raises(InvalidSnapshot, match=r"topic 'orders' is not in topics\.parquet"):
        snapshot_file.read(_with(tmp_path, snapshot, "topics", table))


def test_an_unknown_column_is_a_warning(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    table = snapshot_folder.to_tables(snapshot)["brokers"].append_column("colour", pa.array(["red"]))
    assert snapshot_file.read(_with(tmp_path, snapshot, "brokers", table)).warnings == (
        "brokers.parquet: unknown column 'colour' ignored",
    )


def test_a_truncated_file_is_refused_in_one_line(tmp_path: Path, snapshot: ClusterSnapshot) -> None:
    snapshot_folder.write_folder(snapshot, tmp_path / "s")
    file = tmp_path / "s" / "partitions.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(InvalidSnapshot, match="cannot be read") as refusal:
        snapshot_file.read(tmp_path / "s")
    assert "\n" not in str(refusal.value)


def test_a_folder_that_is_no_snapshot_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidSnapshot, match=r"cluster\.parquet is missing, so this is not a snapshot folder"):
        snapshot_file.read(tmp_path)
