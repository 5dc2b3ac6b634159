"""`balanced` in the cases of operators: KIP-660's three motives, odd clusters, few surprises."""

from collections.abc import Sequence

import numpy as np
import pytest

from rackspan.audit.loads import replica_bound
from rackspan.errors import InvalidPartitions, InvalidReplicationFactor, PartialRacks, ReplicaPlacementException
from rackspan.model import BrokerId, RackId
from rackspan.model.partitions import Int32s
from rackspan.model.racks import rack_map
from rackspan.placement import UsableBroker
from tests.placement.scenarios_of_load import cluster
from tests.placement.snapshots import registered
from tests.placement.tasks import DRAINING, Task, per_broker, place


def placed(
    sizes: Sequence[int], partitions: int, replication_factor: int, seed: int = 1, **configs: str
) -> tuple[Int32s, list[int], list[int]]:
    """Rows, leaders and replicas per broker of a topic placed on racks of `sizes`; configs without their prefix."""
    named = {"replica.placer.balanced." + key.replace("_", "."): value for key, value in configs.items()}
    task = Task(cluster(sizes), partitions, replication_factor, (), seed)
    rows = place(task, named)
    return rows, per_broker(task, rows[:, 0]), per_broker(task, rows)


def test_one_broker_holds_everything() -> None:
    rows, _, _ = placed([1], 3, 1)
    assert rows.tolist() == [[0], [0], [0]]


def test_every_rack_holds_every_replica_it_can_when_all_brokers_are_needed() -> None:
    rows, leaders, _ = placed([3, 1, 1], 10, 5)
    assert leaders == [2] * 5
    assert all(sorted(row) == [0, 1, 2, 3, 4] for row in rows.tolist())


def test_a_draining_broker_gets_nothing_where_its_rack_has_another() -> None:
    _, leaders, replicas = placed([2, 2, 2], 40, 3, draining="1")
    assert (leaders[1], replicas[1]) == (0, 0)
    assert replicas[4] == 40


def test_a_draining_broker_that_is_its_whole_rack_keeps_the_spread_but_leads_nothing() -> None:
    _, leaders, replicas = placed([2, 2, 1], 40, 3, draining="2")
    assert (leaders[2], replicas[2]) == (0, 40)


def test_a_draining_rack_is_left_out_where_enough_racks_remain() -> None:
    _, _, replicas = placed([1, 1, 1, 1], 40, 3, draining="2")
    assert replicas == [40, 40, 0, 40]


def test_draining_brokers_lead_where_nobody_else_is_live() -> None:
    brokers = (
        UsableBroker(BrokerId(0), RackId("a"), True),
        UsableBroker(BrokerId(1), RackId("a"), False),
        UsableBroker(BrokerId(2), RackId("b"), True),
    )
    rows = place(Task(brokers, 5, 2, (), 1), {DRAINING: "1"})
    assert rows[:, 0].tolist() == [1] * 5


def test_a_broker_near_capacity_is_passed_over_until_others_are_full() -> None:
    assert placed([2, 2], 12, 2, near_capacity="0")[2][0] == 0
    assert placed([2, 2], 12, 4, near_capacity="0")[2] == [12] * 4


def test_weights_share_leaders_and_replicas() -> None:
    _, leaders, replicas = placed([2, 2, 2], 900, 3, weights="0:2,1:2,2:2")
    assert leaders == [200, 200, 200, 100, 100, 100]
    assert replicas == [600, 600, 600, 300, 300, 300]


@pytest.mark.parametrize(("preference", "expected"), [("0", 25), ("0.5", 50), ("1", 75)])
def test_new_brokers_catch_up_by_their_preference(preference: str, expected: int) -> None:
    """Brokers 0 to 2 hold 67 each, 3 nothing; 100 are placed. Level is 75 each; a fair share of what is placed, 25."""
    _, _, replicas = placed(
        [1, 1, 1, 1], 100, 1, replicas="0:66,1:67,2:67,3:0", new="3", new_preference=preference, first_goal="replicas"
    )
    assert abs(replicas[3] - expected) <= 1


