"""The core as a whole, in a small world: what a client and an operator see."""

import pytest

from rackspan.cluster.core.admin_messages import DeleteTopics
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.messages import Effect, FetchPosition, ReplicaFetch, Send
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.world import World

THREE_RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}


def world(racks: dict[int, str | None] | None = None) -> World:
    made = World(racks or dict(THREE_RACKS))
    made.run(500)
    return made


def test_a_record_is_acknowledged_once_every_replica_has_it() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    result = w.produced(orders)
    assert (result.error, result.base_offset) == (ErrorCode.NONE, 0)
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
    assert w.produced(orders).error is ErrorCode.NONE
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


@pytest.mark.slow
@pytest.mark.parametrize("topics", [1, 200])
def test_an_idle_cluster_sends_as_much_however_many_partitions_it_has(topics: int) -> None:
    w = world()
    for topic in range(topics):
        w.create(f"t{topic}", *[[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 3)
    w.settle()
    w.run(2_000)
    before = w.events_done
    declared: list[FetchPosition] = []
    w.on_effect = lambda _source, effect: declared.extend(positions_in(effect))
    w.run(10_000)
    # Per second: 80 ticks, 6 pairs of brokers x 2 fetches and responses, 10 heartbeats and metadata fetches and responses.
    assert w.events_done - before < 10 * 150
    assert declared == []


def positions_in(effect: Effect) -> tuple[FetchPosition, ...]:
    return effect.message.positions if isinstance(effect, Send) and isinstance(effect.message, ReplicaFetch) else ()


def test_a_leader_that_thaws_resigns_and_truncates_what_it_wrote_alone() -> None:
    w = world()
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.isolate(1)
    lonely = w.produce(1, orders, acks=1)
    w.run(5_000)
    assert w.state(orders).leader == 2
    assert w.produced(orders, RecordBatch(0, 1, -1)).base_offset == 0
    assert w.disks[1].logs[orders].batches != w.disks[2].logs[orders].batches
    w.heal()
    w.run(3_000)
    assert lonely in w.results
    assert w.isr(orders) == {1, 2, 3}
    assert w.disks[1].logs[orders].batches == w.disks[2].logs[orders].batches


def test_a_broker_far_behind_is_sent_an_image_and_drops_what_it_holds_no_more() -> None:
    w = World(THREE_RACKS, ClusterSettings(metadata_records_kept=10))
    w.run(500)
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.kill(3)
    w.run(4_000)
    w.admin(lambda correlation_id: DeleteTopics(correlation_id, ("orders",)))
    for topic in range(30):
        w.create(f"t{topic}", [1, 2])
    w.start(3)
    w.run(1_000)
    assert w.broker(3).image == w.controller.image
    assert orders not in w.disks[3].logs
