from contextlib import suppress
from pathlib import Path

import pytest

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import store
from rackspan.pipeline.warehouse import (
    Warehouse,
    claimed_staging,
    create_warehouse,
    only_run,
    open_warehouse,
    stored_snapshots,
    sweep_staging,
)
from tests.pipeline.examples import generated, small


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def claims(warehouse: Warehouse) -> list[Path]:
    return [entry for entry in warehouse.staging.iterdir() if entry.is_dir()]


def test_a_new_warehouse_is_made_in_a_new_or_empty_folder(tmp_path: Path) -> None:
    assert create_warehouse(tmp_path).root == open_warehouse(tmp_path).root
    assert create_warehouse(tmp_path / "a" / "b").snapshots.is_dir()


def test_a_folder_that_holds_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidWarehouse, match=r"holds other files and is no warehouse"):
        create_warehouse(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_in_place_of_a_warehouse_is_reported_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InvalidWarehouse, match=r"cannot be written: File exists"):
        create_warehouse(file)


def test_what_is_no_warehouse_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(InvalidWarehouse, match=r"no such folder; fill it first"):
        open_warehouse(tmp_path / "nowhere")
    with pytest.raises(InvalidWarehouse, match=r"not a warehouse"):
        open_warehouse(tmp_path)


def test_snapshots_are_listed_by_day_and_in_order_of_time(warehouse: Warehouse) -> None:
    snapshots = generated(12)
    for snapshot in snapshots:
        store(snapshot, warehouse)
    listed = stored_snapshots(warehouse)
    found = [(one.day.cluster_id, one.taken_at) for stored in listed.values() for one in stored]
    assert sorted(found) == sorted(
        (one.cluster_id, one.taken_at) for one in snapshots if one.cluster_id and one.taken_at
    )
    assert found == sorted(found)
    assert all(one.day.day == one.taken_at.date().isoformat() for stored in listed.values() for one in stored)


def test_files_of_others_among_the_snapshots_are_passed_over(warehouse: Warehouse) -> None:
    folder = store(small(), warehouse).path
    for stranger in (warehouse.snapshots, folder.parent, folder.parent.parent):
        (stranger / "README").write_text("mine")
        (stranger / "another=folder").mkdir()
    assert [one.folder for stored in stored_snapshots(warehouse).values() for one in stored] == [folder]


def test_a_snapshot_that_lost_a_file_is_named(warehouse: Warehouse) -> None:
    folder = store(small(), warehouse).path
    (folder / "topics.parquet").unlink()
    with pytest.raises(InvalidWarehouse, match=r"taken_at=.*: topics.parquet is missing; remove the folder"):
        stored_snapshots(warehouse)


def test_a_snapshot_moved_to_another_day_is_named(warehouse: Warehouse) -> None:
    folder = store(small(), warehouse).path
    folder.parent.rename(folder.parent.parent / "day=2026-01-01")
    with pytest.raises(InvalidWarehouse, match=r"moved by hand"):
        stored_snapshots(warehouse)


def test_staging_is_gone_when_its_block_ends_even_badly(warehouse: Warehouse) -> None:
    with suppress(RuntimeError), claimed_staging(warehouse) as claim:
        (claim / "half a file").write_text("…")
        raise RuntimeError
    assert claims(warehouse) == []


def test_the_sweep_takes_dead_claims_and_leaves_living_ones(warehouse: Warehouse) -> None:
    with claimed_staging(warehouse) as alive:
        for dead in ("with an owner that died", "without any"):
            (warehouse.staging / dead).mkdir()
        (warehouse.staging / "with an owner that died" / ".owner").touch()
        sweep_staging(warehouse)
        assert claims(warehouse) == [alive]


def test_a_second_run_refuses_at_once(warehouse: Warehouse) -> None:
    with (
        only_run(warehouse),
        pytest.raises(InvalidWarehouse, match=r"another rackspan pipeline run"),
        only_run(warehouse),
    ):
        pass
    with only_run(warehouse):
        pass
