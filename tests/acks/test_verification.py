"""The verification of one record for a producer, which has no sample from before. tests/gateway/core/acknowledgement has the gateway's."""

from dataclasses import replace
from uuid import UUID

import pytest

from rackspan.acks.isr_samples import LogEnd, LogEnds, Sample, SampledPartition, newest_leader_sample
from rackspan.acks.min_insync_racks import Thresholds, rack_bits
from rackspan.acks.produce_errors import Cause
from rackspan.acks.verification import (
    AcknowledgedRecord,
    Leadership,
    RecordVerification,
    Requirement,
    refusal_before,
    topic_refusal_before,
)
from rackspan.errors import NotEnoughRacks, NotEnoughRacksAfterAppend, NotEnoughReplicas
from rackspan.model import Broker, BrokerId, RackId

ORDERS = ("orders", 0)
TWO_RACKS = Requirement(Thresholds(1, 2))
BITS = rack_bits([Broker(BrokerId(broker), RackId(rack)) for broker, rack in {1: "a", 2: "b", 3: "c"}.items()])
ACKNOWLEDGED_AT = 1.0
END = 40


def sample(requested_at: float, *isr: int, leader: int = 1, epoch: int = 5, source: int | None = None) -> Sample:
    state = SampledPartition(leader, epoch, tuple(map(BrokerId, isr)))
    topics = frozenset({"orders"})
    return Sample(
        leader if source is None else source, requested_at, BITS, topics, {ORDERS: state}, {"orders": UUID(int=1)}
    )


def shown(record: RecordVerification, replica: int, requested_at: float, end: LogEnd | None) -> None:
    """The replica responds to what is to be read of it."""
    _, read = record.reads[BrokerId(replica)]
    record.observe_log_ends(LogEnds(BrokerId(replica), requested_at, frozenset({read}), {read: end}))


def acknowledged() -> RecordVerification:
    return RecordVerification(ORDERS, TWO_RACKS, END, ACKNOWLEDGED_AT)


def test_a_record_is_verified_by_the_leaders_isr_and_another_racks_log() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 1, 2, 3))
    assert not record.is_decided
    shown(record, 2, 1.1, LogEnd(5, END))
    assert (record.is_decided, record.refusal) == (True, None)


def test_a_sample_from_before_the_acknowledgement_does_not_count() -> None:
    record = acknowledged()
    assert not record.observe(sample(0.9, 1, 2, 3))
    assert not record.reads


def test_a_sample_of_other_topics_does_not_count() -> None:
    record = acknowledged()
    assert not record.observe(Sample(1, 1.1, BITS, frozenset({"payments"}), {}))
    assert not record.is_decided


def test_a_log_that_was_read_before_the_acknowledgement_does_not_count() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 1, 2, 3))
    shown(record, 2, 0.9, LogEnd(5, END))
    assert not record.is_decided


def test_the_log_end_of_another_epoch_or_of_a_replica_that_was_not_requested_does_not_count() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 1, 2))
    (broker, (_, read)) = next(iter(record.reads.items()))
    other = replace(read, leader_epoch=4)
    for replica, requested in ((broker, other), (BrokerId(3), read)):
        assert (
            record.observe_log_ends(LogEnds(replica, 1.2, frozenset({requested}), {requested: LogEnd(5, END)})) is False
        )
    assert record.observe_log_ends(LogEnds(broker, 0.9, frozenset({read}), {read: LogEnd(5, END)})) is False
    assert not record.is_decided
    assert record.observe_log_ends(LogEnds(broker, 1.2, frozenset({read}), {read: LogEnd(5, END)})) is True


def test_the_replicas_after_the_leader_are_read_first_so_that_each_is_read_equally_often() -> None:
    """Each of three leaders reads another replica of the two that would do."""
    isr = tuple(map(BrokerId, (1, 2, 3)))
    records = [AcknowledgedRecord(leader, 5, END) for leader in isr]
    assert [record.reads(isr, BITS, 2) for record in records] == [{2: 5}, {3: 5}, {1: 5}]
    assert [list(record.spare_reads(isr, BITS)) for record in records] == [[2, 3], [3, 1], [1, 2]]


def test_too_few_racks_in_sync_refuse_the_record_when_its_time_is_over() -> None:
    record = acknowledged()
    assert record.observe(sample(1.1, 1))
    assert not record.is_decided
    record.expire()
    assert record.refusal is not None
    assert record.refusal.cause is Cause.RACKS
    assert isinstance(record.refusal.error, NotEnoughRacksAfterAppend)


