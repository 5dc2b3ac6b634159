"""The figures of a report are plain sums of the rows that the tables of hours have."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from rackspan import pipeline
from rackspan.advice.advice import Concern
from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.pipeline.report.aggregates import ReadColumns
from rackspan.pipeline.report.from_warehouse import report_data
from rackspan.pipeline.report.traffic_sums import HourTables, traffic_reports
from rackspan.pipeline.schemas import Table
from rackspan.pipeline.schemas.hours import ADVICE, BILL, TRAFFIC
from rackspan.pipeline.warehouse import Warehouse
from rackspan.report import render
from rackspan.report.data import ReportData
from rackspan.report.traffic import ADVICE_MAX, BILLED_MAX, BilledPart, TrafficReport
from rackspan.traffic import ClusterReading
from tests.pipeline import plain_build
from tests.pipeline.examples import NOON, small
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.readings import history, store_readings

HOUR = timedelta(hours=1)
POLICY = RackPolicy(survive=Survive.NONE)
"""Nothing is to be repaired before the savings."""

READINGS = {
    **{cluster: history(Random(seed), 16, cluster, 5000.0) for cluster, seed in (("one", 3), ("two", 4))},
    "large": history(Random(7), 16, "large", 5000.0, record_bytes=1_000_000),
}
"""Records of the last are so large that savings are worth a piece of advice."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    made = pipeline.create_warehouse(tmp_path_factory.mktemp("hours") / "warehouse")
    store_readings(made, [reading for readings in READINGS.values() for reading in readings])
    # A cluster of which only snapshots are stored.
    pipeline.store(small("three", NOON, 3), made)
    plain_build.refresh(made, POLICY, prices=PRICES)
    return made


@pytest.fixture(scope="module")
def data(warehouse: Warehouse) -> ReportData:
    return report_data(warehouse, POLICY)[1]


def traffic_of(data: ReportData, cluster_id: str) -> TrafficReport:
    (cluster,) = [cluster for cluster in data.clusters if cluster.cluster_id == cluster_id]
    assert cluster.traffic is not None
    return cluster.traffic


def shown_rows(warehouse: Warehouse, table: str, cluster_id: str) -> list[dict[str, Any]]:
    """The rows of the 24 hours that end with the newest reading."""
    last = READINGS[cluster_id][-1].read_at.replace(minute=0, second=0, microsecond=0)
    return [
        row
        for row in pipeline.rows(warehouse, table)
        if row["cluster_id"] == cluster_id and last - 24 * HOUR < datetime.fromisoformat(row["hour"]) <= last
    ]


@pytest.mark.slow
@pytest.mark.parametrize("cluster_id", READINGS)
def test_the_bytes_of_each_pair_of_racks_are_the_sums_of_its_rows(
    warehouse: Warehouse, data: ReportData, cluster_id: str
) -> None:
    rows = shown_rows(warehouse, "traffic", cluster_id)
    assert len({row["hour"] for row in rows}) > 1
    assert len(rows) < sum(row["cluster_id"] == cluster_id for row in pipeline.rows(warehouse, "traffic"))
    traffic = traffic_of(data, cluster_id)
    pairs: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    paths: dict[Any, int] = defaultdict(int)
    for row in rows:
        source, destination = row["source_rack"], row["destination_rack"]
        pairs[source, destination][row["basis"]] += row["bytes"] or 0
        known = source is not None and destination is not None
        paths[row["path"], row["basis"], source != destination if known else None] += row["bytes"] or 0
    assert {(flow.source, flow.destination): dict(flow.by_basis) for flow in traffic.flows} == pairs
    assert traffic.hours == len({row["hour"] for row in rows})
    for path in traffic.paths:
        key = path.path, path.basis
        assert (path.across, path.within, path.rack_unknown) == tuple(paths[*key, way] for way in (True, False, None))
        assert set(path.assumptions) == {row["assumption"] for row in rows if (row["path"], row["basis"]) == key}
    assert len(traffic.paths) == len({(row["path"], row["basis"]) for row in rows})
    assert set(traffic.topics_incomplete) == {row["topic"] for row in rows if not row["complete"]} != set()


@pytest.mark.slow
@pytest.mark.parametrize("cluster_id", READINGS)
@pytest.mark.parametrize("column", ["topic", "group_id"])
def test_the_bill_is_the_sum_of_its_rows_and_counts_nothing_unknown_as_free(
    warehouse: Warehouse, data: ReportData, cluster_id: str, column: str
) -> None:
    rows = shown_rows(warehouse, "bill", cluster_id)
    traffic = traffic_of(data, cluster_id)
    billed = traffic.by_topic if column == "topic" else traffic.by_group
    assert {part.name for part in billed.parts} == {row[column] for row in rows}
    for part in billed.parts:
        _check_part(part, [row for row in rows if row[column] == part.name])
    _check_part(traffic.bill, rows)
    assert traffic.bill.reasons["the price of replicate is not known"]
    assert billed.others is None


