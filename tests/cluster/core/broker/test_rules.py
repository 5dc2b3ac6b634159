"""Each decision of a broker at its limits."""

import pytest

from rackspan.cluster.core.broker.replica_state import FollowerState, Isr
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.ids import NO_OFFSET
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.core.brokers import ids

RULES = BrokerRules()
ONE, TWO, THREE = ids(1, 2, 3)


def test_the_watermark_is_what_every_member_has_and_no_more_than_the_leader_has() -> None:
    followers = {TWO: FollowerState(0, end_offset=7), THREE: FollowerState(0, end_offset=3)}
    assert RULES.watermark(9, (ONE, TWO), followers) == 7
    assert RULES.watermark(9, (ONE, TWO, THREE), followers) == 3
    assert RULES.watermark(5, (ONE, TWO), followers) == 5
    assert RULES.watermark(9, (ONE,), followers) == 9
    assert RULES.watermark(9, (TWO,), {TWO: FollowerState(0)}) == NO_OFFSET


def test_committed_members_count_and_joining_ones_hold_the_watermark() -> None:
    isr = Isr((ONE, TWO), 3, pending=(ONE, TWO, THREE))
    assert RULES.counted(isr) == (ONE, TWO)
    assert RULES.maximal(isr) == (ONE, TWO, THREE)


@pytest.mark.parametrize(
    ("end", "high_watermark", "epoch_start", "caught_up"),
    [(5, 5, 5, True), (5, 6, 0, False), (5, 0, 6, False), (6, 5, 5, True)],
)
def test_a_follower_has_caught_up_at_the_watermark_and_the_start_of_the_epoch(
    end: int, high_watermark: int, epoch_start: int, caught_up: bool
) -> None:
    assert RULES.has_caught_up(FollowerState(0, end_offset=end), high_watermark, epoch_start) is caught_up


@pytest.mark.parametrize(
    ("end", "now", "out"),
    [(4, 30_100, False), (4, 30_101, True), (5, 99_000, False)],
)
def test_a_member_is_out_of_sync_after_the_lag_and_only_when_it_is_behind(end: int, now: int, out: bool) -> None:
    """Caught up at 100, `replica.lag.time.max.ms` 30,000, the leader's end is 5."""
    assert RULES.is_out_of_sync(FollowerState(100, end_offset=end), 5, now, 30_000) is out


def test_only_an_ineligible_replica_makes_a_change_that_can_never_be_accepted() -> None:
    assert [error for error in ErrorCode if RULES.is_dead(error)] == [ErrorCode.INELIGIBLE_REPLICA]


def test_an_image_and_a_response_are_for_this_process_and_these_thresholds_alone() -> None:
    assert [RULES.counts(7, registered) for registered in (6, 7, 8)] == [False, True, False]
    assert [RULES.acts_on(registered, 7) for registered in (None, 6, 7, 8)] == [False, False, True, False]
    assert [RULES.outruns(version, 4) for version in (3, 4, 5)] == [False, False, True]
    assert RULES.on_resigning() is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert RULES.duplicate_waits() is True