def test_a_new_leader_starts_the_verification_again() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 1, 2))
    record.observe(sample(1.2, 3, 1, 2, leader=3, epoch=6))
    shown(record, 1, 1.3, LogEnd(5, END))
    assert not record.is_decided, "the log ends in the epoch before the new leader's"
    record.observe(sample(1.4, 3, 1, 2, leader=3, epoch=6))
    shown(record, 1, 1.4, LogEnd(6, END))
    assert (record.is_decided, record.refusal) == (True, None)


def test_an_earlier_leader_does_not_count_once_a_newer_one_was_reported() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 3, 1, 2, leader=3, epoch=6))
    assert not record.observe(sample(1.2, 1, 2))


def test_only_the_leaders_own_sample_counts_and_only_if_nobody_reports_a_newer_leader() -> None:
    own, follower = sample(0, 1, 2), sample(0, 1, 2, source=2)
    newer = sample(0, 3, 2, leader=3, epoch=6, source=2)
    assert newest_leader_sample(ORDERS, [follower, own]) is own
    assert newest_leader_sample(ORDERS, [follower]) is None
    assert newest_leader_sample(ORDERS, [own, newer]) is None


BEFORE = Leadership(5, UUID(int=1))


@pytest.mark.parametrize(
    ("leadership", "leader", "epoch", "cause"),
    [
        (BEFORE, 1, 5, None),
        (BEFORE, 3, 5, Cause.LEADER),
        (BEFORE, 1, 6, Cause.LEADER),
        (Leadership(5, UUID(int=2)), 1, 5, Cause.LEADER),
        (None, 1, 6, None),
        (None, 3, 5, Cause.LEADER),
    ],
)
def test_a_new_leader_refuses_the_record_of_a_known_broker(
    leadership: Leadership | None, leader: int, epoch: int, cause: Cause | None
) -> None:
    record = RecordVerification(ORDERS, TWO_RACKS, END, ACKNOWLEDGED_AT, broker=1, leadership=leadership)
    record.observe(sample(1.1, 1, 2, leader=leader, epoch=epoch))
    assert (record.refusal and record.refusal.cause) is cause
    assert record.is_decided is (cause is not None)


def test_a_partition_that_a_sample_lacks_is_refused_by_its_name_though_the_broker_is_known() -> None:
    record = RecordVerification(ORDERS, TWO_RACKS, END, ACKNOWLEDGED_AT, broker=1, leadership=BEFORE)
    record.observe(Sample(1, 1.1, BITS, frozenset({"orders"}), {}))
    assert record.refusal is not None
    assert (record.refusal.cause, record.refusal.partition) == (Cause.UNKNOWN, ORDERS)


def test_a_record_is_late_a_second_after_its_acknowledgement_if_metadata_has_enough_racks() -> None:
    record = acknowledged()
    assert not record.is_late(9.0), "no sample has shown enough racks"
    record.observe(sample(1.1, 1, 2, 3))
    assert [record.is_late(now) for now in (1.1, 2.0, 2.1)] == [False, False, True]


def test_a_log_without_the_record_is_read_again_ever_later_but_within_a_20th_of_a_second() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 1, 2, 3))
    pauses = []
    for requested_at in (1.1, 1.14, 10.0, 100.0):
        shown(record, 2, requested_at, LogEnd(5, END - 1))
        due, _ = record.reads[BrokerId(2)]
        pauses.append(due - requested_at)
    assert pauses == pytest.approx([0.027, 0.037, 0.05, 0.05])


def test_what_is_not_verified_is_refused_unless_its_topic_fails_open() -> None:
    for fail_open in (False, True):
        record = RecordVerification(ORDERS, Requirement(Thresholds(1, 2), fail_open), END, ACKNOWLEDGED_AT)
        record.observe(sample(1.1, 1, 2, 3))
        record.expire()
        assert record.is_decided
        assert (record.refusal is None) is fail_open


@pytest.mark.parametrize("fail_open", [False, True])
def test_a_topic_that_may_not_be_described_is_unknown_and_not_missing(fail_open: bool) -> None:
    """Without this mode `pre` acknowledges its records unseen: the gateway lacks DESCRIBE, the producer does not."""
    requirement = Requirement(Thresholds(1, 2), fail_open)
    undescribed = Sample(1, 1.1, BITS, frozenset({"orders"}), {}, undescribed=frozenset({"orders"}))
    record = RecordVerification(ORDERS, requirement, END, ACKNOWLEDGED_AT)
    record.observe(undescribed)
    refusals = [refusal_before(ORDERS, requirement, undescribed, sent_to=1), record.refusal]
    if fail_open:
        assert refusals == [None, None]
        assert record.is_decided
    else:
        assert [refusal is not None and refusal.cause for refusal in refusals] == [Cause.UNKNOWN, Cause.UNKNOWN]
        assert "DESCRIBE" in str(refusals)
    missing = Sample(1, 1.1, BITS, frozenset({"orders"}), {})
    assert refusal_before(ORDERS, requirement, missing, sent_to=1) is None


