"""Makes the hours again and compares with the rows that the tables have: what `pipeline check --whole` does.

Nothing is written, and no Spark is needed. Compared are only hours whose inputs are all there still: an hour up to the first stored snapshot of its cluster
may rest on one that retention has dropped, one that a snapshot without rows concerns is made again by the next run, and past advice is by the policy of the run that
made it. Bound: one task of hours, and the ids of all hours of a day. Tests: tests/pipeline/hours/test_again.py.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cache
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rackspan.pipeline.delta.table import DataFile, data_files, read_files, rows_by_day
from rackspan.pipeline.hours.task import task_rows
from rackspan.pipeline.hours.work import (
    ClusterHours,
    HoursWork,
    HourTask,
    concerned_hours,
    has_reading,
    hour_id,
    hour_of,
    hour_tasks,
    with_whole,
)
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.policies import document_of, policies_of
from rackspan.pipeline.runs import Run, judged_bases
from rackspan.pipeline.schemas import HOURLY, JUDGED, RUNS, Table
from rackspan.pipeline.schemas.hours import ADVICE, OF_STATES
from rackspan.pipeline.table import in_order
from rackspan.pipeline.warehouse import Warehouse, existing_table
from rackspan.traffic import PriceFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

NOT_COMPARED: Final = ("day", "run_id", "schema_version")


def other_hours(
    warehouse: Warehouse, run: Run, unsure: Collection[str], names: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Each table of `names`, and hour as CLUSTER at TIME, whose rows are not those that making it again gives.

    `unsure` are the ids of snapshots that are not whole, or were not for the last run. Errors: InvalidWarehouse.
    """
    judged = existing_table(warehouse, JUDGED.name, run.versions[JUDGED.name])

    @cache
    def bases(day: date) -> Mapping[str, str | None]:
        return judged_bases(judged, [day])

    def is_judged(snapshot: StoredSnapshot) -> bool:
        return snapshot.snapshot_id in bases(snapshot.day)

    for of_states in (False, True):
        tables = [HOURLY[name] for name in names if (name in OF_STATES) == of_states and _is_of_this_release(run, name)]
        if not tables:
            continue
        counts = is_judged if of_states else has_reading
        every = replace(read_markers(warehouse, skip_damaged=True), chosen=counts)
        stored = every.of_days(every.count_by_day())
        waiting = [snapshot for snapshot in stored if snapshot.snapshot_id in unsure or not is_judged(snapshot)]
        ids = {snapshot.snapshot_id for snapshot in waiting}
        sure = replace(every, hidden=ids)
        made = _Made(run, stored)
        made.excuse(concerned_hours(every, waiting))
        given = [snapshot for snapshot in stored if snapshot.snapshot_id not in ids]
        hours = concerned_hours(sure, given, ended=of_states)
        work = HoursWork("", prices=_prices(run), damaged=warehouse.damaged)
        if of_states:
            work = replace(work, of_states=with_whole(hours, sure, bases))
        else:
            work = replace(work, of_readings=tuple(hours))
        opened = {table.name: existing_table(warehouse, table.name, run.versions[table.name]) for table in tables}
        policies = _policies_by_run(warehouse)
        for task in hour_tasks(warehouse, work, policies_of(run.policy), run.versions):
            yield from _other_of_task(task, opened, made, policies)
        yield from _of_no_task(opened, made)


@dataclass(slots=True)
class _Made:
    """The hours that were made again, and those that are not compared."""

    run: Run
    stored: Sequence[StoredSnapshot]
    ids: set[str] = field(default_factory=set)
    excused: set[str] = field(default_factory=set)
    firsts: dict[str, datetime] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for snapshot in self.stored:
            first = self.firsts.get(snapshot.cluster_id, snapshot.taken_at)
            self.firsts[snapshot.cluster_id] = min(first, snapshot.taken_at)

    def excuse(self, hours: Collection[ClusterHours]) -> None:
        self.excused |= {hour_id(each.cluster_id, hour) for each in hours for hour in each.hours}

    def compares(self, cluster_id: str, hour: datetime) -> bool:
        """Whether all that an hour was made of is stored still."""
        first = self.firsts.get(cluster_id)
        return first is not None and hour > hour_of(first) and hour_id(cluster_id, hour) not in self.excused


