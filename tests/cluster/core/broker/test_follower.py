"""Followers and leaders, message by message: what the whole cluster would hide."""

from uuid import UUID

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerRules
from rackspan.cluster.core.broker.follower import FetchOutcome, Follower, ReplicaFetcher
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import (
    FetchedPartition,
    FetchPosition,
    ReplicaFetch,
    ReplicaFetchResponse,
    Send,
    WatermarkMoved,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.world import World

ORDERS = TopicPartition("orders", 0)
RETRY_MS, BACKOFF_MS = 1_500, 50
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
    assert newer.partitions[0].error is ErrorCode.UNKNOWN_LEADER_EPOCH
    (older,) = request(w, at(w, 3, 0, leader_epoch=-1), sequence=9_001)
    assert older.partitions[0].error is ErrorCode.FENCED_LEADER_EPOCH


def test_a_replica_that_is_not_in_its_leaders_image_has_to_fetch_again() -> None:
    """Found by seed 490 of the simulated world "reassigning": parked, it would have been forgotten for ever."""
    w = World(RACKS)
    w.run(500)
    w.create("orders", [1, 3])
    w.settle()
    (response,) = request(w, at(w, 0, -1))
    assert response.partitions[0].error is ErrorCode.NOT_LEADER_OR_FOLLOWER


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
    assert lost.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_for_a_deleted_topic_of_the_same_name_is_refused() -> None:
    w = leading()
    stranger = FetchPosition(ORDERS, UUID(int=5), 0, 0, -1, 0)
    (response,) = request(w, stranger)
    assert response.partitions[0].error is ErrorCode.INCONSISTENT_TOPIC_ID


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
        ErrorCode.NONE,
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
    gone = FetchedPartition(ORDERS, 4, 2, 1, ErrorCode.OFFSET_OUT_OF_RANGE, log_start=10)
    assert outcome(log, gone) is FetchOutcome.TRUNCATED
    assert (log.start_offset, log.end_offset) == (10, 10)


def follower(number: int, log: PartitionLog | None = None) -> Follower:
    partition = TopicPartition("orders", number)
    return Follower(partition, log or log_of(4), BrokerId(1), 4, BrokerRules())


def fetcher_of(*numbers: int) -> ReplicaFetcher:
    fetcher = ReplicaFetcher(BrokerId(1))
    for number in numbers:
        fetcher.follow(follower(number))
    return fetcher


def sent(fetcher: ReplicaFetcher, now: int = 0) -> ReplicaFetch:
    return fetcher.next_fetch(now, BrokerId(2), 70, RETRY_MS)


def applied(
    fetcher: ReplicaFetcher,
    *partitions: FetchedPartition,
    sequence: int | None = None,
    error: ErrorCode = ErrorCode.NONE,
    now: int = 0,
) -> list[FetchOutcome]:
    number = fetcher.sequence if sequence is None else sequence
    response = ReplicaFetchResponse(70, number, error, partitions)
    return [outcome for _, outcome in fetcher.apply(now, response, BACKOFF_MS)]


def numbers(fetch: ReplicaFetch) -> list[int]:
    return [position.partition.partition for position in fetch.positions]


def refused(number: int) -> FetchedPartition:
    return FetchedPartition(TopicPartition("orders", number), 4, 1, 4, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def test_the_first_fetch_is_a_full_one_and_the_next_hold_what_has_changed() -> None:
    fetcher = fetcher_of(0, 1)
    first = sent(fetcher)
    positions = tuple(follower(number).position() for number in (0, 1))
    assert first == ReplicaFetch(BrokerId(2), 70, 1, True, positions, ())
    assert applied(fetcher) == []
    fetcher.follow(follower(2))
    fetcher.unfollow(TopicPartition("orders", 0))
    second = sent(fetcher)
    assert (second.sequence, second.full, numbers(second)) == (2, False, [2])
    assert second.forgotten == (TopicPartition("orders", 0),)
    applied(fetcher)
    assert sent(fetcher) == ReplicaFetch(BrokerId(2), 70, 3, False, (), ())


def test_a_partition_that_is_followed_again_is_not_forgotten_and_one_that_never_was_neither() -> None:
    fetcher = fetcher_of(0)
    fetcher.unfollow(TopicPartition("orders", 0))
    fetcher.follow(follower(0))
    fetcher.unfollow(TopicPartition("orders", 9))
    fetch = sent(fetcher)
    assert (numbers(fetch), fetch.forgotten) == ([0], ())


def test_a_fetch_is_due_when_there_is_something_to_declare_or_no_response_came() -> None:
    fetcher = ReplicaFetcher(BrokerId(1))
    assert not fetcher.is_due(0, RETRY_MS), "it follows nothing"
    fetcher.follow(follower(0))
    assert fetcher.is_due(0, RETRY_MS)
    sent(fetcher, now=10)
    assert [fetcher.is_due(now, RETRY_MS) for now in (10, 10 + RETRY_MS - 1, 10 + RETRY_MS)] == [False, False, True]
    again = sent(fetcher, now=10 + RETRY_MS)
    assert (again.sequence, again.full, numbers(again)) == (2, True, [0])
    applied(fetcher)
    assert fetcher.is_due(10 + RETRY_MS, RETRY_MS)
    sent(fetcher, now=20)
    fetcher.unfollow(TopicPartition("orders", 0))
    applied(fetcher)
    assert fetcher.is_due(20, RETRY_MS), "the leader is to forget it"
    sent(fetcher, now=20)
    applied(fetcher)
    assert not fetcher.is_due(20, RETRY_MS)


def test_a_refused_partition_is_declared_again_after_its_backoff() -> None:
    fetcher = fetcher_of(0, 1)
    sent(fetcher)
    assert applied(fetcher, refused(0), now=5) == [FetchOutcome.REFUSED]
    fetcher.start_over = True
    assert numbers(sent(fetcher)) == [1], "not before"
    fetcher.end_backoff(5 + BACKOFF_MS - 1)
    assert not fetcher.undeclared
    fetcher.end_backoff(5 + BACKOFF_MS)
    assert (numbers(sent(fetcher)), fetcher.retry_at) == ([0], {})


def test_the_backoff_ends_where_a_partition_is_followed_anew_or_no_longer() -> None:
    fetcher = fetcher_of(0, 1)
    sent(fetcher)
    applied(fetcher, refused(0), refused(1))
    fetcher.follow(follower(0))
    fetcher.unfollow(TopicPartition("orders", 1))
    fetcher.end_backoff(BACKOFF_MS)
    fetch = sent(fetcher)
    assert (numbers(fetch), fetch.forgotten) == ([0], (TopicPartition("orders", 1),))


def test_only_the_response_to_the_last_fetch_ends_the_wait_and_its_error_begins_a_new_session() -> None:
    fetcher = fetcher_of(0)
    sent(fetcher)
    sent(fetcher)
    applied(fetcher, sequence=1, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert (fetcher.awaits_response, fetcher.start_over) == (True, False)
    applied(fetcher, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert (fetcher.awaits_response, fetcher.start_over) == (False, True)
    assert sent(fetcher).full


def test_what_was_copied_or_was_stale_is_declared_again_and_a_watermark_alone_is_not() -> None:
    log = log_of(4)
    fetcher = ReplicaFetcher(BrokerId(1))
    fetcher.follow(follower(0, log))
    sent(fetcher)
    assert applied(fetcher, news(log)) == [FetchOutcome.WATERMARK]
    assert not fetcher.undeclared
    assert applied(fetcher, news(log, RecordBatch(1, 1, 4))) == [FetchOutcome.COPIED]
    assert [one.offset for one in sent(fetcher).positions] == [2]
    assert applied(fetcher, news(log, offset=1)) == [FetchOutcome.STALE]
    assert [one.offset for one in sent(fetcher).positions] == [2]
    elsewhere = FetchedPartition(TopicPartition("orders", 9), 4, 1, 4, ErrorCode.NONE)
    assert applied(fetcher, elsewhere) == [], "it is not followed"


def test_the_watermark_moves_for_what_was_copied_and_bytes_add_up() -> None:
    """A refusal or a truncation moves none."""
    w = World(RACKS)
    w.run(500)
    w.create("orders", [1, 2, 3])
    w.settle()
    for _ in range(3):
        w.produced(ORDERS, RecordBatch(0, 0, -1, bytes(100)))
    w.run(20)
    core = w.broker(2)
    assert dict(core.counters.replicated_bytes) == {("orders", "a", "b"): 300}
    log = core.disk.logs[ORDERS]

    def moved(error: ErrorCode, **more: object) -> bool:
        fetched = FetchedPartition(ORDERS, 0, log.end_offset, log.last_epoch, error, log.high_watermark, **more)  # type: ignore[arg-type]
        effects = core.on_message(w.now, 1, ReplicaFetchResponse(core.broker_epoch, 0, ErrorCode.NONE, (fetched,)))
        return WatermarkMoved(ORDERS) in effects

    assert moved(ErrorCode.NONE)
    assert not moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    kept = log.end_offset
    assert not moved(ErrorCode.NONE, diverging=(0, 2))
    assert (kept, log.end_offset) == (3, 2)