def test_a_record_is_not_sent_to_too_few_racks_or_to_nobody() -> None:
    refusal = refusal_before(ORDERS, TWO_RACKS, sample(0, 1))
    assert refusal is not None
    assert isinstance(refusal.error, NotEnoughRacks)
    assert (refused := refusal_before(ORDERS, TWO_RACKS, sample(0))) is not None
    assert isinstance(refused.error, NotEnoughReplicas)


@pytest.mark.parametrize(("leader", "sent_to", "isr"), [(2, 1, (1,)), (1, 1, ())])
def test_what_the_broker_refuses_by_itself_is_left_to_it(leader: int, sent_to: int, isr: tuple[int, ...]) -> None:
    assert refusal_before(ORDERS, TWO_RACKS, sample(0, *isr, leader=leader), sent_to=sent_to) is None


@pytest.mark.parametrize(("factor", "accepted"), [(2, True), (3, False), (None, False)])
def test_no_more_replicas_are_required_than_a_partition_has(factor: int | None, accepted: bool) -> None:
    """As the broker does that acknowledged the record (Kafka's Partition.effectiveMinIsr)."""
    state = SampledPartition(1, 5, (BrokerId(1), BrokerId(2)), factor)
    found = Sample(1, ACKNOWLEDGED_AT, BITS, frozenset({"orders"}), {ORDERS: state}, {"orders": UUID(int=1)})
    requirement = Requirement(Thresholds(3, 2))
    assert (refusal_before(ORDERS, requirement, found) is None) is accepted
    record = RecordVerification(ORDERS, requirement, END, ACKNOWLEDGED_AT)
    record.observe(found)
    shown(record, 2, ACKNOWLEDGED_AT, LogEnd(5, END))
    assert record.is_decided is accepted
    record.expire()
    assert (record.is_decided, record.refusal is None) == (True, accepted)


def test_a_record_without_a_partition_is_refused_if_every_partition_lacks_racks() -> None:
    few, enough = SampledPartition(1, 5, (BrokerId(1),)), SampledPartition(1, 5, (BrokerId(1), BrokerId(2)))
    both = Sample(1, 0, BITS, frozenset({"orders"}), {ORDERS: few, ("orders", 1): enough})
    one = Sample(1, 0, BITS, frozenset({"orders"}), {ORDERS: few})
    assert topic_refusal_before("orders", None, TWO_RACKS, both) is None
    assert topic_refusal_before("orders", None, TWO_RACKS, one) is not None
    assert topic_refusal_before("orders", 0, TWO_RACKS, both) is not None


def test_a_record_waits_until_enough_racks_are_in_sync_again_and_hold_it() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 1, 2))
    record.observe(sample(1.2, 1))
    assert not record.is_late(9.0), "racks are missing, and no log is late"
    assert not record.reads
    record.observe(sample(9.0, 1, 2))
    assert not record.is_decided
    shown(record, 2, 9.1, LogEnd(5, END))
    assert (record.is_decided, record.refusal, record.was_late) == (True, None, False)


def test_too_few_racks_refuse_the_record_of_a_topic_that_fails_open_too() -> None:
    record = RecordVerification(ORDERS, Requirement(Thresholds(1, 2), fail_open=True), END, ACKNOWLEDGED_AT)
    record.observe(sample(1.1, 1))
    record.expire()
    assert record.refusal is not None


def test_racks_and_values_that_change_while_a_record_waits_count_though_the_isr_is_the_same() -> None:
    record = acknowledged()
    record.observe(sample(1.1, 1, 2))
    other = rack_bits([Broker(BrokerId(one), RackId("a")) for one in (1, 2, 3)])
    record.observe(replace(sample(1.2, 1, 2), racks=other))
    assert record.lacking is not None
    assert record.lacking.isr_racks == ("a",)
    record.observe(replace(sample(1.3, 1, 2), racks=other))
    assert not record.is_decided
    record.requirement = Requirement(Thresholds(1, 1))
    record.observe(replace(sample(1.4, 1, 2), racks=other))
    assert (record.is_decided, record.refusal) == (True, None)