def test_brokers_without_racks_are_placed_as_one_rack() -> None:
    brokers = tuple(UsableBroker(BrokerId(one), None, False) for one in range(5))
    rows = place(Task(brokers, 100, 3, (), 1), {})
    assert np.bincount(rows[:, 0]).tolist() == [20] * 5
    assert np.bincount(rows.reshape(-1)).tolist() == [60] * 5


def test_some_brokers_without_racks_are_refused_unless_a_config_allows_them() -> None:
    brokers = (UsableBroker(BrokerId(0), None, False), UsableBroker(BrokerId(1), RackId("a"), False))
    with pytest.raises(PartialRacks, match="Not all brokers have rack information"):
        place(Task(brokers, 2, 2, (), 1), {})
    assert place(Task(brokers, 2, 2, (), 1), {"replica.placer.rack.aware": "safe"}).shape == (2, 2)


def test_impossible_figures_are_refused_in_kafkas_words() -> None:
    with pytest.raises(InvalidPartitions, match=r"^Number of partitions must be larger than 0\.$"):
        placed([3], 0, 1)
    with pytest.raises(InvalidReplicationFactor, match=r"^Replication factor must be larger than 0\.$"):
        placed([3], 1, 0)
    with pytest.raises(InvalidReplicationFactor, match=r"^Replication factor: 4 larger than available brokers: 3\.$"):
        placed([3], 1, 4)
    with pytest.raises(InvalidReplicationFactor, match=r"^All brokers are currently fenced\.$"):
        place(Task((UsableBroker(BrokerId(0), None, True),), 1, 1, (), 1), {})


@pytest.mark.parametrize(("sizes", "replication_factor"), [([6, 6, 6], 3), ([4] * 6, 3), ([8, 8], 3), ([20], 3)])
def test_a_lost_broker_is_caught_up_from_most_others(sizes: Sequence[int], replication_factor: int) -> None:
    """With few replica sets, as striping makes, a broker shares partitions with RF − 1 others and waits for them."""
    rows, _, _ = placed(sizes, 2000, replication_factor)
    sets = {tuple(sorted(row)) for row in rows.tolist()}
    assert len(sets) > 8 * sum(sizes)
    partners = {one for row in rows.tolist() if 0 in row for one in row if one != 0}
    could_be = sum(sizes) - (sizes[0] if len(sizes) >= replication_factor else 1)
    assert len(partners) >= 0.9 * could_be


def test_different_seeds_give_different_assignments() -> None:
    assert not np.array_equal(placed([4, 4, 4], 24, 3, seed=1)[0], placed([4, 4, 4], 24, 3, seed=2)[0])


@pytest.mark.soak
@pytest.mark.parametrize("racks", [1, 2, 3, 6, 1000])
def test_a_million_partitions_on_a_thousand_brokers_are_exactly_level(racks: int) -> None:
    sizes = [1000 // racks + (rack < 1000 % racks) for rack in range(racks)]
    _, leaders, replicas = placed(sizes, 1_000_000, 3)
    assert (min(leaders), max(leaders)) == (1000, 1000)
    by_factor = np.array([0, 0, 0, 1_000_000])
    assert max(replicas) == replica_bound(rack_map(registered(cluster(sizes))), by_factor)


def test_configs_of_others_are_passed_over_and_misspelt_ones_of_ours_are_not() -> None:
    assert placed([1], 1, 1)[0].tolist() == [[0]]
    place(Task(cluster([1]), 1, 1, (), 1), {"log.dirs": "/var/lib/kafka"})
    with pytest.raises(ReplicaPlacementException, match=r"balanced\.drained: there is no such config"):
        placed([1], 1, 1, drained="1")
