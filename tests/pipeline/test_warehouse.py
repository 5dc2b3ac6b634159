import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable, TableFeatures

from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import create_warehouse, rows, store
from rackspan.pipeline.warehouse import FilesRead, Warehouse, existing_table, named_warehouse, only_run, open_warehouse
from tests.pipeline.examples import small


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


def test_a_new_warehouse_is_made_in_a_new_or_empty_folder(tmp_path: Path) -> None:
    assert create_warehouse(tmp_path).root == open_warehouse(tmp_path).root
    assert Path(create_warehouse(tmp_path / "a" / "b").table("snapshots")).is_dir()


def test_a_folder_that_holds_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InvalidWarehouse, match=r"holds other files and is not a warehouse"):
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


def test_a_log_of_snapshots_that_cannot_be_read_names_the_command_that_shows_what_to_do(warehouse: Warehouse) -> None:
    Path(warehouse.table("snapshots"), "_delta_log", f"{0:020}.json").write_text('{"protocol": {}}')
    with pytest.raises(
        InvalidWarehouse, match=rf"; rackspan pipeline check --whole --warehouse {warehouse.root} shows what to do$"
    ):
        open_warehouse(warehouse.root)


def test_a_second_run_refuses_at_once(warehouse: Warehouse) -> None:
    with (
        only_run(warehouse),
        pytest.raises(InvalidWarehouse, match=r"another rackspan pipeline run"),
        only_run(warehouse),
    ):
        pass
    with only_run(warehouse):
        pass


def test_a_lock_that_cannot_be_opened_is_reported_in_one_line(warehouse: Warehouse) -> None:
    Path(warehouse.root, ".lock").mkdir()
    with pytest.raises(InvalidWarehouse, match=r": cannot be written: Is a directory; change its permissions$"):
        only_run(warehouse).__enter__()


def test_a_url_of_an_unknown_scheme_is_refused_and_a_file_url_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidWarehouse, match=r"the scheme ftp is none of file, s3"):
        create_warehouse("ftp://host/warehouse")
    made = create_warehouse(f"file://{tmp_path}/a%20b")
    assert made.folder == tmp_path / "a b"
    assert open_warehouse(tmp_path / "a b") == made


@pytest.mark.parametrize("name", ["a%20b", "%C3%A9", "a\\b", "a\nb"])
def test_a_path_that_delta_rs_takes_for_another_is_refused_before_anything_is_written(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(
        InvalidWarehouse, match=r"delta-rs reads .* in a path as something else; choose another --warehouse$"
    ):
        create_warehouse(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a b", "100% é", "a#b?c=1:d", "a*[b]{c}"])
def test_a_path_may_have_any_other_characters(tmp_path: Path, name: str) -> None:
    store(small(), create_warehouse(tmp_path / name))
    assert [row["cluster_id"] for row in rows(open_warehouse(tmp_path / name), "snapshots")] == ["one"]
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("url", ["file:/tmp/w", "s3:/bucket/w"])
def test_a_url_without_its_second_slash_is_no_folder_of_that_name(url: str) -> None:
    """As Hadoop writes them."""
    scheme, _, rest = url.partition(":/")
    with pytest.raises(InvalidWarehouse, match=f"; write {scheme}://{'/' if scheme == 'file' else ''}{rest}$"):
        named_warehouse(url)


@pytest.fixture
def keeping(warehouse: Warehouse) -> Warehouse:
    return replace(warehouse, read=FilesRead())


def test_a_table_that_a_run_has_opened_is_read_on_not_opened_again(warehouse: Warehouse, keeping: Warehouse) -> None:
    opened = existing_table(keeping, "snapshots")
    assert opened.version() == 0
    store(small(), warehouse)
    assert existing_table(keeping, "snapshots", 0).version() == 0
    assert existing_table(keeping, "snapshots") is opened
    assert opened.version() == 1
    assert existing_table(warehouse, "snapshots") is not opened


def test_a_table_in_the_place_of_one_that_was_opened_is_opened(warehouse: Warehouse, keeping: Warehouse) -> None:
    store(small(), warehouse)
    opened = existing_table(keeping, "snapshots")
    shutil.rmtree(Path(warehouse.table("snapshots")))
    with pytest.raises(InvalidWarehouse, match="its table snapshots is gone"):
        existing_table(keeping, "snapshots")
    create_warehouse(warehouse.root)
    assert existing_table(keeping, "snapshots").version() == 0
    assert opened.version() == 1


def test_a_feature_that_somebody_enabled_since_a_table_was_opened_is_refused(keeping: Warehouse) -> None:
    existing_table(keeping, "snapshots")
    elsewhere = DeltaTable(keeping.table("snapshots"))
    elsewhere.alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    with pytest.raises(InvalidWarehouse, match="somebody enabled deletionVectors, which rackspan does not read"):
        existing_table(keeping, "snapshots")


def test_spark_is_given_the_scheme_that_hadoop_has_for_a_bucket() -> None:
    assert Warehouse("s3://bucket/w").spark_path("runs") == "s3a://bucket/w/tables/runs"
    assert Warehouse("abfss://c@a.dfs.core.windows.net/w").spark_path("runs").startswith("abfss://c@a")
