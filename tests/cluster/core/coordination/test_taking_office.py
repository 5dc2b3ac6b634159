"""A coordinator begins once everything its log held at its election is committed."""

from uuid import UUID

from rackspan.cluster.core.batch import Batch
from rackspan.cluster.core.coordination import TakingOffice
from rackspan.cluster.core.log import PartitionLog


def log_of(records: int, committed: int) -> PartitionLog:
    log = PartitionLog(UUID(int=1))
    for _ in range(records):
        log.append_as_leader(Batch(0, 0, -1), 0)
    log.high_watermark = committed
    return log


def begun(offices: TakingOffice, log: PartitionLog) -> list[tuple[int, int]]:
    return list(offices.begun(lambda _: log))


def test_a_log_that_is_all_committed_is_begun_with_at_once_and_once() -> None:
    offices, log = TakingOffice(), log_of(3, committed=3)
    offices.elected(7, 5, log)
    assert begun(offices, log) == [(7, 5)]
    assert begun(offices, log) == []


def test_the_last_records_of_a_predecessor_are_waited_for() -> None:
    offices, log = TakingOffice(), log_of(3, committed=2)
    offices.elected(7, 5, log)
    assert begun(offices, log) == []
    log.high_watermark = 3
    assert begun(offices, log) == [(7, 5)]


def test_what_is_appended_after_the_election_is_not_waited_for() -> None:
    offices, log = TakingOffice(), log_of(3, committed=2)
    offices.elected(7, 5, log)
    log.append_as_leader(Batch(0, 0, -1), 5)
    log.high_watermark = 3
    assert begun(offices, log) == [(7, 5)]


def test_who_is_deposed_while_it_waits_never_begins() -> None:
    offices, log = TakingOffice(), log_of(3, committed=2)
    offices.elected(7, 5, log)
    offices.resigned(7)
    log.high_watermark = 3
    assert begun(offices, log) == []
