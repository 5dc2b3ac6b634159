"""A coordinator begins once everything its log held at its election is committed."""

from uuid import UUID

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.coordination import PendingLoads
from rackspan.cluster.core.log import PartitionLog


def log_of(records: int, committed: int) -> PartitionLog:
    log = PartitionLog(UUID(int=1))
    for _ in range(records):
        log.append_as_leader(RecordBatch(0, 0, -1), 0)
    log.high_watermark = committed
    return log


def begun(loads: PendingLoads, log: PartitionLog) -> list[tuple[int, int]]:
    return list(loads.pop_ready(lambda _: log))


def test_a_log_that_is_all_committed_is_begun_with_at_once_and_once() -> None:
    loads, log = PendingLoads(), log_of(3, committed=3)
    loads.add(7, 5, log)
    assert begun(loads, log) == [(7, 5)]
    assert begun(loads, log) == []


def test_the_last_records_of_a_predecessor_are_waited_for() -> None:
    loads, log = PendingLoads(), log_of(3, committed=2)
    loads.add(7, 5, log)
    assert begun(loads, log) == []
    log.high_watermark = 3
    assert begun(loads, log) == [(7, 5)]


def test_what_is_appended_after_the_election_is_not_waited_for() -> None:
    loads, log = PendingLoads(), log_of(3, committed=2)
    loads.add(7, 5, log)
    log.append_as_leader(RecordBatch(0, 0, -1), 5)
    log.high_watermark = 3
    assert begun(loads, log) == [(7, 5)]


def test_a_coordinator_that_resigns_while_it_waits_never_loads() -> None:
    loads, log = PendingLoads(), log_of(3, committed=2)
    loads.add(7, 5, log)
    loads.remove(8)
    loads.remove(7)
    loads.remove(7)
    log.high_watermark = 3
    assert begun(loads, log) == []
