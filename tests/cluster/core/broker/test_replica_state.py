"""A follower's progress by KIP-16, written out on a time line, and which members the high watermark waits for."""

from rackspan.cluster.core.broker.replica_state import FollowerState, Isr
from tests.cluster.core.brokers import ids


def test_a_follower_is_caught_up_while_it_fetches_at_the_leaders_end() -> None:
    follower = FollowerState(caught_up_at=0)
    follower.fetched(100, offset=5, leader_end=5)
    assert (follower.caught_up_at, follower.end_offset) == (100, 5)
    follower.fetched(200, offset=7, leader_end=6)
    assert follower.caught_up_at == 200


def test_a_follower_that_reaches_the_end_of_its_last_fetch_was_caught_up_then() -> None:
    """The leader goes on writing: the follower is always behind, and yet never more than one fetch."""
    follower = FollowerState(caught_up_at=0)
    follower.fetched(100, offset=0, leader_end=10)
    assert follower.caught_up_at == 0
    follower.fetched(250, offset=10, leader_end=20)
    assert follower.caught_up_at == 100, "the time of the fetch before, at which 10 was the end"
    follower.fetched(400, offset=19, leader_end=30)
    assert follower.caught_up_at == 100, "19 is not the 20 that the leader had"
    follower.fetched(500, offset=30, leader_end=40)
    assert follower.caught_up_at == 400


def test_the_time_at_which_a_follower_was_caught_up_never_goes_back() -> None:
    follower = FollowerState(caught_up_at=900, fetched_at=100, leader_end_at_fetch=10)
    follower.fetched(1_000, offset=10, leader_end=20)
    assert follower.caught_up_at == 900


def test_an_append_begins_the_time_of_a_follower_that_held_all_and_of_no_other() -> None:
    holds_all, behind = FollowerState(0, end_offset=5), FollowerState(0, end_offset=4)
    for follower in (holds_all, behind):
        follower.fell_behind(300, leader_end=5)
    assert (holds_all.caught_up_at, behind.caught_up_at) == (300, 0)


def test_the_high_watermark_waits_for_committed_members_and_those_about_to_join() -> None:
    isr = Isr(ids(1, 2), partition_epoch=4)
    assert isr.maximal == ids(1, 2)
    isr.propose(ids(1, 3))
    assert (isr.maximal, isr.committed) == (ids(1, 2, 3), ids(1, 2))
    isr.withdraw()
    assert isr.maximal == ids(1, 2)


def test_only_a_newer_partition_epoch_is_taken_and_settles_the_pending_change() -> None:
    isr = Isr(ids(1, 2), partition_epoch=4)
    isr.propose(ids(1))
    assert [isr.commit(ids(3), 3), isr.commit(ids(3), 4)] == [False, False]
    assert (isr.committed, isr.pending) == (ids(1, 2), ids(1))
    assert isr.commit(ids(1), 5)
    assert (isr.committed, isr.partition_epoch, isr.pending) == (ids(1), 5, None)
