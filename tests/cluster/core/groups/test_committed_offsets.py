"""The offsets of one group, by the position of their records."""

from rackspan.cluster.core.groups.committed_offsets import LoggedOffset, Offsets
from rackspan.cluster.core.groups.records import OffsetCommitValue
from rackspan.model.ids import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FIRST, SECOND = OffsetCommitValue(5), OffsetCommitValue(6)


def test_the_record_further_on_in_the_log_counts_and_an_equal_one_changes_nothing() -> None:
    offsets = Offsets()
    offsets.store(P0, FIRST, 0)
    offsets.store(P0, SECOND, 0)
    assert offsets.committed == {P0: LoggedOffset(FIRST, 0)}
    offsets.store(P0, SECOND, 1)
    offsets.store(P0, FIRST, 0)
    assert offsets.values() == {P0: SECOND}


def test_a_transactions_offsets_keep_the_position_of_their_own_records() -> None:
    offsets = Offsets()
    offsets.store_in_transaction(7, P0, FIRST, 3)
    offsets.store_in_transaction(7, P1, FIRST, 4)
    offsets.store_in_transaction(8, P1, SECOND, 5)
    offsets.store(P0, SECOND, 6)
    offsets.end_transaction(7, committed=True)
    assert offsets.committed == {P0: LoggedOffset(SECOND, 6), P1: LoggedOffset(FIRST, 4)}
    assert offsets.in_transactions == {8: {P1: LoggedOffset(SECOND, 5)}}
    offsets.end_transaction(8, committed=False)
    offsets.end_transaction(9, committed=True)
    assert (offsets.values(), offsets.in_transactions) == ({P0: SECOND, P1: FIRST}, {})


def test_what_is_deleted_is_neither_committed_nor_pending() -> None:
    offsets = Offsets()
    offsets.store(P1, FIRST, 0)
    offsets.store_in_transaction(7, P0, FIRST, 1)
    offsets.store_in_transaction(7, P1, FIRST, 2)
    offsets.store_in_transaction(8, P1, FIRST, 3)
    offsets.delete([P1])
    assert (offsets.values(), offsets.in_transactions) == ({}, {7: {P0: LoggedOffset(FIRST, 1)}, 8: {}})
    offsets.end_transaction(7, committed=True)
    assert offsets.values() == {P0: FIRST}


def test_an_offset_is_unstable_while_an_append_or_a_transaction_holds_a_newer_one() -> None:
    offsets = Offsets()
    assert (offsets.unstable(P0), offsets.empty) == (False, True)
    for _ in range(2):
        offsets.append_began({P0: 5})
    assert ([offsets.unstable(p) for p in (P0, P1)], offsets.empty) == ([True, False], False)
    offsets.append_ended({P0: 5})
    assert offsets.unstable(P0), "another append of it has not ended"
    offsets.append_ended({P0: 5})
    assert (offsets.unstable(P0), offsets.empty) == (False, True)
    offsets.store_in_transaction(7, P0, FIRST, 0)
    assert ([offsets.unstable(p) for p in (P0, P1)], offsets.empty) == ([True, False], False)
    offsets.end_transaction(7, committed=True)
    assert (offsets.unstable(P0), offsets.empty) == (False, False)
