"""What a broker deletes by itself: records past retention.ms, what a log in memory has no space for, what compaction replaces."""

from random import Random

import pytest

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.record_batch import HEADER_BYTES, stored_records
from rackspan.model.ids import TopicPartition
from tests.cluster.world import World
from tests.conformance.wire import batch

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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_replicas_that_are_compacted_one_by_one_end_with_the_latest_value_of_each_key(seed: int) -> None:
    """Brokers are lost and return, at worst with an empty disk, while every replica is compacted in its own time."""
    settings = ClusterSettings(cleaner_backoff_ms=200, min_insync_replicas=2)
    rng, world = Random(seed), World(RACKS, settings=settings, seed=seed)
    world.run(500)
    orders = world.create(
        "orders", [1, 2, 3], cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01"
    )
    world.settle()
    latest: dict[bytes, int] = {}
    lost: int | None = None
    for number in range(120):
        if number % 20 == 5:
            lost = rng.randint(1, 3)
            world.kill(lost)
            world.run(4_000)
        if number % 20 == 15 and lost is not None:
            if rng.random() < 0.5:
                world.disks[lost].logs.clear()
            world.start(lost)
            world.settle()
        key = rng.choice([b"a", b"b", b"c", b"d"])
        data = batch(b"x" * 10, keys=[key], times=[world.now])
        latest[key] = world.produced(
            orders, RecordBatch(0, 0, -1, bytearray(data), max_timestamp=world.now)
        ).base_offset
        world.run(rng.choice([1, 50, 300]))
    world.run(5_000)
    for disk in world.disks.values():
        log = disk.logs[orders]
        found = {
            record.key: one.base_offset for one in log.batches for record in stored_records(one.data[HEADER_BYTES:])
        }
        assert found == latest
        assert log.end_offset == 120
        assert len(log.batches) < 30
