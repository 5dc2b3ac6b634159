"""One notion of time: every reader of a warehouse beside loops that import nothing of the pipeline, over random histories."""

import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.model import ClusterSnapshot
from rackspan.pipeline.changes import views
from rackspan.pipeline.changes.known_time import NOT_STORED, filled
from rackspan.pipeline.delta.append import append
from rackspan.pipeline.delta.table import create_table
from rackspan.pipeline.judging.newest_losses import NewestLosses
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.report.from_warehouse import report_data
from rackspan.pipeline.schemas import DERIVED, JUDGED, PARTITION_DURABILITY, RUNS, SNAPSHOTS
from rackspan.pipeline.schemas.hours import OF_STATES
from rackspan.pipeline.warehouse import NOT_REPAIRED, Warehouse, create_warehouse, existing_table
from tests.depth import at_depth
from tests.pipeline import plain_time
from tests.pipeline.examples import NOON, small
from tests.pipeline.plain_build import refresh

HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return pipeline.create_warehouse(tmp_path / "warehouse")


@dataclass
class Plain:
    """What was stored, by time: until when each snapshot says something, and the leader of partition 0."""

    known: dict[datetime, datetime] = field(default_factory=dict)
    leaders: dict[datetime, int] = field(default_factory=dict)

    def add(self, together: Mapping[datetime, int], period: float | None) -> None:
        stored = {*self.known, *together}
        for at in together.keys() - self.known.keys():
            self.known[at] = plain_time.known_until(at, stored, period)
            self.leaders[at] = together[at]

    def leader(self, at: datetime) -> int | None:
        """The leader at a time; None if it is not known."""
        snapshot = plain_time.snapshot_of(at, self.known)
        return None if snapshot is None else self.leaders[snapshot]

    def seconds(self, start: datetime, end: datetime) -> dict[str, float]:
        """How long partition 0 was in each state between two times, as far as snapshots reach."""
        lasted = dict.fromkeys(("ok", "offline", "unknown"), 0.0)
        for begins, ends, snapshot in plain_time.spans(self.known):
            part = (min(ends, end) - max(begins, start)).total_seconds()
            if part > 0:
                state = "unknown" if snapshot is None else "offline" if self.leaders[snapshot] == -1 else "ok"
                lasted[state] += part
        return lasted


def snapshot_at(at: datetime, leader: int) -> ClusterSnapshot:
    return small(taken_at=at, leader=leader)


def random_times(rng: random.Random) -> list[datetime]:
    """Times with gaps, whose distances change for good now and then. Some are of microseconds."""
    at, times, distance = NOON + timedelta(hours=9, seconds=rng.randrange(3600)), [], 60.0
    for _ in range(rng.randint(6, 18)):
        times.append(at)
        if rng.random() < 0.2:
            distance = rng.choice([10.0, 60.0, 300.0, 1234.567891])
        at += timedelta(seconds=distance * rng.choice([1, 1, 1, 1.5, 4, 40]))
    return times


def store_late_doubled_and_by_two(rng: random.Random, warehouse: Warehouse, plain: Plain) -> list[set[datetime]]:
    """Store a history by two collectors, each with a period of its own or none. Returns the times that were new in each append."""
    bases, periods, left = [Bases(), Bases()], [rng.choice([None, 45.0, 400.0]) for _ in "ab"], random_times(rng)
    appends = []
    while left:
        first = rng.randrange(len(left)) if rng.random() < 0.3 else 0
        together = {at: rng.choice([1, 1, -1]) for at in left[first : first + rng.randint(1, 3)]}
        left = [at for at in left if at not in together]
        again = {at: plain.leaders[at] for at in rng.sample(sorted(plain.known), min(len(plain.known), 1))}
        if rng.random() < 0.3:
            periods[0] = rng.choice([None, 10.0, 90.0])
        which = rng.randrange(2)
        given = {**again, **together}
        store_all(
            [snapshot_at(at, leader) for at, leader in given.items()], warehouse, bases[which], {}, periods[which]
        )
        plain.add(given, periods[which])
        appends.append(set(together))
        if rng.random() < 0.5 or not left:
            refresh(warehouse)
    return appends


def times_to_try(plain: Plain) -> list[datetime]:
    """Each time at which another snapshot may count, and those beside it."""
    ends = {*plain.known, *plain.known.values()}
    return sorted({at + step * MICROSECOND for at in ends for step in (-1, 0, 1)})


def leader_of(rows: Any) -> int | None:
    leaders = [row["leader"] for row in rows if row["partition"] == 0]
    return leaders[0] if leaders else None


def tables(warehouse: Warehouse) -> duckdb.DuckDBPyConnection:
    opened = duckdb.connect()
    for name in ("partition_durability", "judged"):
        opened.register(name, DeltaTable(warehouse.table(name)).to_pyarrow_table())
    return opened


