"""The losses that a `follow` serves: those of `rackspan outage` on each cluster's newest snapshot, as long as it says anything."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rackspan.audit import FleetPolicy, RackLosses, RackPolicy, outage, rack_losses, snapshot_batch
from rackspan.audit.policy import Survive
from rackspan.model import ClusterSnapshot
from rackspan.pipeline import Warehouse, create_warehouse
from rackspan.pipeline.judging import newest_losses as module
from rackspan.pipeline.judging.newest_losses import NewestLosses
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.markers import StoredSnapshot, read_markers
from rackspan.pipeline.landing.store import SnapshotLocation, store_all
from rackspan.prometheus_metrics.rack_losses import ClusterLosses
from tests.pipeline.examples import NOON, small
from tests.waiting import eventually

MINUTE = timedelta(minutes=1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return create_warehouse(tmp_path / "warehouse")


@pytest.fixture
def store(warehouse: Warehouse) -> Callable[..., list[StoredSnapshot]]:
    """Stores snapshots as one collector does, and returns their markers in the order of cluster and time."""
    bases = Bases()

    def stored(*snapshots: ClusterSnapshot) -> list[StoredSnapshot]:
        outcomes = store_all(list(snapshots), warehouse, bases)
        ids = [outcome.snapshot_id for outcome in outcomes if isinstance(outcome, SnapshotLocation)]
        return read_markers(warehouse).named(ids)

    return stored


def at(minutes: float) -> datetime:
    return NOON + minutes * MINUTE


def losses(warned: list[str] | None = None, policies: RackPolicy | FleetPolicy = RackPolicy()) -> NewestLosses:
    return NewestLosses(policies, {"b": "Europe"}, ([] if warned is None else warned).append)


def judged_at(made: NewestLosses, warehouse: Warehouse, now: datetime) -> dict[str | None, ClusterLosses]:
    while made.judge(warehouse):
        pass
    return {of.cluster_id: of for of in made.at(now)}


def expected(snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy()) -> RackLosses:
    return rack_losses(snapshot, snapshot_batch(snapshot, policy))


Store = Callable[..., list[StoredSnapshot]]


def test_each_cluster_has_the_losses_of_its_newest_snapshot(warehouse: Warehouse, store: Store) -> None:
    first = [small(cluster, at(0)) for cluster in "ab"]
    second = [small("a", at(1), 2), small("b", at(1), 3)]
    made = losses()
    made.add(store(*first))
    judged_at(made, warehouse, at(0))
    made.add(store(*second))
    found = judged_at(made, warehouse, at(2))
    for cluster, snapshot in zip("ab", second, strict=True):
        judged = found[cluster].losses
        assert judged is not None
        assert judged.losses == tuple(outage(snapshot, RackPolicy())[1])
        assert judged == expected(snapshot)
        assert found[cluster].taken_at == at(1)
    assert [found[cluster].name for cluster in "ab"] == [None, "Europe"]


def test_a_snapshot_that_comes_late_changes_nothing(warehouse: Warehouse, store: Store) -> None:
    made, newest = losses(), small("a", at(2), 2)
    made.add(store(newest))
    judged_at(made, warehouse, at(2))
    made.add(store(small("a", at(1), 3)))
    found = judged_at(made, warehouse, at(3))
    assert (found["a"].losses, found["a"].taken_at) == (expected(newest), at(2))


def test_a_snapshot_that_is_stored_as_equal_is_not_read(
    warehouse: Warehouse, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = losses()
    made.add(store(small("a", at(0))))
    judged_at(made, warehouse, at(0))
    monkeypatch.setattr(module, "read_snapshots", lambda *_: pytest.fail("read again"))
    (same,) = store(small("a", at(1)))
    assert same.unchanged
    made.add([same])
    found = judged_at(made, warehouse, at(2))
    assert (found["a"].losses, found["a"].taken_at) == (expected(small("a", at(0))), at(1))


def test_a_snapshot_that_is_too_old_says_nothing_of_the_present(warehouse: Warehouse, store: Store) -> None:
    """Snapshots a minute apart are true for three minutes; a single one for three hours."""
    made = losses()
    for minute in range(3):
        made.add(store(small("a", at(minute))))
    made.add(store(small("b", at(0))))
    known = {minute: judged_at(made, warehouse, at(minute)) for minute in (5, 6, 179, 181)}
    assert [known[minute]["a"].losses is not None for minute in known] == [True, False, False, False]
    assert [known[minute]["b"].losses is not None for minute in known] == [True, True, True, False]


def test_the_losses_before_are_served_until_the_new_ones_are_judged(warehouse: Warehouse, store: Store) -> None:
    made = losses()
    made.add(store(small("a", at(0))))
    judged_at(made, warehouse, at(0))
    made.add(store(small("a", at(1), 2)))
    (of,) = made.at(at(1))
    assert (of.losses, of.taken_at) == (expected(small("a", at(0))), at(0))


def test_a_follow_that_begins_serves_what_is_stored(warehouse: Warehouse, store: Store) -> None:
    """Else nobody would see that nothing is stored any more."""
    store(*[small("a", at(minute), 1 + minute) for minute in range(3)], small("b", at(0)))
    made = losses()
    made.add_stored(warehouse)
    found = judged_at(made, warehouse, at(3))
    assert found["a"].losses == expected(small("a", at(2), 3))
    assert found["b"].losses == expected(small("b", at(0)))
    assert [of.losses is not None for of in made.at(at(30))] == [False, True]


def test_each_cluster_is_judged_by_its_own_policy(warehouse: Warehouse, store: Store) -> None:
    accepting = RackPolicy(survive=Survive.NONE)
    made = losses(policies=FleetPolicy(RackPolicy(), {"b": accepting}))
    made.add(store(small("a", at(0)), small("b", at(0))))
    found = judged_at(made, warehouse, at(0))
    assert found["a"].losses == expected(small("a", at(0)))
    assert found["b"].losses == expected(small("b", at(0)), accepting)


def test_a_snapshot_that_cannot_be_read_is_named_and_its_cluster_is_not_known(
    warehouse: Warehouse, store: Store
) -> None:
    warned: list[str] = []
    made = losses(warned)
    (broken, whole) = store(small("a", at(0)), small("b", at(0)))
    made.add([replace(broken, base_id="not-stored", root_id="not-stored"), whole])
    found = judged_at(made, warehouse, at(0))
    assert found["a"].losses is None
    assert found["b"].losses is not None
    assert len(warned) == 1
    assert broken.snapshot_id in warned[0]


def test_a_thread_judges_what_is_stored_and_what_is_added(warehouse: Warehouse, store: Store) -> None:
    store(small("a", at(0)))
    made = losses()

    def known(clusters: Sequence[str]) -> bool:
        return [of.cluster_id for of in made.at(at(1)) if of.losses is not None] == list(clusters)

    with made.judged(warehouse):
        eventually(lambda: known("a"), "the stored cluster is judged")
        made.add(store(small("b", at(0))))
        eventually(lambda: known("ab"), "the added cluster is judged")
