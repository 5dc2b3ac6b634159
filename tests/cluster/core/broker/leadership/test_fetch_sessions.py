"""Fetch sessions on the leader: which fetch is next, why a follower cannot be served, and what it has not got yet."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker.leadership.fetch_sessions import (
    FetchSession,
    next_fetched,
    not_led,
    position_error,
    session_error,
)
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import FetchedPartition, FetchPosition, ReplicaFetch
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=1)
FOLLOWER = BrokerId(2)


def log_of(*epochs: int, start: int = 0) -> PartitionLog:
    """One record an epoch given."""
    log = PartitionLog(TOPIC_ID)
    for epoch in epochs:
        log.append_as_leader(RecordBatch(0, 0, -1, bytes(100)), epoch)
    log.high_watermark = log.end_offset
    log.delete_below(start)
    return log


def leader_of(log: PartitionLog) -> Any:
    """Of broker 1, in epoch 5, followed by broker 2."""
    return SimpleNamespace(log=log, topic_id=TOPIC_ID, leader_epoch=5, followers={FOLLOWER: None})


def at(offset: int, last_epoch: int, leader_epoch: int = 5, topic_id: UUID = TOPIC_ID) -> FetchPosition:
    return FetchPosition(ORDERS, topic_id, leader_epoch, offset, last_epoch, 0)


@pytest.mark.parametrize(
    ("position", "error", "log_start"),
    [
        (at(6, 4, topic_id=UUID(int=9)), ErrorCode.INCONSISTENT_TOPIC_ID, 0),
        (at(6, 4, leader_epoch=4), ErrorCode.FENCED_LEADER_EPOCH, 0),
        (at(6, 4, leader_epoch=6), ErrorCode.UNKNOWN_LEADER_EPOCH, 0),
        (at(1, 1), ErrorCode.OFFSET_OUT_OF_RANGE, 2),
        (at(7, -1), ErrorCode.OFFSET_OUT_OF_RANGE, 2),
    ],
)
def test_a_follower_that_cannot_be_served_gets_its_position_back_with_the_error(
    position: FetchPosition, error: ErrorCode, log_start: int
) -> None:
    leader = leader_of(log_of(1, 1, 1, 2, 2, 4, start=2))
    assert position_error(leader, FOLLOWER, position) == FetchedPartition(
        ORDERS, position.leader_epoch, position.offset, position.last_fetched_epoch, error, -1, log_start, (), None
    )


def test_a_follower_that_is_no_replica_has_to_fetch_again() -> None:
    refused = position_error(leader_of(log_of(1)), BrokerId(3), at(1, 1))
    assert refused == FetchedPartition(ORDERS, 5, 1, 1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 0)


@pytest.mark.parametrize(
    ("position", "diverging"),
    [
        (at(6, 4), None),
        (at(2, -1), None),
        (at(6, -1), None),
        (at(3, 1), None),
        (at(5, 2), None),
        (at(4, 1), (1, 3)),
        (at(6, 2), (2, 5)),
        (at(6, 3), (2, 5)),
        (at(7, 4), (4, 6)),
        (at(7, 7), (4, 6)),
    ],
)
def test_logs_part_where_the_leader_has_another_end_of_the_followers_epoch(
    position: FetchPosition, diverging: tuple[int, int] | None
) -> None:
    """KIP-595; an epoch that the leader has not begins to be compared at its last one."""
    refused = position_error(leader_of(log_of(1, 1, 1, 2, 2, 4, start=2)), FOLLOWER, position)
    wanted = FetchedPartition(
        ORDERS, 5, position.offset, position.last_fetched_epoch, ErrorCode.NONE, -1, 2, (), diverging
    )
    assert refused == (None if diverging is None else wanted)


@pytest.mark.parametrize(
    ("epoch", "sequence", "full", "error"),
    [
        (7, 5, False, ErrorCode.NONE),
        (7, 6, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (7, 6, True, ErrorCode.NONE),
        (7, 4, True, None),
        (7, 3, False, None),
        (6, 9, True, None),
        (8, 5, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (8, 1, True, ErrorCode.NONE),
    ],
)
def test_only_the_next_fetch_continues_a_session_and_an_old_one_gets_no_response(
    epoch: int, sequence: int, full: bool, error: ErrorCode | None
) -> None:
    fetch = ReplicaFetch(FOLLOWER, epoch, sequence, full, ())
    assert session_error({FOLLOWER: FetchSession(FOLLOWER, 7, 4)}, fetch) is error
    assert session_error({}, fetch) is (ErrorCode.NONE if full else ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


def test_a_refused_partition_is_forgotten_and_its_error_sent_once() -> None:
    session = FetchSession(FOLLOWER, 7, 4)
    session.declare(at(1, 1))
    session.uncounted[ORDERS] = None
    assert (session.has_updates, session.parked_until, session.sent) == (True, None, {ORDERS: 0})
    error = FetchedPartition(ORDERS, 5, 1, 1, ErrorCode.FENCED_LEADER_EPOCH)
    session.refuse(error)
    assert (session.positions, session.ready, session.sent, session.uncounted) == ({}, {}, {}, {})
    assert (session.errors, session.has_updates) == ([error], True)
    session.errors.clear()
    assert not session.has_updates
    session.forget(ORDERS)


def test_a_follower_gets_the_records_and_the_watermark_that_it_has_not_got() -> None:
    log = log_of(1, 1, 1, start=1)
    session = FetchSession(FOLLOWER, 7, 4)

    def fetched(offset: int, max_bytes: int = 1_000) -> FetchedPartition | None:
        return next_fetched(leader_of(log), session, at(offset, 1), max_bytes)

    session.declare(at(3, 1))
    assert fetched(3) == FetchedPartition(ORDERS, 5, 3, 1, ErrorCode.NONE, 3, 1, ())
    assert fetched(3) is None, "the watermark was sent"
    assert fetched(0) == FetchedPartition(ORDERS, 5, 0, 1, ErrorCode.OFFSET_OUT_OF_RANGE, -1, 1)
    assert fetched(2) == FetchedPartition(ORDERS, 5, 2, 1, ErrorCode.NONE, 3, 1, log.batches[-1:])
    some = fetched(1, max_bytes=100)
    assert some is not None
    assert [one.base_offset for one in some.batches] == [1]


def test_a_partition_that_is_led_elsewhere_is_refused_at_its_position() -> None:
    assert not_led(at(6, 4)) == FetchedPartition(ORDERS, 5, 6, 4, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, 0)
