"""The core as a whole, in a small world: what a client and an operator see."""

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import TopicPartition
from tests.cluster.world import World

THREE_RACKS = {1: "a", 2: "b", 3: "c"}


def world(racks: dict[int, str | None] | None = None, **settings: object) -> World:
    made = World(racks or dict(THREE_RACKS))
    made.run(500)
    return made


def test_a_record_is_acknowledged_once_every_replica_has_it() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    result = w.produced(orders)
    assert (result.error, result.base_offset) == (KafkaError.NONE, 0)
    assert [disk.logs[orders].end_offset for disk in w.disks.values()] == [1, 1, 1]
    w.run(100)
    assert [disk.logs[orders].high_watermark for disk in w.disks.values()] == [1, 1, 1]


def test_a_broker_that_dies_leaves_the_isr_and_returns_to_it() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.kill(1)
    w.run(4_000)
    assert (w.state(orders).leader, w.isr(orders)) == (2, {2, 3})
    assert w.produced(orders).error is KafkaError.NONE
    w.start(1)
    w.run(2_000)
    assert w.isr(orders) == {1, 2, 3}
    assert w.disks[1].logs[orders].end_offset == 1


def test_an_idle_cluster_is_whole_within_two_seconds_of_a_racks_return() -> None:
    w = world({1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"})
    w.create("orders", *[[1, 2, 3], [4, 5, 6], [2, 3, 4], [5, 6, 1]])
    w.settle()
    w.kill(1)
    w.kill(4)
    w.run(5_000)
    assert w.isr(TopicPartition("orders", 0)) == {2, 3}
    w.start(1)
    w.start(4)
    w.run(2_000)
    assert [w.isr(TopicPartition("orders", i)) for i in range(4)] == [{1, 2, 3}, {4, 5, 6}, {2, 3, 4}, {5, 6, 1}]