def _check_part(part: BilledPart, rows: list[dict[str, Any]]) -> None:
    priced = [row["money"] for row in rows if row["money"] is not None]
    assert part.money == ({"USD": pytest.approx(sum(priced), rel=1e-12)} if priced else {})
    assert part.size_bytes == sum(row["bytes"] or 0 for row in rows)
    reasons: dict[str, int | None] = {}
    for reason in {row["reason"] for row in rows if row["reason"] is not None}:
        sizes = [row["bytes"] for row in rows if row["reason"] == reason]
        reasons[reason] = None if None in sizes else sum(sizes)
    assert part.reasons == reasons


@pytest.mark.slow
@pytest.mark.parametrize("cluster_id", READINGS)
def test_the_advice_is_that_of_the_newest_reading_in_its_order(
    warehouse: Warehouse, data: ReportData, cluster_id: str
) -> None:
    newest = READINGS[cluster_id][-1].read_at
    hour = newest.replace(minute=0, second=0, microsecond=0).isoformat().replace("+00:00", "Z")
    rows = [
        row for row in pipeline.rows(warehouse, "advice") if row["cluster_id"] == cluster_id and row["hour"] == hour
    ]
    rows.sort(key=lambda row: row["rank"])
    traffic = traffic_of(data, cluster_id)
    assert rows
    assert traffic.read_at == newest
    # Risks stand on the page once, among what to do first.
    savings = [row for row in rows if row["concern"] == Concern.MONEY]
    assert bool(savings) == (cluster_id == "large")
    for step, row in zip(traffic.advice, savings[:ADVICE_MAX], strict=True):
        assert (step.rank, step.concern, step.kind, step.topic, step.group, step.command) == (
            *(row["rank"], row["concern"], row["kind"], row["topic"], row["group_id"], row["command"]),
        )
        assert (step.bytes_a_month, step.money_a_month) == (row["bytes_a_month"], row["money_a_month"])
        assert (step.reason, step.cost, step.undo, step.assumption) == (
            *(row["reason"], row["cost"], row["undo"], row["assumption"]),
        )
    assert sum(traffic.advice_counts.values()) == len(rows)


@pytest.mark.slow
def test_a_cluster_without_readings_has_no_such_part(data: ReportData) -> None:
    (without,) = [cluster for cluster in data.clusters if cluster.cluster_id == "three"]
    assert without.traffic is None
    assert "Bytes between racks" not in render(ReportData((without,), ""))


@pytest.mark.slow
def test_without_a_bill_the_cost_is_not_known(data: ReportData) -> None:
    (cluster,) = [cluster for cluster in data.clusters if cluster.cluster_id == "one"]
    rows = [row_of(TRAFFIC, "one", NOON, bytes=7, topic="t", source_rack="a", destination_rack="b", complete=True)]
    traffic = traffic_reports(HourTables(reader(TRAFFIC, rows), reader(BILL), reader(ADVICE)), {"one": NOON + HOUR})
    page = render(ReportData((replace(cluster, traffic=traffic["one"]),), ""))
    assert "Not known: the run had no price file." in page
    assert " USD" not in page


@pytest.mark.slow
def test_one_reading_has_advice_and_no_bytes_yet(tmp_path: Path) -> None:
    made = pipeline.create_warehouse(tmp_path / "warehouse")
    store_readings(made, READINGS["one"][:1])
    plain_build.refresh(made, RackPolicy())
    data = report_data(made, RackPolicy())[1]
    traffic = traffic_of(data, "one")
    assert (traffic.flows, traffic.hours) == ((), 0)
    assert "known from the second reading on" in render(data)


@pytest.mark.slow
def test_readings_between_which_nothing_passed_are_no_first_reading(tmp_path: Path) -> None:
    """Five readings that are alike: no log has grown, and nobody has read."""
    made = pipeline.create_warehouse(tmp_path / "warehouse")
    store_readings(made, [at_rest(READINGS["one"][0], number) for number in range(5)])
    plain_build.refresh(made, RackPolicy())
    data = report_data(made, RackPolicy())[1]
    traffic = traffic_of(data, "one")
    assert (traffic.flows, traffic.readings) == ((), 5)
    page = render(data)
    assert "No bytes: between the 5 readings nothing" in page
    assert "second reading" not in page


def at_rest(reading: ClusterReading, number: int) -> ClusterReading:
    """The same reading, so many minutes later."""
    at = reading.read_at + timedelta(minutes=number)
    snapshot = replace(reading.snapshot, taken_at=at)
    return replace(reading, logs=replace(reading.logs, snapshot=snapshot, read_at=at))


