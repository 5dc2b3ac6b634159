from rackspan.assignor.replica_racks import Replicas, racks_of_brokers, readable_in
from rackspan.model import BrokerId, RackId
from rackspan.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)
RACKS = {BrokerId(1): RackId("r1"), BrokerId(2): RackId("r2")}


def replicas(leader: int, *others: int) -> dict[TopicPartition, Replicas]:
    return {ORDERS: Replicas(BrokerId(leader), tuple(map(BrokerId, (leader, *others))))}


def test_any_replica_makes_a_partition_local() -> None:
    assert readable_in(replicas(1, 2), RACKS, followers=True) == {ORDERS: {"r1", "r2"}}


def test_without_fetching_from_followers_only_the_leader_does() -> None:
    assert readable_in(replicas(1, 2), RACKS, followers=False) == {ORDERS: {"r1"}}


def test_a_partition_without_leader_is_then_local_to_no_member() -> None:
    assert readable_in({ORDERS: Replicas(BrokerId(-1), (BrokerId(1),))}, RACKS, followers=False) == {ORDERS: set()}


def test_brokers_without_rack_or_unknown_make_nothing_local() -> None:
    assert racks_of_brokers([(1, "r1"), (2, None), (3, "")]) == {1: "r1"}
    assert readable_in(replicas(2, 9), {BrokerId(1): RackId("r1")}, followers=True) == {ORDERS: set()}