def hourly(warehouse: Warehouse) -> dict[tuple[datetime, int | None, str], float]:
    """`durability_time` by hour, partition and state, without losses of racks."""
    return {
        (datetime.fromisoformat(row["hour"]), row["partition"], row["state"]): row["seconds"]
        for row in pipeline.rows(warehouse, "durability_time")
        if row["lost_rack"] is None and row["partition"] in (None, 0)
    }


def plain_hours(plain: Plain) -> dict[tuple[datetime, int | None, str], float]:
    found: dict[tuple[datetime, int | None, str], float] = {}
    hour = min(plain.known).replace(minute=0, second=0, microsecond=0)
    while hour + HOUR <= max(plain.known):
        lasted = plain.seconds(hour, hour + HOUR)
        found[hour, None, "known"] = lasted["ok"] + lasted["offline"]
        found[hour, None, "unknown"] = lasted["unknown"]
        found[hour, 0, "offline"] = lasted["offline"]
        hour += HOUR
    return {key: seconds for key, seconds in found.items() if seconds}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_depth(test=3, soak=200)))
def test_every_reader_has_the_time_of_plain_loops(warehouse: Warehouse, seed: int) -> None:
    rng, plain = random.Random(seed), Plain()
    store_late_doubled_and_by_two(rng, warehouse, plain)
    first, last = min(plain.known), max(plain.known)

    tried = times_to_try(plain)
    some = rng.sample(tried, min(len(tried), 12))
    wanted = [plain.leader(at) for at in some]
    for name in ("partition_durability", "partitions"):
        assert [leader_of(pipeline.rows(warehouse, name, at=at)) for at in some] == wanted, name
    with tables(warehouse) as opened:
        as_of = [views.as_of(PARTITION_DURABILITY, views.DUCKDB, "partition_durability", at) for at in some]
        by_sql = [opened.sql(query).filter("partition = 0").project("leader").fetchall() for query in as_of]
        assert [rows[0][0] if rows else None for rows in by_sql] == wanted
        seconds = opened.sql(views.durability_time(views.DUCKDB)).filter("partition = 0").project("state, seconds")
        of_view = dict(seconds.fetchall())

    lasted = plain.seconds(first, last)
    assert of_view == pytest.approx({state: seconds for state, seconds in lasted.items() if seconds}, abs=1e-5)
    assert sum(of_view.values()) == pytest.approx((last - first).total_seconds(), abs=1e-5)
    assert hourly(warehouse) == pytest.approx(plain_hours(plain), abs=1e-5)

    (cluster,) = report_data(warehouse, RackPolicy())[1].clusters
    assert cluster.history is not None
    offline = sum(state.seconds for state in cluster.history.states if state.state.value == "offline")
    assert cluster.history.seconds_unknown == pytest.approx(lasted["unknown"], abs=1e-5)
    assert offline == pytest.approx(lasted["offline"], abs=1e-5)

    losses = NewestLosses(RackPolicy(), {}, pytest.fail)
    losses.add_stored(warehouse)
    losses.judge(warehouse)
    at_end = plain.known[last]
    (until,), (after,) = losses.at(at_end), losses.at(at_end + MICROSECOND)
    assert (until.losses is not None, after.losses) == (True, None)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_depth(test=2, soak=100)))
def test_a_stored_snapshot_changes_nothing_outside_its_span(warehouse: Warehouse, seed: int) -> None:
    """From the time of a snapshot to the next one's: whenever it comes, and whatever its period."""
    rng, plain = random.Random(f"span {seed}"), Plain()
    store_late_doubled_and_by_two(rng, warehouse, plain)
    for _ in range(2):
        tried = rng.sample(times_to_try(plain), 12)
        before = {at: leader_of(pipeline.rows(warehouse, "partition_durability", at=at)) for at in tried}
        earlier, later = min(plain.known), max(plain.known) + HOUR
        new = earlier + rng.random() * (later - earlier)
        period = rng.choice([None, 1.0, 5000.0])
        store_all([snapshot_at(new, -1)], warehouse, None, {}, period)
        plain.add({new: -1}, period)
        refresh(warehouse)
        following = min((at for at in plain.known if at > new), default=datetime.max.replace(tzinfo=UTC))
        outside = [at for at in tried if not new <= at < following]
        found = {at: leader_of(pipeline.rows(warehouse, "partition_durability", at=at)) for at in outside}
        assert found == {at: before[at] for at in outside}
    assert hourly(warehouse) == pytest.approx(plain_hours(plain), abs=1e-5)


@pytest.mark.slow
def test_an_outage_before_a_gap_is_no_outage_of_hours(warehouse: Warehouse) -> None:
    """A snapshot a minute, offline at the last one before twelve hours without any: three minutes are offline."""
    minutes = [*range(80, 91), *range(14 * 60, 14 * 60 + 11)]
    times = [NOON + timedelta(minutes=minute) for minute in minutes]
    store_all([snapshot_at(at, -1 if at == times[10] else 1) for at in times], warehouse, Bases())
    refresh(warehouse)
    found = hourly(warehouse)
    assert sum(seconds for (_, _, state), seconds in found.items() if state == "offline") == 180.0
    assert [found.get((NOON + hour * HOUR, None, "known"), 0.0) for hour in range(2, 14)] == [0.0] * 12


