"""What making hours again finds: by whose policy an hour was made, and each remedy leaves a clean warehouse.

The helpers that damage and check a warehouse are those of tests/pipeline/test_check.py.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from rackspan.audit import FleetPolicy, RackPolicy
from rackspan.pipeline import Warehouse, create_warehouse, open_warehouse, repaired_warehouse, rows
from rackspan.pipeline.delta.append import append, commit
from rackspan.pipeline.delta.table import data_files
from rackspan.pipeline.hours.again import _by_same_policy
from rackspan.pipeline.hours.work import hour_id
from rackspan.pipeline.maintain import maintain
from rackspan.pipeline.policies import policies_document
from rackspan.pipeline.runs import Run
from rackspan.pipeline.schemas import HOURLY, OF_READINGS
from rackspan.pipeline.warehouse import existing_table
from tests.depth import at_depth, one_in
from tests.pipeline.examples import NOON
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.plain_build import refresh
from tests.pipeline.readings import history, moved, store_readings
from tests.pipeline.test_check import (
    HARMS,
    checked,
    cleaned,
    half,
    in_a_table_each,
    newest_entry,
    newest_file,
    put_into_force,
)

pytestmark = pytest.mark.slow

# Of every pair of a damage and a table some need two readings of a cluster in a round.
EACH = at_depth(test=1, soak=2)
READINGS = [history(Random(seed), 3 * EACH, cluster, 1500.0) for seed, cluster in ((5, "eu"), (6, "us"))]
READ = [[one for of_cluster in READINGS for one in of_cluster[at : at + EACH]] for at in range(0, 3 * EACH, EACH)]
STRICT = RackPolicy(min_insync_racks=2)


def refresh_hours(warehouse: Warehouse, **options: Any) -> None:
    refresh(warehouse, STRICT, prices=PRICES, **options)


@pytest.fixture(scope="module")
def template_of_readings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Readings of each of two clusters, stored and judged in three rounds."""
    made = create_warehouse(tmp_path_factory.mktemp("readings") / "warehouse")
    for readings in READ:
        store_readings(made, readings)
        refresh_hours(made)
    assert all(list(rows(made, name, 1)) for name in HOURLY)
    return Path(made.root)


@pytest.fixture
def read(template_of_readings: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template_of_readings, tmp_path / "warehouse"))


def hours_of(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row.items() if key not in ("run_id", "schema_version")}
        for row in rows(warehouse, name)
    ]


