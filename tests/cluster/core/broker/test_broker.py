"""A broker's queries and requests where it does not lead, and what a produced request is refused for before its records."""

import pytest

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import ReadResponse
from rackspan.cluster.core.broker.reading import OffsetResponse
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.messages import (
    DeleteRecords,
    DeleteRecordsResponse,
    Effect,
    FetchedPartition,
    FetchPosition,
    Produce,
    ProduceResponse,
    ReplicaFetch,
    ReplicaFetchResponse,
    Respond,
    Send,
    Stopped,
)
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.handlers.common import keyless_records
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.world import World
from tests.conformance.wire import batch

ORDERS, NOBODY = TopicPartition("orders", 0), TopicPartition("nobody", 0)


@pytest.fixture
def w() -> World:
    """Broker 1 leads orders-0 with two records of 100 bytes, broker 2 follows."""
    w = World({1: "a", 2: "b"}, ClusterSettings(fetch_max_bytes=100))
    w.run(500)
    w.create("orders", [1, 2])
    w.create("other", [1, 2])
    w.settle()
    for _ in range(2):
        w.produced(ORDERS, RecordBatch(0, 0, -1, bytes(100)))
    w.run(50)
    return w


def response(effects: list[Effect]) -> object:
    (one,) = [effect.response for effect in effects if isinstance(effect, Respond)]
    return one


@pytest.mark.parametrize(
    ("partition", "error"),
    [(ORDERS, ErrorCode.NOT_LEADER_OR_FOLLOWER), (NOBODY, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)],
)
def test_a_query_where_the_broker_does_not_lead_gets_the_error_and_no_offsets(
    w: World, partition: TopicPartition, error: ErrorCode
) -> None:
    core = w.broker(2)
    assert core.read(partition, 0, 10) == ReadResponse(error, -1, -1, -1, (), (), BrokerId(-1), None)
    assert core.offset_for_timestamp(partition, -1) == OffsetResponse(error, -1, -1, None)
    assert core.offset_for_leader_epoch(partition, 0) == (error, (-1, -1))
    refused = response(core.on_message(w.now, CLIENT, DeleteRecords(9, partition, 0)))
    assert refused == DeleteRecordsResponse(error, -1)
    produce = Produce(8, partition, (RecordBatch(0, 0, -1),))
    assert response(core.on_message(w.now, CLIENT, produce)) == ProduceResponse(error, -1, -1, -1, None, ())


@pytest.mark.parametrize(
    ("acks", "partition", "data", "error", "message"),
    [
        (2, ORDERS, b"x", ErrorCode.INVALID_REQUIRED_ACKS, None),
        (-2, None, b"", ErrorCode.INVALID_REQUIRED_ACKS, None),
        (1, None, b"x", ErrorCode.UNKNOWN_TOPIC_ID, None),
        (0, ORDERS, b"", ErrorCode.INVALID_RECORD, "no record batch; exactly one is wanted"),
        (-1, ORDERS, None, ErrorCode.INVALID_RECORD, "no record batch; exactly one is wanted"),
        (-1, NOBODY, b"x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None),
    ],
)
def test_a_produce_is_refused_for_its_acks_its_topic_and_its_size_before_its_records_are_read(
    w: World, acks: int, partition: TopicPartition | None, data: bytes | None, error: ErrorCode, message: str | None
) -> None:
    records = None if data is None else memoryview(data)
    refused = w.broker(1).validated_batch(partition, records, acks, 0, keyless_records)
    assert refused == ProduceResponse(error, message=message)


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_every_acks_of_kafkas_is_accepted(w: World, acks: int) -> None:
    records = memoryview(batch(b"a", times=[w.now]))
    assert isinstance(w.broker(1).validated_batch(ORDERS, records, acks, w.now, keyless_records), RecordBatch)


def test_an_acknowledgement_has_the_offset_and_the_start_of_the_log_and_no_time_of_append(w: World) -> None:
    w.broker(1).disk.logs[ORDERS].delete_below(1)
    assert w.produced(ORDERS) == ProduceResponse(ErrorCode.NONE, 2, -1, 1, None, ())
    assert w.produced(ORDERS, acks=1) == ProduceResponse(ErrorCode.NONE, 3, -1, 1, None, ())


def test_records_are_deleted_up_to_the_watermark_and_from_the_start_of_the_log(w: World) -> None:
    core = w.broker(1)
    for offset, error, start in [
        (0, ErrorCode.NONE, 0),
        (1, ErrorCode.NONE, 1),
        (1, ErrorCode.NONE, 1),
        (0, ErrorCode.NONE, 1),
        (-2, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        (3, ErrorCode.OFFSET_OUT_OF_RANGE, -1),
        (-1, ErrorCode.NONE, 2),
    ]:
        deleted = response(core.on_message(w.now, CLIENT, DeleteRecords(9, ORDERS, offset)))
        assert deleted == DeleteRecordsResponse(error, start)


def test_a_batch_above_the_topics_limit_is_too_large_and_one_at_it_is_not() -> None:
    w = World({1: "a"})
    w.run(500)
    orders = w.create("orders", [1], max_message_bytes="100")
    w.settle()
    errors = [w.produced(orders, RecordBatch(0, 0, -1, bytes(size))).error for size in (101, 100)]
    assert errors == [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NONE]


def test_a_followers_fetch_gets_as_much_as_one_response_holds_and_the_rest_with_the_next(w: World) -> None:
    core, topics = w.broker(1), w.controller.image.topics
    w.produced(TopicPartition("other", 0), RecordBatch(0, 0, -1, bytes(100)))
    positions = tuple(
        FetchPosition(TopicPartition(name, 0), topics[name].topic_id, 0, 0, -1, 0) for name in ("orders", "other")
    )
    epoch = w.broker(2).broker_epoch

    def fetched(*positions: FetchPosition, sequence: int, full: bool = False) -> list[tuple[str, int]]:
        effects = core.on_message(w.now, 2, ReplicaFetch(BrokerId(2), epoch, sequence, full, positions))
        sent = [one.message for one in effects if isinstance(one, Send)]
        (message,) = [one for one in sent if isinstance(one, ReplicaFetchResponse)]
        return [(one.partition.topic, len(one.batches)) for one in message.partitions]

    assert fetched(*positions, sequence=9_000, full=True) == [("orders", 1)]
    assert fetched(sequence=9_001) == [("other", 1)]


def test_a_followers_fetch_where_the_broker_does_not_lead_is_refused_in_its_response(w: World) -> None:
    topic_id = w.controller.image.topics["orders"].topic_id
    fetch = ReplicaFetch(BrokerId(1), 7, 1, True, (FetchPosition(ORDERS, topic_id, 0, 2, 0, 2),))
    effects = w.broker(2).on_message(w.now, 1, fetch)
    refused = FetchedPartition(ORDERS, 0, 2, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 0)
    assert effects == [Send(1, ReplicaFetchResponse(7, 1, ErrorCode.NONE, (refused,)))]


def test_a_broker_that_has_ended_handles_nothing(w: World) -> None:
    core = w.broker(2)
    w.shut_down(2)
    w.run(500)
    assert (2, Stopped()) in w.effects
    assert core.on_tick(w.now + 9_000) == []
    assert core.on_message(w.now, CLIENT, Produce(8, ORDERS, (RecordBatch(0, 0, -1),))) == []
    assert w.broker(1).on_message(w.now, CLIENT, Stopped()) == []  # type: ignore[arg-type]
