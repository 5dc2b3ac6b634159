"""The appends of a coordinator: each is decided once, in time or when its partition moves."""

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.coordination import Append, Writes
from rackspan.cluster.core.ids import NO_OFFSET
from rackspan.kafka_bytes.error_codes import ErrorCode

BATCH = RecordBatch(0, 0, -1)


def test_each_append_is_decided_once_and_those_of_a_partition_that_moves_have_failed() -> None:
    writes = Writes()
    decided: list[tuple[int, ErrorCode, int]] = []
    for partition in (3, 4, 3):
        writes.append(partition, BATCH, lambda *outcome: decided.append(outcome))
    first, second, third = (effect.write for effect in writes.take() if isinstance(effect, Append))
    assert (writes.pending(3), writes.pending(4), writes.take()) == (2, 1, [])
    writes.acknowledged(10, first, ErrorCode.NONE, 7)
    writes.acknowledged(11, first, ErrorCode.NONE, 8)
    writes.abandon(12, 3)
    writes.acknowledged(13, third, ErrorCode.NONE, 9)
    assert decided == [
        (10, ErrorCode.NONE, 7),
        (12, ErrorCode.NOT_LEADER_OR_FOLLOWER, NO_OFFSET),
    ]
    writes.acknowledged(14, second, ErrorCode.NONE, 5)
    assert decided[-1] == (14, ErrorCode.NONE, 5)
    assert (writes.pending(3), writes.pending(4)) == (0, 0)