Alone: TypeAlias = Callable[..., Mapping[str, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    """The rows of each table of hours where nothing but some rounds was ever stored."""

    @cache
    def made(*rounds: int) -> Mapping[str, list[dict[str, Any]]]:
        warehouse = create_warehouse(tmp_path_factory.mktemp("alone") / "warehouse")
        store_readings(warehouse, [reading for place in rounds for reading in READ[place]])
        refresh_hours(warehouse)
        return {name: hours_of(warehouse, name) for name in HOURLY}

    return made


def check_hours(root: Path, wanted: Mapping[str, list[dict[str, Any]]]) -> None:
    for name in HOURLY:
        assert hours_of(open_warehouse(root), name) == wanted[name], name


def test_a_whole_warehouse_with_readings_has_no_problems(read: Path) -> None:
    assert checked(read, whole=True).problems == ()


@pytest.mark.parametrize(("table", "harm"), in_a_table_each(HARMS, (*OF_READINGS, *HOURLY), stride=3))
def test_each_remedy_for_damage_to_readings_or_hours_leaves_a_clean_warehouse(
    read: Path, alone: Alone, table: str, harm: Callable[[Path], None]
) -> None:
    harm(newest_file(read, table))
    assert cleaned(read, refresh_hours)[0].table == table
    check_hours(read, alone(0, 1) if table in OF_READINGS else alone(0, 1, 2))


@pytest.mark.parametrize("place", one_in(3, (2, 1, 0)))
def test_the_hours_of_dropped_readings_are_made_of_what_is_left(read: Path, alone: Alone, place: int) -> None:
    """The first readings, those in between, and the last ones."""
    files = data_files(existing_table(open_warehouse(read), "logs"))
    half(read / "tables" / "logs" / sorted(files, key=lambda file: file.least or "")[place].path)
    [problem] = cleaned(read, refresh_hours)
    assert problem.remedy.startswith("rackspan pipeline maintain --drop-damaged")
    check_hours(read, alone(*(number for number in range(3) if number != place)))


def test_between_the_drop_and_the_next_run_no_hour_rests_on_what_was_dropped(read: Path) -> None:
    half(newest_file(read, "logs"))
    maintain(repaired_warehouse(read), now=lambda: datetime.now(UTC), give_up=lambda _: None)
    last = {one[0].snapshot.cluster_id: one[2 * EACH - 1].read_at for one in READINGS}
    for name in HOURLY:
        for row in rows(open_warehouse(read), name):
            assert datetime.fromisoformat(row["hour"]) <= last[row["cluster_id"]], name
    assert checked(read, whole=True).problems == ()


def with_another_value(rows: pa.Table) -> pa.Table:
    """Another value of the last column of text or seconds, in the last row."""
    columns = [field for field in rows.schema if field.type in (pa.string(), pa.float64())]
    field = [each for each in columns if each.name not in ("run_id", "cluster_id", "hour_id")][-1]
    values = rows[field.name].to_pylist()
    values[-1] = "other" if field.type == pa.string() else -1.0
    return rows.set_column(rows.column_names.index(field.name), field, pa.array(values, field.type))


def with_a_row_less(rows: pa.Table) -> pa.Table:
    return rows.slice(0, len(rows) - 1)


def with_an_hour_more(rows: pa.Table) -> pa.Table:
    """The last row again, ten hours later, when nothing was stored."""
    (row,) = rows.slice(len(rows) - 1).to_pylist()
    later = row["hour"] + timedelta(hours=10)
    other = {**row, "hour": later, "hour_id": hour_id(row["cluster_id"], later)}
    return pa.concat_tables([rows, pa.Table.from_pylist([other], rows.schema)])


MISTAKES = (with_another_value, with_a_row_less, with_an_hour_more)


@pytest.mark.parametrize(("table", "mistake"), in_a_table_each(MISTAKES, tuple(HOURLY)))
def test_hours_with_other_rows_than_their_readings_give_are_found_and_made_again(
    read: Path, alone: Alone, table: str, mistake: Callable[[pa.Table], pa.Table]
) -> None:
    opened = existing_table(open_warehouse(read), table)
    stored = pa.concat_tables(pq.read_table(uri, partitioning=None) for uri in opened.file_uris())
    planted = mistake(stored.sort_by([("hour", "ascending")]))
    wrong = max([*planted["hour"].to_pylist(), *stored["hour"].to_pylist()])
    commit(opened, [], {}, removed=data_files(opened))
    days = pc.cast(planted["hour"], pa.date32())
    append(existing_table(open_warehouse(read), table), planted.append_column("day", days), {})
    put_into_force(open_warehouse(read), table)
    [problem] = cleaned(read, refresh_hours)
    assert (problem.kind, problem.table) == ("other-rows", table)
    assert problem.problem.startswith("in 1 hours it has other rows than making them again gives")
    assert f" at {wrong:%Y-%m-%d %H:%M})" in problem.problem
    assert problem.remedy == f"rackspan pipeline rebuild {table} --warehouse {read}"
    check_hours(read, alone(0, 1, 2))


def test_a_cluster_whose_every_reading_waits_for_the_next_run_is_no_problem(read: Path) -> None:
    store_readings(open_warehouse(read), history(Random(9), 4, "new", 1500.0))
    assert checked(read, whole=True).problems == ()


def test_past_advice_by_another_policy_and_hours_before_what_retention_left_are_no_problem(read: Path) -> None:
    refresh(open_warehouse(read), RackPolicy(), prices=PRICES)
    assert checked(read, whole=True).problems == ()
    late = [moved(of_cluster[-1], 86_400.0 * days) for of_cluster in READINGS for days in (1, 2)]
    store_readings(open_warehouse(read), late)
    refresh(open_warehouse(read), RackPolicy(), prices=PRICES)
    now = late[-1].read_at
    maintain(open_warehouse(read), now=lambda: now, keep_days=1)
    assert checked(read, whole=True).problems == ()


def test_a_run_that_is_printed_where_there_is_a_bill_names_its_prices(read: Path) -> None:
    entry = newest_entry(read, "findings")
    entry.write_bytes(entry.read_bytes()[:100])
    [problem, *_] = checked(read).problems
    assert problem.remedy == f"rackspan pipeline run --warehouse {read} --prices FILE"


def test_an_hour_is_of_the_policy_in_force_where_its_cluster_has_had_no_other() -> None:
    plain, fleet = RackPolicy(), FleetPolicy(RackPolicy(), {"b": RackPolicy(min_insync_racks=2)})
    run = Run(2, "2", "run", NOON, NOON, policies_document(plain), {}, {})
    policies = {"1": json.dumps(policies_document(fleet)), "2": json.dumps(policies_document(plain))}
    assert [_by_same_policy(run, policies, written_by, "b") for written_by in ("1", "2", None)] == [False, True, False]
    assert all(_by_same_policy(run, policies, written_by, "a") for written_by in ("1", "2", None))
