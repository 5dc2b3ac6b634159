"""Incidents as SQL equal those of plain loops over the snapshots themselves: racks lost, foretold and observed, over random disasters."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rackspan import pipeline
from rackspan.audit import RackPolicy
from rackspan.model import (
    NO_BROKER,
    Broker,
    BrokerId,
    ClusterSnapshot,
    RackId,
    Topic,
    TopicName,
    UnrackedPolicy,
    columns,
)
from rackspan.pipeline import notebook
from rackspan.pipeline.changes import views
from rackspan.pipeline.landing import store as storing
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.warehouse import Warehouse
from rackspan.text import utc_text
from tests.audit import brute_force, brute_force_drift
from tests.depth import at_depth
from tests.pipeline.examples import NOON
from tests.pipeline.expected import HARM
from tests.pipeline.judging.test_task import judging_build
from tests.pipeline.landing.test_bases import store_in_some_order
from tests.pipeline.plain_build import refresh

pytestmark = pytest.mark.slow

TABLES = ("drift", "outage_impact", "brokers", "snapshots", "judged")
WENT = ("went_offline", "went_under_min_isr", "went_under_min_racks")
POLICIES = (
    RackPolicy(min_insync_racks=2),
    RackPolicy(UnrackedPolicy.OWN, min_insync_racks=2),
    RackPolicy(UnrackedPolicy.IGNORE, min_insync_racks=2),
)

Row = Mapping[str, Any]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return pipeline.create_warehouse(tmp_path / "warehouse")


def by_duckdb(warehouse: Warehouse) -> pa.Table:
    with duckdb.connect() as connection:
        connection.sql("set timezone = 'UTC'")
        for name in TABLES:
            connection.register(name, DeltaTable(warehouse.table(name)).to_pyarrow_dataset())
        return connection.sql(views.incidents(views.DUCKDB)).to_arrow_table()


def by_polars(warehouse: Warehouse) -> pa.Table:
    tables = {name: pl.scan_delta(warehouse.table(name)) for name in TABLES}
    return pl.SQLContext(tables, eager=True).execute(views.incidents(views.POLARS)).to_arrow()


ENGINES = {"duckdb": by_duckdb, "polars": by_polars}


def shown(rows: pa.Table) -> list[dict[str, Any]]:
    found = rows.drop_columns("snapshot_id").to_pylist()
    for row in found:
        row["taken_at"], row["previous_taken_at"] = utc_text(row["taken_at"]), utc_text(row["previous_taken_at"])
    return in_order(found)


def in_order(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return sorted(map(dict, rows), key=lambda row: (row["cluster_id"], row["taken_at"], row["lost_rack"] or ""))


def plain(history: Sequence[ClusterSnapshot], policy: RackPolicy) -> list[dict[str, Any]]:
    """Incidents of one cluster, snapshot by snapshot and rack by rack."""
    ordered = sorted(history, key=lambda snapshot: time_of(snapshot))
    return in_order([row for before, after in pairwise(ordered) for row in between(before, after, policy)])


def between(before: ClusterSnapshot, after: ClusterSnapshot, policy: RackPolicy) -> Iterator[dict[str, Any]]:
    old, new = brute_force.document(before), brute_force.document(after)
    changes = brute_force_drift.drift(old, new, policy)
    worse = Counter(change["after"] for change in changes if change["change"] == "safety-lost")
    went = {change["broker"] for change in changes if change["change"] in ("broker-gone", "broker-fenced")}
    was_up, is_up = up(old, policy), up(new, policy)
    lost = sorted({rack for broker, rack in was_up.items() if broker in went} - set(is_up.values()))
    states = ("offline", "under-min-isr", "under-min-racks")
    if not lost and not any(worse[state] for state in states):
        return
    observed = harmed(new, policy, set())
    racks: list[str | None] = [*lost] or [None]
    for rack in racks:
        foretold = harmed(old, policy, set() if rack is None else {rack})
        yield {
            "cluster_id": after.cluster_id,
            "taken_at": utc_text(time_of(after)),
            "previous_taken_at": utc_text(time_of(before)),
            "lost_rack": rack,
            "lost_racks": len(lost),
            "lost_brokers": len(went),
            **{f"foretold_{state}": foretold[state] for state in HARM},
            **{f"observed_{state}": observed[state] for state in HARM},
            **{name: worse[state] for name, state in zip(WENT, states, strict=True)},
        }


def up(cluster: brute_force.Document, policy: RackPolicy) -> dict[int, str]:
    """The brokers that are listed and not fenced, each with its rack; without those that count in none."""
    racks = brute_force.rack_of(cluster, policy)
    return {
        broker["id"]: racks[broker["id"]]
        for broker in cluster["brokers"]
        if not broker["fenced"] and broker["id"] in racks
    }


def harmed(cluster: brute_force.Document, policy: RackPolicy, lost: set[str]) -> Counter[str]:
    after = brute_force.after_loss(cluster, policy, lost, targets=False)
    return sum(after["topics"].values(), Counter())


def time_of(snapshot: ClusterSnapshot) -> datetime:
    assert snapshot.taken_at is not None
    return snapshot.taken_at


def cluster_at(
    taken_at: datetime,
    brokers: Mapping[int, str | None],
    down: Mapping[int, str],
    replicas: Sequence[Sequence[int]],
    lagging: Mapping[int, int] | None = None,
) -> ClusterSnapshot:
    """Brokers are fenced or gone as `down` has it; leaders are elected and ISRs shrunk as Kafka does. `lagging`: a follower out of sync."""
    isr = [
        [one for one in row if one not in down and one != (lagging or {}).get(at)] for at, row in enumerate(replicas)
    ]
    return ClusterSnapshot(
        cluster_id="one",
        taken_at=taken_at,
        brokers=tuple(
            Broker(BrokerId(broker), None if rack is None else RackId(rack), fenced=broker in down)
            for broker, rack in brokers.items()
            if down.get(broker) != "gone"
        ),
        topics=(Topic(TopicName("orders"), config={"min.insync.replicas": "2"}),),
        partitions=columns(
            topic=[0] * len(replicas),
            partition=list(range(len(replicas))),
            leader=[row[0] if row else NO_BROKER for row in isr],
            replicas=replicas,
            isr=isr,
        ),
    )


def disasters(rng: random.Random) -> list[ClusterSnapshot]:
    """Brokers of three racks, some without one, go and come back one by one, by rack, or two racks at a time."""
    brokers: dict[int, str | None] = {one: f"r{one % 3}" for one in range(1, rng.randrange(5, 9))}
    for broker in list(brokers):
        if rng.random() < 0.15:
            brokers[broker] = None
    ids = list(brokers)
    replicas = [rng.sample(ids, rng.randrange(1, 4)) for _ in range(rng.randrange(1, 7))]
    down, lagging = dict[int, str](), dict[int, int]()
    at, history = NOON.replace(hour=20), list[ClusterSnapshot]()
    for _ in range(rng.randrange(2, 14)):
        at += timedelta(minutes=rng.choice([1, 5, 20, 70]), microseconds=rng.randrange(3))
        event = rng.random()
        if event < 0.35:
            racks = rng.sample(["r0", "r1", "r2", None], rng.choice([1, 1, 1, 2]))
            how = rng.choice(["gone", "fenced", "either"])
            for broker, rack in brokers.items():
                if rack in racks:
                    down[broker] = rng.choice(["gone", "fenced"]) if how == "either" else how
        elif event < 0.6:
            for broker in rng.sample(ids, rng.randrange(1, 3)):
                down[broker] = rng.choice(["gone", "fenced"])
        if rng.random() < 0.35:
            down = {broker: how for broker, how in down.items() if rng.random() < 0.3}
        if all(down.get(broker) == "gone" for broker in ids):
            down[ids[0]] = "fenced"
        if rng.random() < 0.05:
            # In another rack from now on.
            brokers[rng.choice(ids)] = rng.choice(["r0", "r1", "r2"])
        if rng.random() < 0.3:
            lagging = {row: rng.choice(ids) for row in range(len(replicas)) if rng.random() < 0.3}
        snapshot = cluster_at(at, brokers, down, replicas, lagging)
        history.append(replace(snapshot, partial=("x could not be read: y",) if rng.random() < 0.05 else ()))
    return history


@pytest.mark.parametrize("seed", range(at_depth(test=4, soak=2_000)))
def test_incidents_are_those_of_plain_loops_over_random_disasters(warehouse: Warehouse, seed: int) -> None:
    rng = random.Random(seed)
    history, policy = disasters(rng), POLICIES[seed % len(POLICIES)]
    store_in_some_order(rng, warehouse, history)
    refresh(warehouse, policy, judging_build(warehouse))
    wanted = plain(history, policy)
    for engine, run in ENGINES.items():
        assert shown(run(warehouse)) == wanted, engine


@pytest.mark.rest
@pytest.mark.spark
def test_spark_gives_the_same_incidents(spark: SparkSession, warehouse: Warehouse) -> None:
    policy, wanted = POLICIES[0], list[dict[str, Any]]()
    for seed in range(6):
        history = [replace(snapshot, cluster_id=str(seed)) for snapshot in disasters(random.Random(seed))]
        store_in_some_order(random.Random(seed), warehouse, history)
        wanted += ({**row, "cluster": None} for row in plain(history, policy))
    refresh(warehouse, policy, judging_build(warehouse))
    assert shown(notebook.incidents(spark, warehouse).toArrow()) == in_order(wanted) != []


def test_the_random_disasters_have_every_kind_of_incident() -> None:
    """Racks without a name, of single brokers, several at once, and harm without the loss of a rack; as foretold and worse."""
    found = [row for seed in range(60) for row in plain(disasters(random.Random(seed)), POLICIES[seed % len(POLICIES)])]
    assert {row["lost_rack"] for row in found} >= {None, "", "(broker 3)", "r0", "r1", "r2"}
    assert {row["lost_racks"] for row in found} >= {0, 1, 2}
    one = [row for row in found if row["lost_racks"] == 1]
    as_foretold = [all(row[f"foretold_{state}"] == row[f"observed_{state}"] for state in HARM) for row in one]
    assert {*as_foretold} == {True, False}


BROKERS = {broker: f"r{(broker - 1) % 3}" for broker in range(1, 7)}
REPLICAS = [[1, 2, 3], [4, 5, 6], [4, 2, 3]]


def stored(warehouse: Warehouse, *down: Mapping[int, str]) -> None:
    """A snapshot a minute, each with these brokers down."""
    bases = Bases()
    for minute, of_minute in enumerate(down):
        store_all([cluster_at(NOON + timedelta(minutes=minute), BROKERS, of_minute, REPLICAS)], warehouse, bases)
    refresh(warehouse, RackPolicy(min_insync_racks=2), judging_build(warehouse))


GONE_R0 = {1: "gone", 4: "gone"}
GONE_R1 = {2: "gone", 5: "gone"}


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def incidents(request: pytest.FixtureRequest) -> Callable[[Warehouse], list[dict[str, Any]]]:
    return lambda warehouse: shown(request.param(warehouse))


def numbers(row: Row, prefix: str) -> tuple[int, ...]:
    return tuple(row[f"{prefix}_{state}"] for state in ("offline", "under_min_isr", "under_min_racks"))


def test_a_rack_is_lost_and_harms_what_was_foretold(
    warehouse: Warehouse, incidents: Callable[[Warehouse], list[dict[str, Any]]]
) -> None:
    """Broker 5, of the second rack, has been down before: partition 1 has two replicas left, of which one is in the first rack."""
    stored(warehouse, {5: "gone"}, {5: "gone"}, {5: "gone", **GONE_R0}, {5: "gone", **GONE_R0})
    (row,) = incidents(warehouse)
    assert (row["lost_rack"], row["lost_racks"], row["lost_brokers"]) == ("r0", 1, 2)
    assert (row["previous_taken_at"], row["taken_at"]) == ("2026-11-20T12:01:00Z", "2026-11-20T12:02:00Z")
    assert numbers(row, "foretold") == numbers(row, "observed") == (0, 1, 1)
    assert numbers(row, "went") == (0, 1, 0)


def test_the_harm_is_worse_than_foretold_where_another_broker_had_gone_since(
    warehouse: Warehouse, incidents: Callable[[Warehouse], list[dict[str, Any]]]
) -> None:
    """Between two snapshots broker 5 went down, and then the first rack."""
    stored(warehouse, {}, {}, {5: "fenced", **GONE_R0})
    (row,) = incidents(warehouse)
    assert (row["lost_rack"], row["lost_brokers"]) == ("r0", 3)
    assert numbers(row, "foretold") == (0, 0, 0)
    assert numbers(row, "observed") == (0, 1, 1)
    assert numbers(row, "went") == (0, 1, 0)


def test_racks_lost_at_once_have_a_row_each_and_harm_without_a_lost_rack_has_one_too(
    warehouse: Warehouse, incidents: Callable[[Warehouse], list[dict[str, Any]]]
) -> None:
    stored(warehouse, {}, {**GONE_R0, **GONE_R1}, {}, {2: "gone", 1: "gone"})
    first, second, third = incidents(warehouse)
    assert [(row["lost_rack"], row["lost_racks"]) for row in (first, second, third)] == [
        ("r0", 2),
        ("r1", 2),
        (None, 0),
    ]
    assert numbers(first, "observed") == numbers(second, "observed") == (0, 3, 3)
    assert (numbers(third, "foretold"), numbers(third, "observed"), third["lost_brokers"]) == ((0, 0, 0), (0, 1, 1), 2)


def test_brokers_that_go_without_harm_and_leave_one_in_their_rack_are_no_incident(
    warehouse: Warehouse, incidents: Callable[[Warehouse], list[dict[str, Any]]]
) -> None:
    stored(warehouse, {}, {1: "gone"}, {1: "fenced"}, {}, {5: "fenced"})
    assert incidents(warehouse) == []


def test_rows_of_a_commit_that_was_reported_as_failed_are_no_part_of_later_snapshots(
    warehouse: Warehouse, incidents: Callable[[Warehouse], list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collector goes on from the snapshot before: broker 1, fenced in what it takes for not stored, is up in the next one."""
    bases, plainly = Bases(), storing._append_all

    def lost_response(*words: Any) -> None:
        plainly(*words)
        raise OSError("connection reset")

    def at(minute: int, down: Mapping[int, str]) -> ClusterSnapshot:
        return cluster_at(NOON + timedelta(minutes=minute), BROKERS, down, REPLICAS)

    store_all([at(0, {})], warehouse, bases)
    with monkeypatch.context() as patch:
        patch.setattr(storing, "_append_all", lost_response)
        with pytest.raises(OSError, match="reset"):
            store_all([at(1, {1: "fenced"})], warehouse, bases)
    history = [at(0, {}), at(1, {1: "fenced"}), at(2, {}), at(3, {4: "fenced"}), at(4, {1: "fenced", 4: "fenced"})]
    for snapshot in history[2:]:
        store_all([snapshot], warehouse, bases)
    policy = RackPolicy(min_insync_racks=2)
    refresh(warehouse, policy, judging_build(warehouse))
    assert incidents(warehouse) == plain(history, policy)
    assert [row["taken_at"] for row in incidents(warehouse)] == ["2026-11-20T12:04:00Z"]
