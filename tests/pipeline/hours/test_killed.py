"""SIGKILL before and after steps that change files, of a collector of readings and of a run that makes hours."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, rows
from rackspan.pipeline.schemas import HOURLY, OF_READINGS
from tests.depth import at_depth
from tests.pipeline.hours.test_hours import check, stored_rows
from tests.pipeline.killed import Victims, hours_made, read_and_stored, victims
from tests.pipeline.landing.test_readings import kept
from tests.pipeline.readings import history, same_readings, store_readings
from tests.pipeline.test_killed import STRIDE, deaths

pytestmark = pytest.mark.slow

READINGS = history(Random(3), 3)


@pytest.fixture(scope="module")
def forked() -> Iterator[Victims]:
    with victims() as server:
        yield server


def are_all(warehouse: Warehouse) -> bool:
    found = kept(warehouse)
    return len(found) == 3 and all(map(same_readings, found, READINGS))


def test_a_collector_that_was_killed_has_whole_readings_and_its_retry_the_rest(forked: Victims, tmp_path: Path) -> None:
    template = Path(create_warehouse(tmp_path / "template").root)

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "warehouse"))

    for root, touch in deaths(forked, fresh, read_and_stored, 3, stride=STRIDE):
        before = kept(open_warehouse(root))
        assert not before or are_all(open_warehouse(root)), touch
        read_and_stored(root, 3)
        warehouse = open_warehouse(root)
        assert are_all(warehouse), touch
        for name in OF_READINGS:
            whole = DeltaTable(warehouse.table(name)).to_pyarrow_table()
            assert len(whole) == len(list(rows(warehouse, name))), touch


@pytest.mark.rest
def test_a_run_that_was_killed_left_the_hours_of_before_or_of_after(forked: Victims, tmp_path: Path) -> None:
    template = Path(create_warehouse(tmp_path / "template").root)
    store_readings(open_warehouse(template), READINGS[::2])
    hours_made(template)
    old = {name: stored_rows(open_warehouse(template), name) for name in HOURLY}
    # Late: its hours are made again.
    store_readings(open_warehouse(template), READINGS[1:2])

    def fresh() -> Path:
        shutil.rmtree(tmp_path / "warehouse", ignore_errors=True)
        return Path(shutil.copytree(template, tmp_path / "warehouse"))

    switched = 0
    for root, touch in deaths(forked, fresh, hours_made, stride=at_depth(test=13, soak=1)):
        warehouse = open_warehouse(root)
        if any(stored_rows(warehouse, name) != rows for name, rows in old.items()):
            switched += 1
            check(warehouse, READINGS)
        hours_made(root)
        check(warehouse, READINGS)
        assert len(list(rows(warehouse, "judged"))) == 3, touch
    assert switched <= 3
