"""What readers see: committed records, decided transactions, the replica in their own rack."""

from types import SimpleNamespace
from typing import Any

import pytest

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.broker import Isolation
from rackspan.cluster.core.broker.reading import diverging, preferred_read_replica
from rackspan.cluster.core.broker.replica_state import FollowerState, Isr
from rackspan.cluster.core.ids import CLIENT, NO_EPOCH
from rackspan.cluster.core.messages import DeleteRecords, DeleteRecordsResponse, Produce
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import RACK_AWARE_SELECTOR
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from tests.cluster.core.broker.test_follower import log_of
from tests.cluster.core.brokers import ids
from tests.cluster.world import World

RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}
READS_IN_RACK = ClusterSettings(replica_selector_class=RACK_AWARE_SELECTOR)


def world() -> tuple[World, TopicPartition]:
    w = World(RACKS, READS_IN_RACK)
    w.run(500)
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    return w, orders


def test_a_reader_sees_what_the_watermark_has_passed_and_no_more() -> None:
    w, orders = world()
    w.produced(orders, RecordBatch(0, 2, -1))
    w.freeze(2, w.now + 300)
    w.produce(1, orders)
    w.run(100)
    observed = w.broker(1).read(orders, 0, 1_000)
    assert (observed.error, observed.high_watermark, [one.base_offset for one in observed.batches]) == (
        ErrorCode.NONE,
        3,
        [0],
    )
    assert w.broker(1).read(orders, 3, 1_000).batches == ()
    beyond = w.broker(1).read(orders, 5, 1_000)
    assert beyond.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert (beyond.high_watermark, beyond.last_stable_offset, beyond.log_start) == (-1, -1, -1)
    w.run(500)
    assert [one.base_offset for one in w.broker(1).read(orders, 3, 1_000).batches] == [3]


def test_a_reader_in_a_followers_rack_is_sent_there_and_served_there() -> None:
    w, orders = world()
    w.produced(orders)
    w.run(50)
    there = w.broker(1).read(orders, 0, 1_000, rack=RackId("b"))
    assert (there.preferred_read_replica, there.batches) == (2, ())
    assert w.broker(1).read(orders, 0, 1_000, rack=RackId("a")).preferred_read_replica == -1
    assert w.broker(1).read(orders, 0, 1_000, rack=RackId("elsewhere")).preferred_read_replica == -1
    served = w.broker(2).read(orders, 0, 1_000, rack=RackId("b"), follower_ok=True)
    assert [one.base_offset for one in served.batches] == [0]
    assert w.broker(2).read(orders, 0, 1_000).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_in_the_readers_rack_is_read_itself() -> None:
    w = World({1: "a", 2: "a", 3: "b"}, READS_IN_RACK)
    w.run(500)
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.produced(orders)
    w.run(50)
    there = w.broker(1).read(orders, 0, 1_000, rack=RackId("a"))
    assert (there.preferred_read_replica, [one.base_offset for one in there.batches]) == (-1, [0])


def test_by_default_leaders_serve_readers_of_every_rack() -> None:
    w = World(RACKS)
    w.run(500)
    orders = w.create("orders", [1, 2, 3])
    w.settle()
    w.produced(orders)
    w.run(50)
    there = w.broker(1).read(orders, 0, 1_000, rack=RackId("b"))
    assert (there.preferred_read_replica, [each.base_offset for each in there.batches]) == (-1, [0])
    direct = w.broker(2).read(orders, 0, 1_000, rack=RackId("b"), follower_ok=True)
    assert [each.base_offset for each in direct.batches] == [0], "a follower serves whoever fetches from it"


def test_a_follower_out_of_the_isr_is_nobodys_preferred_replica() -> None:
    w, orders = world()
    w.isolate(2)
    w.run(5_000)
    w.produced(orders)
    assert w.broker(1).read(orders, 0, 1_000, rack=RackId("b")).preferred_read_replica == -1


