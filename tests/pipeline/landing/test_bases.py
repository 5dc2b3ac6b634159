"""Snapshots that are stored as what differs from the one before: read back whole, in whatever order and by whomever they are stored."""

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from rackspan import pipeline
from rackspan.errors import InvalidSnapshot
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.model.snapshot import SIZES
from rackspan.pipeline.delta.append import append
from rackspan.pipeline.delta.table import data_files
from rackspan.pipeline.landing import store as storing
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.read import find_damage, read_snapshot
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.warehouse import Warehouse, existing_table
from tests.depth import at_depth
from tests.pipeline.examples import NOON, as_stored, small


def stored(warehouse: Warehouse) -> list[StoredSnapshot]:
    markers = read_markers(warehouse)
    return markers.of_days(markers.count_by_day())


def at(minutes: float, leader: int = 1) -> ClusterSnapshot:
    return small(taken_at=NOON + timedelta(minutes=minutes), leader=leader)


def rows_stored(warehouse: Warehouse) -> list[dict[str, int]]:
    return [dict(one.stored_rows) for one in stored(warehouse)]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return pipeline.create_warehouse(tmp_path / "warehouse")


WHOLE = {"brokers": 3, "topics": 1, "partitions": 2}
NOTHING = {"brokers": 0, "topics": 0, "partitions": 0}


@pytest.mark.slow
def test_only_what_differs_is_stored(warehouse: Warehouse) -> None:
    bases = Bases()
    for snapshot in (at(0), at(1), at(2, leader=2)):
        store_all([snapshot], warehouse, bases)
    assert rows_stored(warehouse) == [WHOLE, NOTHING, {**NOTHING, "partitions": 1}]
    first, second, third = stored(warehouse)
    assert [(one.base_id, one.root_id, one.unchanged) for one in (first, second, third)] == [
        (None, None, False),
        (first.snapshot_id, first.snapshot_id, True),
        (second.snapshot_id, first.snapshot_id, False),
    ]
    # A round in which nothing changed commits to `snapshots` alone.
    assert len(data_files(existing_table(warehouse, "partitions"))) == 2
    as_stored(warehouse, [at(0), at(1), at(2, leader=2)])


def test_sizes_alone_are_no_difference_and_read_as_they_were_last_stored(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases = Bases()
    grown = replace(at(1), partitions=replace(at(1).partitions, size_bytes=np.array([7, 8])))
    store_all([at(0), grown], warehouse, bases)
    assert rows_stored(warehouse) == [WHOLE, NOTHING]
    (found,) = as_stored(warehouse, [grown])
    assert found.partitions.size_bytes.tolist() == [-1, -1]
    # Given again by another collector it is the same snapshot.
    assert [location.new for location in store_all([grown], warehouse)] == [False]  # type: ignore[union-attr]
    # Nor if ids were made otherwise when it was stored.
    monkeypatch.setattr(storing, "snapshot_id", lambda *_: "of another release")
    assert [location.new for location in store_all([grown], warehouse)] == [False]  # type: ignore[union-attr]
    one_partition = columns(topic=[0], partition=[0], leader=[1], replicas=[[1, 2]], isr=[[1]], size_bytes=[7])
    for another in (replace(grown, partitions=one_partition), replace(grown, brokers=grown.brokers[:2])):
        [refused] = store_all([another], warehouse)
        assert isinstance(refused, InvalidSnapshot)
        assert "another snapshot of this cluster and time is stored already" in str(refused)


def test_a_controller_that_changes_is_a_change(warehouse: Warehouse) -> None:
    store_all([at(0), replace(at(1), controllers=at(1).controllers[:2])], warehouse, Bases())
    assert rows_stored(warehouse) == [WHOLE, NOTHING]
    assert not stored(warehouse)[1].unchanged


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(at(0), at(60), id="an hour later"),
        pytest.param(at(11 * 60 + 59), at(12 * 60), id="the next day in UTC"),
        pytest.param(at(1), at(0), id="late"),
        pytest.param(at(0), replace(at(1), partial=("topics could not be read: not authorized",)), id="partial"),
        pytest.param(
            replace(at(0), partial=("topics could not be read: not authorized",)), at(1), id="after a partial one"
        ),
        pytest.param(at(0), replace(at(1), cluster_id="two"), id="another cluster"),
    ],
)
def test_a_snapshot_is_stored_whole(warehouse: Warehouse, before: ClusterSnapshot, after: ClusterSnapshot) -> None:
    store_all([before, after], warehouse, Bases())
    assert rows_stored(warehouse) == [WHOLE, WHOLE]
    as_stored(warehouse, [before, after])


