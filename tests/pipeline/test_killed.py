"""SIGKILL before and after every step that changes files: nothing is lost, nothing doubled, and no reader sees half of anything."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from rackspan.audit import RackPolicy
from rackspan.errors import InvalidWarehouse
from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, rows, store
from rackspan.pipeline.check import check
from rackspan.pipeline.schemas import LANDING, TABLES
from rackspan.sources import snapshot_file
from tests.depth import at_depth
from tests.pipeline import expected
from tests.pipeline.examples import NOON, kept, small
from tests.pipeline.killed import (
    Victims,
    collected,
    given_up,
    last_touch,
    maintained,
    rebuilt,
    refreshed,
    repaired,
    victims,
)

SNAPSHOTS = [small(taken_at=NOON + timedelta(hours=18 * number), leader=-1 + 2 * (number % 2)) for number in range(3)]

STRIDE = at_depth(test=7, soak=1)
"""Every step in make soak, every seventh one in make test."""


@pytest.fixture(scope="module")
def forked() -> Iterator[Victims]:
    with victims() as server:
        yield server


@pytest.fixture
def given(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    for number, snapshot in enumerate(SNAPSHOTS):
        folder.mkdir(exist_ok=True)
        snapshot_file.write(snapshot, folder / f"{number}.json")
    return folder


def deaths(
    forked: Victims, fresh: Callable[[], Path], work: Callable[..., None], *more: Any, stride: int = STRIDE
) -> Iterator[tuple[Path, str]]:
    """A warehouse for each touch at which the work can die, and what it was about to do or had done. Prints them, counted."""
    histogram: Counter[str] = Counter()
    kill_point = 0
    while forked.killed_at(kill_point, work, root := fresh(), *more):
        histogram[last_touch(root)] += 1
        yield root, last_touch(root)
        kill_point += stride
    print(f"\n{work.__name__}: killed at {histogram.total()} of its steps: {dict(histogram)}")
    assert histogram.total() >= 12


@pytest.mark.slow
def test_a_collect_that_was_killed_has_whole_snapshots_and_its_next_run_the_rest(
    forked: Victims, tmp_path: Path, given: Path
) -> None:
    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return tmp_path / "warehouse"

    for root, touch in deaths(forked, fresh, collected, given):
        before = kept(open_warehouse(root)) if (root / "tables" / "snapshots" / "_delta_log").is_dir() else []
        assert len(before) in (0, len(SNAPSHOTS)), touch
        assert all(mine.same_as(theirs) for mine, theirs in zip(before, SNAPSHOTS, strict=False)), touch
        collected(root, given)
        warehouse = open_warehouse(root)
        after = kept(warehouse)
        assert len(after) == len(SNAPSHOTS), touch
        assert all(mine.same_as(theirs) for mine, theirs in zip(after, SNAPSHOTS, strict=True)), touch
        for name in LANDING:
            # The tables as others read them, without the marker: no row is there twice.
            whole = DeltaTable(warehouse.table(name)).to_pyarrow_table()
            assert len(whole) == len(list(rows(warehouse, name))), touch


def tables(warehouse: Warehouse) -> dict[str, list[dict[str, Any]]]:
    return {name: expected.judged_columns(rows(warehouse, name)) for name in TABLES}


def wanted(min_insync_racks: int) -> dict[str, list[Any]]:
    policy = RackPolicy(min_insync_racks=min_insync_racks)
    return {
        name: expected.ordered(expected.table(name, SNAPSHOTS, policy), table.grain) for name, table in TABLES.items()
    }


@pytest.mark.slow
def test_a_run_that_was_killed_left_the_old_tables_or_the_new_ones(
    forked: Victims, tmp_path: Path, given: Path
) -> None:
    template = Path(create_warehouse(tmp_path / "template").root)
    for snapshot in SNAPSHOTS:
        store(snapshot, open_warehouse(template))
    refreshed(template, 1)
    old, new = wanted(1), wanted(2)

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "warehouse"))

    for root, touch in deaths(forked, fresh, refreshed, 2, stride=at_depth(test=8, soak=1)):
        warehouse = open_warehouse(root)
        assert tables(warehouse) in (old, new), touch
        refreshed(root, 2)
        assert tables(warehouse) == new, touch


@pytest.mark.rest
@pytest.mark.slow
def test_a_maintenance_that_was_killed_left_the_tables_of_before_or_after(forked: Victims, tmp_path: Path) -> None:
    template = Path(create_warehouse(tmp_path / "template").root)
    for snapshot in SNAPSHOTS:
        store(snapshot, open_warehouse(template))
        refreshed(template, 1)
    old = tables(open_warehouse(template))
    kept_days = {one.taken_at.date().isoformat() for one in SNAPSHOTS[1:] if one.taken_at is not None}
    new = {name: [row for row in rows_ if row["taken_at"][:10] in kept_days] for name, rows_ in old.items()}
    assert new != old

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "warehouse"))

    now = (NOON + timedelta(days=2)).isoformat()
    for root, touch in deaths(forked, fresh, maintained, now, stride=at_depth(test=19, soak=1)):
        warehouse = open_warehouse(root)
        assert tables(warehouse) in (old, new), touch
        assert len(kept(warehouse)) in (2, 3), touch
        maintained(root, now)
        assert tables(warehouse) == new, touch
        assert all(mine.same_as(theirs) for mine, theirs in zip(kept(warehouse), SNAPSHOTS[1:], strict=True)), touch


@pytest.fixture
def template(tmp_path: Path) -> Path:
    """A warehouse of three runs."""
    made = create_warehouse(tmp_path / "template")
    for snapshot in SNAPSHOTS:
        store(snapshot, made)
        refreshed(Path(made.root), 1)
    return Path(made.root)


@pytest.mark.soak
@pytest.mark.parametrize("harmed", ["snapshots", "partitions", "brokers"])
def test_a_repair_that_was_killed_is_ended_by_the_next_one(
    forked: Victims, tmp_path: Path, template: Path, harmed: str
) -> None:
    entry = max((template / "tables" / harmed / "_delta_log").glob("*.json"))
    entry.write_bytes(entry.read_bytes()[:70])

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "warehouse"))

    for root, touch in deaths(forked, fresh, repaired, stride=1):
        found = kept(create_warehouse(root))
        assert all(mine.same_as(theirs) for mine, theirs in zip(found, SNAPSHOTS, strict=True)), touch
        assert check(open_warehouse(root), now=NOON, whole=True).problems == (), touch


@pytest.mark.soak
@pytest.mark.parametrize("harm", ["file", "log", "folder"])
@pytest.mark.parametrize("harmed", ["findings", "judged", "runs"])
def test_a_rebuild_that_was_killed_left_old_rows_or_none_and_the_next_one_ends_it(
    forked: Victims, tmp_path: Path, template: Path, harmed: str, harm: str
) -> None:
    folder = template / "tables" / harmed
    new = wanted(1)
    if harm == "folder":
        shutil.rmtree(folder)
    else:
        file = max((folder / "_delta_log").glob("*.json") if harm == "log" else folder.rglob("*.parquet"))
        file.write_bytes(file.read_bytes()[:70])

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "warehouse"))

    for root, touch in deaths(forked, fresh, rebuilt, stride=2):
        for name in TABLES:
            try:
                assert expected.judged_columns(rows(open_warehouse(root), name)) == new[name], touch
            except InvalidWarehouse:
                continue
        rebuilt(root)
        assert tables(open_warehouse(root)) == new, touch
        assert check(open_warehouse(root), now=NOON, whole=True).problems == (), touch


@pytest.mark.soak
@pytest.mark.parametrize("harmed", ["snapshots", "partitions"])
def test_damage_that_was_given_up_by_half_is_given_up_by_the_next_try(
    forked: Victims, tmp_path: Path, template: Path, harmed: str
) -> None:
    file = max((template / "tables" / harmed).glob("day=*/*.parquet"))
    file.write_bytes(file.read_bytes()[:70])

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "warehouse"))

    for root, touch in deaths(forked, fresh, given_up, stride=2):
        given_up(root)
        assert check(open_warehouse(root), now=NOON, whole=True).problems == (), touch
        assert len(kept(open_warehouse(root))) == (3 if harmed == "snapshots" else 2), touch


@pytest.mark.slow
def test_readers_find_one_run_or_the_other_while_runs_go_on(forked: Victims, tmp_path: Path) -> None:
    root = Path(create_warehouse(tmp_path / "warehouse").root)
    for snapshot in SNAPSHOTS:
        store(snapshot, open_warehouse(root))
    refreshed(root, 1)
    known = {1: wanted(1), 2: wanted(2)}
    reads: Counter[int] = Counter()
    for racks in [2, 1] * at_depth(test=1, soak=5):
        with forked.at_work(refreshed, root, racks) as done:
            while not done():
                for name in TABLES:
                    read = expected.judged_columns(rows(open_warehouse(root), name))
                    assert read in [known[1][name], known[2][name]]
                    reads[1 if read == known[1][name] else 2] += 1
    assert set(reads) == {1, 2}