def test_of_the_replicas_in_the_readers_rack_that_hold_the_offset_the_one_that_has_most_is_preferred() -> None:
    def leader(*isr: int, ends: dict[int, int], start: int = 0) -> Any:
        followers = {BrokerId(one): FollowerState(0, end_offset=end) for one, end in ends.items()}
        log = SimpleNamespace(start_offset=start)
        return SimpleNamespace(
            broker=BrokerId(1), replicas=ids(1, 2, 3, 4), isr=Isr(ids(*isr), 0), followers=followers, log=log
        )

    def preferred(leader: Any, offset: int, rack: str | None = "b", inactive: int = 0) -> BrokerId | None:
        brokers = {one: SimpleNamespace(rack="b", active=one != inactive) for one in ids(2, 3, 4)}
        image: Any = SimpleNamespace(brokers={**brokers, BrokerId(1): SimpleNamespace(rack="a", active=True)})
        return preferred_read_replica(leader, image, offset, None if rack is None else RackId(rack))

    in_sync = leader(1, 2, 3, ends={2: 5, 3: 7, 4: 9}, start=2)
    assert preferred(in_sync, 5) == 3, "broker 4 has more, and is not in sync"
    assert preferred(in_sync, 5, inactive=3) == 2
    assert preferred(in_sync, 7) == 3
    assert preferred(in_sync, 8) is None, "no follower holds it yet"
    assert (preferred(in_sync, 2), preferred(in_sync, 1)) == (3, None), "deleted records are read nowhere"
    assert preferred(leader(1, 2, 3, ends={2: 5, 3: 5}), 5) == 2, "the order of the replicas decides between equals"
    assert [preferred(in_sync, 5, rack) for rack in ("a", "elsewhere", None)] == [None, None, None]


@pytest.mark.parametrize(
    ("offset", "last_epoch", "error", "end"),
    [
        (9, NO_EPOCH, None, None),
        (2, 1, None, None),
        (3, 1, None, None),
        (4, 1, ErrorCode.NONE, (1, 3)),
        # The reader's records of epoch 2 are of a leader that this log has nothing of.
        (3, 2, ErrorCode.NONE, (1, 3)),
        (5, 2, ErrorCode.NONE, (1, 3)),
        (5, 3, None, None),
        (6, 3, ErrorCode.NONE, (3, 5)),
        (5, 4, ErrorCode.OFFSET_OUT_OF_RANGE, None),
    ],
)
def test_a_reader_whose_log_is_another_one_is_given_the_end_of_its_last_epoch_here(
    offset: int, last_epoch: int, error: ErrorCode | None, end: tuple[int, int] | None
) -> None:
    """Three records of epoch 1 and two of epoch 3. KIP-595: a reader that diverges truncates its log to that end."""
    log = log_of(1, 1, 1, 3, 3)
    found = diverging(log, offset, last_epoch)
    assert (found and found.error, found and found.diverging) == (error, end)


def test_reads_of_an_older_or_a_newer_epoch_get_the_error_for_it() -> None:
    w, orders = world()
    broker = w.broker(1)
    assert broker.read(orders, 0, 10, current_leader_epoch=0).error is ErrorCode.NONE
    assert broker.read(orders, 0, 10, current_leader_epoch=1).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    w.kill(1)
    w.run(4_000)
    assert w.broker(2).read(orders, 0, 10, current_leader_epoch=0).error is ErrorCode.FENCED_LEADER_EPOCH
    unknown = w.broker(2).read(TopicPartition("nobody", 0), 0, 10)
    assert unknown.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_are_found_by_time_and_by_epoch() -> None:
    w, orders = world()
    w.produced(orders, RecordBatch(0, 1, -1, max_timestamp=50))
    w.produced(orders, RecordBatch(0, 0, -1, max_timestamp=40))
    w.kill(1)
    w.run(4_000)
    w.produced(orders, RecordBatch(0, 0, -1, max_timestamp=60))
    broker = w.broker(2)
    found = [broker.offset_for_timestamp(orders, one) for one in (-1, -2, -3, 45, 99)]
    assert [one.offset for one in found] == [4, 0, 3, 0, -1]
    assert [one.leader_epoch for one in found] == [1, 0, 1, 0, -1]
    assert broker.offset_for_leader_epoch(orders, 0) == (ErrorCode.NONE, (0, 3))
    assert broker.offset_for_leader_epoch(orders, 9) == (ErrorCode.NONE, (-1, -1))