def _other_of_task(
    task: HourTask, opened: "Mapping[str, DeltaTable]", made: _Made, policies: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The hours of a task whose rows are others."""
    of_task = {
        hour_id(each.cluster_id, hour): (each.cluster_id, hour)
        for each in (*task.of_readings, *task.of_states)
        for hour in each.hours
    }
    made.ids |= of_task.keys()
    compared = {identity: at for identity, at in of_task.items() if made.compares(*at)}
    wanted = task_rows(task)
    found = {name: _stored(HOURLY[name], table, task.day, compared) for name, table in opened.items()}
    written_by = {
        row["hour_id"]: row["run_id"]
        for rows in found.values()
        for row in rows.select(["hour_id", "run_id"]).group_by(["hour_id", "run_id"]).aggregate([]).to_pylist()
    }
    for name, rows in found.items():
        ids = sorted(compared)
        if name == ADVICE.name:
            ids = [each for each in ids if _by_same_policy(made.run, policies, written_by.get(each), compared[each][0])]
        columns = [name for name in rows.column_names if name not in NOT_COMPARED]
        of_hours = [
            table.filter(pc.is_in(table["hour_id"], pa.array(ids, pa.string()))).select(columns)
            for table in (rows, wanted.get(name, rows.slice(0, 0)))
        ]
        if not _equal(*of_hours):
            for identity in ids:
                mine, theirs = (table.filter(pc.equal(table["hour_id"], identity)) for table in of_hours)
                if not _equal(mine, theirs):
                    yield name, _shown(*compared[identity])


def _stored(table: Table, opened: "DeltaTable", day: date, ids: Collection[str]) -> pa.Table:
    """The rows of some hours of a day, in order of the grain."""
    schema = pa.schema([field for field in table.schema if field.name != "day"])
    batches = read_files(opened, _of_day(opened, day), schema, sorted(ids))
    return in_order(pa.Table.from_batches(batches, schema), table.grain)


def _of_no_task(opened: "Mapping[str, DeltaTable]", made: _Made) -> Iterator[tuple[str, str]]:
    """The hours with rows that nothing stored concerns any more."""
    keys = ("cluster_id", "hour", "hour_id")
    for name, table in opened.items():
        schema = pa.schema([HOURLY[name].schema.field(key) for key in keys])
        for day in sorted(rows_by_day(data_files(table))):
            rows = pa.Table.from_batches(read_files(table, _of_day(table, day), schema), schema)
            for row in rows.group_by(list(keys)).aggregate([]).to_pylist():
                if row["hour_id"] not in made.ids and made.compares(row["cluster_id"], row["hour"]):
                    yield name, _shown(row["cluster_id"], row["hour"])


def _of_day(opened: "DeltaTable", day: date) -> list[DataFile]:
    return [file for file in data_files(opened) if file.day == day]


def _equal(mine: pa.Table, theirs: pa.Table) -> bool:
    """Whether two tables have equal rows in the same order."""
    return len(mine) == len(theirs) and all(mine[name].equals(theirs[name]) for name in mine.column_names)


def _shown(cluster_id: str, hour: datetime) -> str:
    return f"{cluster_id} at {hour:%Y-%m-%d %H:%M}"


def _is_of_this_release(run: Run, name: str) -> bool:
    """Whether the rows of a table have the meaning that they have now; else the next run makes every one again."""
    return run.made_by.get(name, "").partition("-")[0] == str(HOURLY[name].version)


def _prices(run: Run) -> PriceFile | None:
    # Imported here: it needs msgspec, which executors need not have.
    from rackspan.traffic.price_file import price_file

    return None if run.prices is None else price_file(run.prices)


def _policies_by_run(warehouse: Warehouse) -> dict[str, str]:
    """The policy of each run, as JSON, by its id."""
    opened = existing_table(warehouse, RUNS.name)
    schema = pa.schema([RUNS.schema.field(name) for name in ("run_id", "policy")])
    return {
        row["run_id"]: row["policy"]
        for batch in read_files(opened, data_files(opened), schema)
        for row in batch.to_pylist()
    }


def _by_same_policy(run: Run, policies: Mapping[str, str], written_by: str | None, cluster_id: str) -> bool:
    """Whether an hour was made by the policy that is in force for its cluster. Not known of an hour without rows, unless there was no other."""
    then = set(policies.values()) if written_by is None else {policies.get(written_by, "{}")}
    return all(document_of(json.loads(each), cluster_id) == document_of(run.policy, cluster_id) for each in then)