@pytest.mark.slow
def test_each_collector_begins_with_a_whole_snapshot_and_builds_on_its_own(warehouse: Warehouse) -> None:
    mine, theirs = Bases(), Bases()
    for minute in range(3):
        store_all([at(minute)], warehouse, mine)
        store_all([at(minute + 0.5, leader=2)], warehouse, theirs)
    assert rows_stored(warehouse) == [WHOLE, WHOLE, NOTHING, NOTHING, NOTHING, NOTHING]
    as_stored(warehouse, [at(minute / 2, leader=1 + minute % 2) for minute in range(6)])


def test_notes_that_stay_the_same_do_not_make_every_snapshot_whole(warehouse: Warehouse) -> None:
    note = (f"{SIZES}: not authorized",)
    store_all([replace(at(minute), partial=note) for minute in range(3)], warehouse, Bases())
    assert rows_stored(warehouse) == [WHOLE, NOTHING, NOTHING]


def test_nothing_is_built_on_a_snapshot_that_somebody_dropped(warehouse: Warehouse) -> None:
    bases = Bases()
    store_all([at(0)], warehouse, bases)
    existing_table(warehouse, "snapshots").delete()
    store_all([at(1)], warehouse, bases)
    assert rows_stored(warehouse) == [WHOLE]


@pytest.mark.slow
def test_a_kill_before_the_marker_leaves_nothing_that_another_collector_takes_for_its_own(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases = Bases()
    store_all([at(0)], warehouse, bases)
    changed = at(1, leader=2)
    plain = append

    class Killed(BaseException):
        pass

    def killed(table, *words, **options):  # type: ignore[no-untyped-def]
        if table.table_uri.rstrip("/").endswith("snapshots"):
            raise Killed
        plain(table, *words, **options)

    with monkeypatch.context() as patch:
        patch.setattr(storing, "append", killed)
        with pytest.raises(Killed):
            store_all([changed], warehouse, bases)
    store_all([changed], warehouse)
    as_stored(warehouse, [at(0), changed])
    # The one that was killed, started again with what it knew, adopts its rows.
    assert rows_stored(warehouse) == [WHOLE, WHOLE]


def test_rows_of_a_killed_collector_are_adopted_after_its_transactions_have_expired(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = append

    class Killed(BaseException):
        pass

    def killed(table, rows, _transactions):  # type: ignore[no-untyped-def]
        if table.table_uri.rstrip("/").endswith("snapshots"):
            raise Killed
        # As if they had expired.
        plain(table, rows, {})

    with monkeypatch.context() as patch:
        patch.setattr(storing, "append", killed)
        with pytest.raises(Killed):
            store_all([at(0)], warehouse)
    store_all([at(0)], warehouse)
    assert existing_table(warehouse, "partitions").to_pyarrow_table().num_rows == 2
    as_stored(warehouse, [at(0)])


@pytest.mark.slow
def test_what_builds_on_a_damaged_snapshot_is_damaged_up_to_the_next_whole_one(warehouse: Warehouse) -> None:
    bases = Bases()
    snapshots = [at(0), at(20, leader=2), at(40), at(59), at(61), at(62, leader=2)]
    for snapshot in snapshots:
        store_all([snapshot], warehouse, bases)
    identity = stored(warehouse)[1].snapshot_id
    second = next(file for file in data_files(existing_table(warehouse, "partitions")) if file.least == identity)
    folder = warehouse.table_folder("partitions")
    assert folder is not None
    (folder / second.path).unlink()
    found = stored(warehouse)
    damage = find_damage(warehouse, found)
    assert [one.snapshot_id in damage.snapshots for one in found] == [False, True, True, True, False, False]
    assert len(set(damage.snapshots.values())) == 1


def test_what_builds_on_a_snapshot_that_is_not_stored_is_damaged(warehouse: Warehouse) -> None:
    bases = Bases()
    for snapshot in (at(0), at(1, leader=2), at(2)):
        store_all([snapshot], warehouse, bases)
    first, *others = stored(warehouse)
    existing_table(warehouse, "snapshots").delete(f"snapshot_id = '{first.snapshot_id}'")
    reason = f"it builds on {first.snapshot_id}, which is not stored"
    assert find_damage(warehouse, others).snapshots == {one.snapshot_id: reason for one in others}


class FakeCollector:
    """A collector with its own bases, which is killed and started again now and then."""

    def __init__(self) -> None:
        self.bases = Bases()


def random_cluster(rng: random.Random, taken_at: datetime, before: ClusterSnapshot | None) -> ClusterSnapshot:
    """A cluster in which little has changed since `before`, sometimes nothing, sometimes a topic or a broker."""
    if before is not None and rng.random() < 0.3:
        return replace(before, taken_at=taken_at)
    names = [topic.name for topic in before.topics] if before is not None else [TopicName("a"), TopicName("b")]
    if rng.random() < 0.2:
        names = sorted({*names, TopicName(rng.choice("abcdef"))})
    if rng.random() < 0.2:
        names = names[1:]
    count = rng.randrange(3, 5)
    rows = [(code, partition) for code in range(len(names)) for partition in range(rng.randrange(1, 4))]
    lists = [rng.sample(range(3), rng.randrange(1, 4)) for _ in rows]
    return ClusterSnapshot(
        cluster_id="one",
        taken_at=taken_at,
        brokers=tuple(Broker(BrokerId(one), RackId(f"r{one % 3}"), fenced=rng.random() < 0.1) for one in range(count)),
        topics=tuple(Topic(name, config={"min.insync.replicas": str(rng.randrange(1, 3))}) for name in names),
        partitions=columns(
            topic=[code for code, _ in rows],
            partition=[partition for _, partition in rows],
            leader=[replicas[0] for replicas in lists],
            replicas=lists,
            isr=[replicas[: rng.randrange(1, 4)] for replicas in lists],
            size_bytes=[rng.randrange(100) for _ in rows],
        ),
        partial=("topics could not be read: not authorized",) if rng.random() < 0.1 else (),
    )


def random_history(rng: random.Random) -> list[ClusterSnapshot]:
    start, history = datetime(2026, 11, 20, 22, tzinfo=UTC), list[ClusterSnapshot]()
    taken_at = start
    for _ in range(rng.randrange(2, 12)):
        taken_at += timedelta(minutes=rng.choice([1, 5, 20, 70]), microseconds=rng.randrange(3))
        history.append(random_cluster(rng, taken_at, history[-1] if history else None))
    return history


def store_in_some_order(rng: random.Random, warehouse: Warehouse, history: Sequence[ClusterSnapshot]) -> None:
    """By two collectors, which are started again now and then; some late, some doubled, some together."""
    collectors = [FakeCollector(), FakeCollector()]
    left = list(history)
    while left:
        place = 0 if rng.random() < 0.7 else rng.randrange(len(left))
        together = [left.pop(place) for _ in range(min(rng.randrange(1, 4), len(left) - place))]
        collector = rng.choice(collectors)
        store_all(together, warehouse, collector.bases)
        if rng.random() < 0.2:
            store_all(together, warehouse, rng.choice(collectors).bases)
        if rng.random() < 0.2:
            collectors[rng.randrange(2)] = FakeCollector()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_depth(test=8, soak=2_000)))
def test_random_histories_are_read_as_they_were_given(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    warehouse = pipeline.create_warehouse(tmp_path / "warehouse")
    history = random_history(rng)
    store_in_some_order(rng, warehouse, history)
    as_stored(warehouse, history)
    assert len(stored(warehouse)) == len(history)
    assert not find_damage(warehouse, stored(warehouse), whole=True).snapshots
    assert {read_snapshot(warehouse, one).taken_at for one in stored(warehouse)} == {one.taken_at for one in history}