def test_a_log_end_is_listed_at_every_replica_for_the_debugging_replica_id() -> None:
    """Records that are not committed are before it: followers append, and the leader's high watermark moves later."""
    w, orders = world()
    w.produced(orders)
    w.run(200)
    follower = w.broker(2)
    assert follower.offset_for_timestamp(orders, -1).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    ends = [w.broker(one).offset_for_timestamp(orders, -1, debugging=True).offset for one in (1, 2)]
    assert ends == [w.disks[one].logs[orders].end_offset for one in (1, 2)] != [0, 0]


def test_a_transaction_is_read_committed_once_its_marker_is() -> None:
    w, orders = world()
    w.produced(orders, RecordBatch(0, 0, -1, b"", 5, 0, 0, transactional=True))
    w.produced(orders)
    broker = w.broker(1)
    assert broker.read(orders, 0, 100, Isolation.READ_COMMITTED).batches == ()
    assert broker.read(orders, 0, 100, Isolation.READ_COMMITTED).last_stable_offset == 0
    assert broker.offset_for_timestamp(orders, -1, Isolation.READ_COMMITTED).offset == 0
    marker = RecordBatch(0, 0, -1, b"", 5, 0, transactional=True, control=True, marker=Marker.ABORT)
    assert w.produced(orders, marker).error is ErrorCode.INVALID_RECORD
    w._take(1, broker.on_message(w.now, CLIENT, Produce(77, orders, (marker,), internal=True)))
    w.run_until(lambda: 77 in w.results)
    w.run(50)
    observed = broker.read(orders, 0, 100, Isolation.READ_COMMITTED)
    assert (observed.last_stable_offset, len(observed.batches), observed.aborted) == (3, 3, ((5, 0, 2),))
    assert [disk.logs[orders].last_stable_offset for disk in w.disks.values()] == [3, 3, 3]


def test_deleted_records_are_gone_from_every_replica() -> None:
    w, orders = world()
    for _ in range(4):
        w.produced(orders)
    results = []
    for correlation_id, offset in ((901, 3), (902, 9), (903, -1)):
        w._take(1, w.broker(1).on_message(w.now, CLIENT, DeleteRecords(correlation_id, orders, offset)))
        result = w.results[correlation_id]
        assert isinstance(result, DeleteRecordsResponse)
        results.append((result.error, result.low_watermark))
    assert results == [(ErrorCode.NONE, 3), (ErrorCode.OFFSET_OUT_OF_RANGE, -1), (ErrorCode.NONE, 4)]
    assert w.broker(1).read(orders, 0, 10).error is ErrorCode.OFFSET_OUT_OF_RANGE
    w.produced(orders)
    w.run(50)
    assert [disk.logs[orders].start_offset for disk in w.disks.values()] == [4, 4, 4]


def test_bytes_between_racks_are_counted_by_topic() -> None:
    w, orders = world()
    w.produced(orders, RecordBatch(0, 0, -1, bytes(100)))
    assert dict(w.broker(2).counters.replicated_bytes) == {("orders", "a", "b"): 100}


def test_old_batches_are_deleted_beyond_retention_bytes_and_never_of_a_compacted_topic() -> None:
    w = World(RACKS, READS_IN_RACK)
    w.run(500)
    deleted = w.create("deleted", [1, 2, 3], retention_bytes="1000")
    compacted = w.create("compacted", [1, 2, 3], retention_bytes="1000", cleanup_policy="compact")
    w.settle()
    for partition in (deleted, compacted):
        for _ in range(50):
            w.produced(partition, RecordBatch(0, 0, -1, bytes(100)))
        w.run(100)
    for broker in (1, 2, 3):
        logs = w.broker(broker).disk.logs
        assert (logs[deleted].size_bytes <= 1_000, logs[deleted].start_offset > 0) == (True, True)
        assert (logs[compacted].size_bytes, logs[compacted].start_offset) == (5_000, 0)
