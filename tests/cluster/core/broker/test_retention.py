"""What a leader deletes by itself: records past retention.ms, and what a log in memory has no space for."""

import pytest

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import TopicPartition
from tests.cluster.world import World

RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}


def _world(settings: ClusterSettings) -> World:
    world = World(RACKS, settings=settings)
    world.run(500)
    return world


def _starts(world: World, partition: TopicPartition) -> set[int]:
    return {disk.logs[partition].start_offset for disk in world.disks.values()}


@pytest.mark.parametrize(
    ("configs", "start"),
    [
        ({"retention_ms": "1000"}, 2),
        ({"retention_ms": "-1"}, 0),
        ({"retention_ms": "100000"}, 0),
        ({"retention_ms": "1000", "cleanup_policy": "compact"}, 0),
        ({"retention_ms": "1000", "cleanup_policy": "compact,delete"}, 2),
    ],
)
def test_records_are_deleted_on_every_replica_when_they_are_older_than_retention_ms(
    configs: dict[str, str], start: int
) -> None:
    world = _world(ClusterSettings(retention_check_interval_ms=500))
    orders = world.create("orders", [1, 2, 3], **configs)
    world.settle()
    for _ in range(2):
        world.produced(orders, RecordBatch(0, 0, -1, max_timestamp=world.now))
    world.run(1_600)
    world.produced(orders, RecordBatch(0, 0, -1, max_timestamp=world.now))
    world.run(50)
    assert _starts(world, orders) == {start}


def test_a_warning_says_once_a_partition_that_the_bound_of_a_log_deletes_its_records() -> None:
    world = _world(ClusterSettings(log_max_bytes=1_000))
    orders = world.create("orders", [1, 2, 3])
    bills = world.create("bills", [1, 2, 3], retention_bytes="1000")
    world.settle()
    for _ in range(30):
        for partition in (orders, bills):
            world.produced(partition, RecordBatch(0, 0, -1, bytes(100)))
    world.run(50)
    assert min(_starts(world, orders)) > 0
    assert [warning for warning in world.warnings() if "1000 bytes" in warning and "orders-0 loses" in warning] != []
    assert sum("loses its oldest records" in warning for warning in world.warnings()) == 1
