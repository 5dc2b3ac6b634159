"""Followers and leaders, message by message: what the whole cluster would hide."""

from uuid import UUID

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerRules
from rackspan.cluster.core.broker.follower import FetchOutcome, Follower
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import FetchedPartition, FetchPosition, ReplicaFetch, ReplicaFetchResponse, Send
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.world import World

ORDERS = TopicPartition("orders", 0)
RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}


def log_of(*epochs: int) -> PartitionLog:
    """One record an epoch given."""
    log = PartitionLog(UUID(int=1))
    for epoch in epochs:
        log.append_as_leader(RecordBatch(0, 0, -1), epoch)
    return log


def leading() -> World:
    """Broker 1 leads orders-0, in epoch 0, with three records."""
    w = World(RACKS)
    w.run(500)
    w.create("orders", [1, 2, 3])
    w.settle()
    for _ in range(3):
        w.produced(ORDERS)
    w.run(20)
    return w


def request(
    w: World, *positions: FetchPosition, sequence: int = 9_000, full: bool = True
) -> list[ReplicaFetchResponse]:
    fetch = ReplicaFetch(BrokerId(2), w.broker(2).broker_epoch, sequence, full, positions)
    effects = w.broker(1).on_message(w.now, 2, fetch)
    return [one.message for one in effects if isinstance(one, Send) and isinstance(one.message, ReplicaFetchResponse)]


def at(w: World, offset: int, last_epoch: int, leader_epoch: int = 0, watermark: int = 3) -> FetchPosition:
    topic_id = w.controller.image.topics["orders"].topic_id
    return FetchPosition(ORDERS, topic_id, leader_epoch, offset, last_epoch, watermark)


def test_a_fetch_of_an_older_or_a_newer_epoch_gets_the_error_for_it() -> None:
    w = leading()
    (newer,) = request(w, at(w, 3, 0, leader_epoch=1))
    assert newer.partitions[0].error is KafkaError.UNKNOWN_LEADER_EPOCH
    (older,) = request(w, at(w, 3, 0, leader_epoch=-1), sequence=9_001)
    assert older.partitions[0].error is KafkaError.FENCED_LEADER_EPOCH


def test_a_replica_that_is_not_in_its_leaders_image_has_to_fetch_again() -> None:
    """Found by seed 490 of the simulated world "reassigning": parked, it would have been forgotten for ever."""
    w = World(RACKS)
    w.run(500)
    w.create("orders", [1, 3])
    w.settle()
    (response,) = request(w, at(w, 0, -1))
    assert response.partitions[0].error is KafkaError.NOT_LEADER_OR_FOLLOWER


def test_a_follower_beyond_its_leaders_log_gets_the_divergence_and_does_not_count() -> None:
    w = leading()
    before = w.broker(1).leaders[ORDERS].followers[BrokerId(2)].end_offset
    (response,) = request(w, at(w, 7, 0))
    assert response.partitions[0].diverging == (0, 3)
    assert w.broker(1).leaders[ORDERS].followers[BrokerId(2)].end_offset == before


def test_a_fetch_without_updates_is_parked_and_gets_an_empty_response_in_time() -> None:
    w = leading()
    assert request(w, at(w, 3, 0)) == []
    effects = w.broker(1).on_tick(w.now + 501)
    responses = [
        one.message for one in effects if isinstance(one, Send) and isinstance(one.message, ReplicaFetchResponse)
    ]
    assert [(one.sequence, one.partitions) for one in responses if one.sequence == 9_000] == [(9_000, ())]


def test_an_old_fetch_is_dropped_and_a_gap_starts_a_new_session() -> None:
    w = leading()
    request(w, at(w, 3, 0))
    assert request(w, at(w, 0, -1), sequence=8_999) == []
    (lost,) = request(w, sequence=9_002, full=False)
    assert lost.error is KafkaError.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_for_a_deleted_topic_of_the_same_name_is_refused() -> None:
    w = leading()
    stranger = FetchPosition(ORDERS, UUID(int=5), 0, 0, -1, 0)
    (response,) = request(w, stranger)
    assert response.partitions[0].error is KafkaError.INCONSISTENT_TOPIC_ID


def outcome(log: PartitionLog, fetched: FetchedPartition) -> FetchOutcome:
    return Follower(ORDERS, log, BrokerId(1), 4, BrokerRules()).apply(fetched)


def news(
    log: PartitionLog, *batches: RecordBatch, offset: int | None = None, epoch: int = 4, **more: object
) -> FetchedPartition:
    at_offset = log.end_offset if offset is None else offset
    return FetchedPartition(
        ORDERS,
        epoch,
        at_offset,
        log.last_epoch,
        KafkaError.NONE,
        batches=batches,
        **more,  # type: ignore[arg-type]
    )


def test_a_response_for_another_position_or_leadership_changes_nothing() -> None:
    log = log_of(1, 2)
    record = RecordBatch(2, 2, 4)
    assert outcome(log, news(log, record, epoch=3)) is FetchOutcome.STALE
    assert outcome(log, news(log, record, offset=1)) is FetchOutcome.STALE
    assert log.end_offset == 2
    assert outcome(log, news(log, record)) is FetchOutcome.COPIED
    assert (log.end_offset, log.last_epoch) == (3, 4)


def test_a_follower_that_has_the_leaders_epoch_truncates_to_the_smaller_end_of_it() -> None:
    log = log_of(1, 1, 1, 2)
    assert outcome(log, news(log, diverging=(1, 2))) is FetchOutcome.TRUNCATED
    assert (log.end_offset, log.last_epoch) == (2, 1)


def test_a_follower_without_it_truncates_to_the_end_of_the_one_below() -> None:
    log = log_of(1, 1, 3, 3)
    outcome(log, news(log, diverging=(2, 9)))
    assert (log.end_offset, log.last_epoch) == (2, 1)


def test_an_epoch_without_records_is_dropped_and_not_requested_for_ever() -> None:
    log = log_of(1, 1)
    log.epochs.assign(3, 2)
    outcome(log, news(log, diverging=(1, 5)))
    assert (log.end_offset, log.last_epoch) == (2, 1)


def test_a_follower_below_its_leaders_start_begins_anew_there() -> None:
    log = log_of(1, 1)
    gone = FetchedPartition(ORDERS, 4, 2, 1, KafkaError.OFFSET_OUT_OF_RANGE, log_start=10)
    assert outcome(log, gone) is FetchOutcome.TRUNCATED
    assert (log.start_offset, log.end_offset) == (10, 10)