@pytest.mark.slow
def test_another_period_does_not_change_what_was_known_before(warehouse: Warehouse) -> None:
    slow = [NOON + timedelta(minutes=5 * number) for number in range(12)]
    quick = [slow[-1] + timedelta(seconds=10 * number) for number in range(1, 30)]
    shown = []
    for times in (slow, quick):
        store_all([snapshot_at(at, 1) for at in times], warehouse, Bases())
        refresh(warehouse)
        with tables(warehouse) as opened:
            seconds = opened.sql(views.durability_time(views.DUCKDB)).filter("state = 'unknown'").fetchall()
        leader = leader_of(pipeline.rows(warehouse, "partition_durability", at=NOON + timedelta(minutes=3)))
        shown.append((leader, seconds))
    assert shown == [(1, [])] * 2


def as_of_before(warehouse: Warehouse) -> None:
    """Make the tables as an earlier rackspan left them: without the column, and of an earlier version."""
    for table in (SNAPSHOTS, JUDGED, RUNS):
        url = warehouse.table(table.name)
        rows = DeltaTable(url).to_pyarrow_table().select(table.schema.names).cast(table.schema)
        rows = pa.Table.from_pylist([before_this_column(row) for row in rows.to_pylist()], table.schema)
        columns = [name for name in table.schema.names if name != "known_until"]
        shutil.rmtree(url)
        declared = pa.schema([table.declared.field(name) for name in columns])
        create_table(url, declared, table.meaning, by_day=table is not RUNS)
        append(existing_table(warehouse, table.name), rows.select(columns), {})


def before_this_column(row: dict[str, Any]) -> dict[str, Any]:
    made_by = [
        (name, f"1-{made.partition('-')[2]}") if name in OF_STATES else (name, made)
        for name, made in row.get("made_by", ())
    ]
    return {**row, "made_by": made_by} if made_by else row


@pytest.mark.slow
def test_a_warehouse_of_before_is_read_by_the_same_rule_and_a_run_stores_it(warehouse: Warehouse) -> None:
    """Then nothing that is stored later changes it, and a rebuild of every table neither."""
    rng, plain = random.Random(5), Plain()
    times = random_times(rng)
    plain.add(dict.fromkeys(times, 1), None)
    store_all([snapshot_at(at, 1) for at in times], warehouse, Bases(), {}, 1.0)
    refresh(warehouse)
    as_of_before(warehouse)
    some = rng.sample(times_to_try(plain), 12)

    def leaders(name: str) -> list[int | None]:
        return [leader_of(pipeline.rows(warehouse, name, at=at)) for at in some]

    wanted = [plain.leader(at) for at in some]
    assert (leaders("partitions"), leaders("partition_durability")) == (wanted, wanted)
    assert report_data(pipeline.open_warehouse(warehouse.root), RackPolicy())[1].clusters
    create_warehouse(warehouse.root, lambda _: NOT_REPAIRED)
    refresh(warehouse)
    late = {times[2] + timedelta(microseconds=5): 1}
    store_all([snapshot_at(at, 1) for at in late], warehouse, None, {}, 60.0)
    plain.add(late, 60.0)
    refresh(warehouse)
    for rebuild in ((), tuple(DERIVED)):
        refresh(warehouse, rebuild=rebuild)
        for name in ("snapshots", "judged"):
            stored = DeltaTable(warehouse.table(name)).to_pyarrow_table()
            found = dict(zip(*(stored[column].to_pylist() for column in ("taken_at", "known_until")), strict=True))
            assert found == plain.known, name
        assert hourly(warehouse) == pytest.approx(plain_hours(plain), abs=1e-5)


def test_known_until_follows_the_distances_before_each_snapshot_of_its_cluster() -> None:
    rng = random.Random(1)
    for _ in range(200):
        times = {number: sorted(rng.sample(range(10**9), rng.randint(1, 25))) for number in range(rng.randint(1, 3))}
        rows = [(number, at) for number, of_cluster in times.items() for at in of_cluster]
        rng.shuffle(rows)
        start = datetime(2026, 1, 1, tzinfo=UTC)
        wanted = []
        for number, at in rows:
            stored = [start + other * MICROSECOND for other in times[number]]
            wanted.append((plain_time.known_until(start + at * MICROSECOND, stored) - start) // MICROSECOND)
        clusters, at_times = (np.array(column, np.int64) for column in zip(*rows, strict=True))
        assert filled(clusters, at_times, np.full(len(rows), NOT_STORED)).tolist() == wanted
        stored_before = np.where(np.arange(len(rows)) % 2 == 0, NOT_STORED, 7)
        assert filled(clusters, at_times, stored_before).tolist() == [
            until if place % 2 == 0 else 7 for place, until in enumerate(wanted)
        ]