def row_of(table: Table, cluster_id: str, hour: datetime, **values: Any) -> dict[str, Any]:
    texts = {"path": "produce", "basis": "measured", "assumption": "", "currency": "USD"}
    given = {"cluster_id": cluster_id, "hour": hour, **texts, **values}
    return {name: given.get(name) for name in table.schema.names}


def reader(table: Table, rows: Sequence[dict[str, Any]] = ()) -> ReadColumns:
    stored = pa.Table.from_pylist(list(rows), table.schema)
    return lambda columns: iter(stored.select(columns).to_batches(max_chunksize=7))


def test_a_reading_at_the_start_of_an_hour_ends_the_day_before_it() -> None:
    end = datetime(2026, 9, 21, tzinfo=UTC)
    link = {"topic": "t", "source_rack": "a", "destination_rack": "b", "complete": True}
    hours = [end + HOUR * number for number in range(-26, -8)]
    rows = [row_of(TRAFFIC, "one", hour, bytes=10**number, **link) for number, hour in enumerate(hours)]
    rows.append(row_of(TRAFFIC, "one", end, bytes=5, **link))
    traffic = traffic_reports(HourTables(reader(TRAFFIC, rows), reader(BILL), reader(ADVICE)), {"one": end})["one"]
    assert (traffic.first_hour, traffic.last_hour) == (end - 24 * HOUR, end - HOUR)
    assert [flow.size_bytes for flow in traffic.flows] == [sum(10**number for number in range(2, 18))]
    assert traffic.hours == 16


def test_bytes_whose_rack_is_not_known_are_apart_and_come_last() -> None:
    racks = ((None, "b", 1), ("a", None, 2), ("b", "a", 4), ("a", "a", 8), ("a", "b", None))
    rows = [
        row_of(TRAFFIC, "one", NOON, topic="t", source_rack=source, destination_rack=destination, bytes=size)
        for source, destination, size in racks
    ]
    complete = [{**row, "complete": row["bytes"] is not None} for row in rows]
    tables = HourTables(reader(TRAFFIC, complete), reader(BILL), reader(ADVICE))
    traffic = traffic_reports(tables, {"one": NOON + HOUR})["one"]
    found = [(flow.source, flow.destination, flow.size_bytes, flow.crosses) for flow in traffic.flows]
    assert found == [
        ("a", "a", 8, False),
        ("a", "b", 0, True),
        ("a", None, 2, None),
        ("b", "a", 4, True),
        (None, "b", 1, None),
    ]
    assert [(path.across, path.within, path.rack_unknown) for path in traffic.paths] == [(4, 8, 3)]
    assert traffic.topics_incomplete == ("t",)


def test_the_savings_are_the_first_of_the_newest_hour_by_rank_and_every_piece_of_advice_is_counted() -> None:
    empty = dict.fromkeys(("reason", "command", "cost", "undo", "assumption"), "")
    planted = [
        row_of(ADVICE, "one", NOON, **empty, rank=rank, concern=concern, kind="k", bytes_a_month=10 * rank)
        for rank, concern in [(1, "risk"), (2, "warning"), *((rank, "money") for rank in range(3, 6 + ADVICE_MAX))]
    ]
    Random(7).shuffle(planted)
    older = {**planted[0], "hour": NOON - HOUR, "rank": 3, "concern": "money", "kind": "older"}
    tables = HourTables(reader(TRAFFIC), reader(BILL), reader(ADVICE, [older, *planted]))
    traffic = traffic_reports(tables, {"one": NOON + HOUR / 2})["one"]
    assert [step.rank for step in traffic.savings] == list(range(3, 3 + ADVICE_MAX))
    assert {step.kind for step in traffic.savings} == {"k"}
    assert sum(step.bytes_a_month or 0 for step in traffic.savings) == 10 * sum(range(3, 3 + ADVICE_MAX))
    assert traffic.advice_counts == {Concern.RISK: 1, Concern.WARNING: 1, Concern.MONEY: 3 + ADVICE_MAX}


def test_of_many_topics_the_cheapest_are_summed_up() -> None:
    rows = [
        row_of(BILL, "one", NOON, topic=f"t{number}", bytes=number, money=float(number), currency=currency)
        for number in range(1, 31)
        for currency in ("EUR", "USD")
    ]
    unknown = {**rows[0], "money": None, "reason": "a rack is not known"}
    tables = HourTables(reader(TRAFFIC), reader(BILL, [*rows, unknown, {**unknown, "bytes": None}]), reader(ADVICE))
    billed = traffic_reports(tables, {"one": NOON + HOUR / 2})["one"].by_topic
    assert [part.name for part in billed.parts] == [f"t{number}" for number in range(30, 30 - BILLED_MAX, -1)]
    left = sum(range(1, 11))
    assert billed.others == BilledPart(
        None, {"EUR": float(left), "USD": float(left)}, 2 * left + 1, {"a rack is not known": None}
    )
    assert billed.others_count == 10
