"""Consumers' fetches: the limit of bytes, and whether a fetch waits for more."""

from dataclasses import replace

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import ClientFetch, Isolation, PartitionFetch
from rackspan.model.ids import TopicPartition
from tests.cluster.world import World

ORDERS, OTHER = TopicPartition("orders", 0), TopicPartition("other", 0)
UNKNOWN = TopicPartition("unknown", 0)


def with_batches(size_bytes: int) -> World:
    """Broker 1 leads orders-0 and other-0, each with one batch of this size."""
    w = World({1: "a"})
    w.run(500)
    for partition in (ORDERS, OTHER):
        w.create(partition.topic, [1])
        w.settle()
        w.produced(partition, RecordBatch(0, 0, -1, bytes(size_bytes)))
    return w


def fetch(*partitions: TopicPartition, offset: int = 0, min_bytes: int = 1, max_bytes: int = 1_000) -> ClientFetch:
    fetches = [PartitionFetch(partition, offset, max_bytes=1_000) for partition in partitions]
    return ClientFetch(fetches, min_bytes, max_bytes, max_wait_ms=100, isolation=Isolation.READ_UNCOMMITTED)


def sizes(w: World, request: ClientFetch) -> list[int]:
    read = request.read(w.broker(1))
    return [sum(batch.size_bytes for batch in response.batches) for response in read.partitions]


def test_the_first_batch_is_read_even_if_it_is_larger_than_the_limit() -> None:
    w = with_batches(100)
    assert sizes(w, fetch(ORDERS, OTHER, max_bytes=10)) == [100, 0]
    assert sizes(w, fetch(ORDERS, OTHER, max_bytes=150)) == [100, 0]
    assert sizes(w, fetch(ORDERS, OTHER, max_bytes=200)) == [100, 100]


def test_a_fetch_waits_until_it_has_min_bytes() -> None:
    w = with_batches(100)
    enough, too_little = fetch(ORDERS, min_bytes=100), fetch(ORDERS, min_bytes=101)
    assert not enough.waits(enough.read(w.broker(1)))
    assert too_little.waits(too_little.read(w.broker(1)))
    w.produced(ORDERS, RecordBatch(0, 0, -1, bytes(100)))
    assert too_little.is_complete(too_little.read(w.broker(1)))


def test_a_fetch_that_may_not_wait_responds_at_once() -> None:
    w = with_batches(100)
    request = replace(fetch(ORDERS, offset=1), max_wait_ms=0)
    assert not request.waits(request.read(w.broker(1)))


def test_an_unknown_partition_waits_beside_a_known_one_and_not_alone() -> None:
    w = with_batches(100)
    alone, beside = fetch(UNKNOWN), fetch(UNKNOWN, ORDERS, offset=1)
    assert not alone.waits(alone.read(w.broker(1)))
    assert beside.waits(beside.read(w.broker(1)))


def test_an_error_is_sent_at_once() -> None:
    w = with_batches(100)
    request = fetch(ORDERS, OTHER, offset=9)
    assert request.read(w.broker(1)).respond_now
    assert not request.waits(request.read(w.broker(1)))
