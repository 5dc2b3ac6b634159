"""Which broker is fetched from, and what each response means. Record batches are kafka-python's."""

import pytest

from rackspan.errors import ClusterRequestFailed, CorruptRecords
from rackspan.kafka_source.cluster import FetchedRecords, SourceMetadata, SourcePartition, SourceTopic
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.progress import LAGGING_FETCHES, OTHER_IDS, Next, RangeProgress, ReplicaChoice
from rackspan.kafka_source.records.columns import FetchedAbort
from rackspan.model.ids import TopicPartition
from tests.kafka_source.records.test_columns import Record, built

ORDERS = TopicPartition("orders", 0)
RACKS = {1: "r1", 2: "r2", 3: "r3", 4: "r2"}
OK, OUT_OF_RANGE, NOT_LEADER, UNAUTHORIZED = 0, 1, 6, 29


def metadata(
    leader: int = 1, isr: tuple[int, ...] = (1, 2, 3), replicas: tuple[int, ...] = (1, 2, 3), topic_id: int | None = 1
) -> SourceMetadata:
    topic = SourceTopic(f"id-{topic_id}" if topic_id else None, {0: SourcePartition(leader, replicas, isr)})
    return SourceMetadata(RACKS, {"orders": topic}, {})


def reading(rack: str | None = "r2", start: int = 0, end: int = 10, *, strict: bool = True) -> RangeProgress:
    progress = RangeProgress(OffsetRange(ORDERS, start, end), rack, fail_on_data_loss=strict)
    assert progress.choose_replica(metadata())
    return progress


def response(*offsets: int, error: int = OK) -> FetchedRecords:
    records = b"".join(built([Record(offset, 1, None, b"v")]) for offset in offsets)
    return FetchedRecords(error, records, 10, 0, ())


@pytest.mark.parametrize(
    ("rack", "row", "broker", "choice"),
    [
        ("r2", metadata(), 2, ReplicaChoice.SAME_RACK),
        ("r1", metadata(), 1, ReplicaChoice.SAME_RACK),
        (None, metadata(), 1, ReplicaChoice.NO_RACK),
        ("r9", metadata(), 1, ReplicaChoice.UNKNOWN_RACK),
        ("r2", metadata(replicas=(1, 3), isr=(1, 3)), 1, ReplicaChoice.NO_REPLICA),
        ("r2", metadata(isr=(1, 3)), 1, ReplicaChoice.NOT_IN_SYNC),
        ("r2", metadata(replicas=(4, 2, 1), isr=(4, 2, 1), leader=2), 2, ReplicaChoice.SAME_RACK),
    ],
)
def test_the_replica_in_the_tasks_rack_is_read(
    rack: str | None, row: SourceMetadata, broker: int, choice: ReplicaChoice
) -> None:
    progress = RangeProgress(OffsetRange(ORDERS, 0, 10), rack, fail_on_data_loss=True)
    assert progress.choose_replica(row)
    assert (progress.broker, progress.choice) == (broker, choice)


@pytest.mark.parametrize(
    ("costs", "isr", "broker"),
    [
        ({"r1": 5.0, "r3": 1.0}, (1, 3), 3),
        ({"r1": 1.0, "r3": 5.0}, (1, 3), 1),
        ({"r1": 1.0, "r3": 1.0}, (3, 1), 1),
        ({"r3": 1.0}, (1, 3), 3),
        ({"r1": 5.0, "r3": 1.0}, (1,), 1),
        ({"r1": 5.0, "r3": 1.0}, (1, 3, 9), 3),
        ({}, (1, 3), 1),
    ],
)
@pytest.mark.parametrize("rack", ["r2", "r9"])
def test_without_a_replica_in_its_rack_a_task_reads_where_that_costs_least(
    costs: dict[str, float], isr: tuple[int, ...], broker: int, rack: str
) -> None:
    progress = RangeProgress(OffsetRange(ORDERS, 0, 10), rack, fail_on_data_loss=True, costs=costs)
    assert progress.choose_replica(metadata(replicas=(1, 3), isr=isr))
    assert progress.broker == broker
    assert progress.choice is (ReplicaChoice.UNKNOWN_RACK if rack == "r9" else ReplicaChoice.NO_REPLICA)


def test_a_cheap_follower_that_fails_is_left_for_the_leader() -> None:
    progress = RangeProgress(OffsetRange(ORDERS, 0, 10), "r2", fail_on_data_loss=True, costs={"r1": 5.0, "r3": 1.0})
    progress.choose_replica(metadata(replicas=(1, 3), isr=(1, 3)))
    progress.failed()
    assert progress.choose_replica(metadata(replicas=(1, 3), isr=(1, 3)))
    assert progress.broker == 1


def test_a_partition_without_a_live_leader_has_no_broker_to_fetch_from() -> None:
    progress = RangeProgress(OffsetRange(ORDERS, 0, 10), None, fail_on_data_loss=True)
    assert not progress.choose_replica(metadata(leader=-1))
    assert not progress.choose_replica(metadata(leader=9))
    assert not progress.choose_replica(SourceMetadata(RACKS, {}, {"orders": "UNKNOWN_TOPIC_OR_PARTITION (3)"}))


def test_a_follower_that_fails_is_left_for_the_leader() -> None:
    progress = reading()
    progress.failed()
    assert progress.choose_replica(metadata())
    assert (progress.broker, progress.choice) == (1, ReplicaChoice.FOLLOWER_FAILED)


def test_a_leader_that_fails_is_tried_again() -> None:
    progress = reading("r1")
    progress.failed()
    assert progress.choose_replica(metadata())
    assert progress.broker == 1


def test_a_leader_that_failed_is_read_again_as_the_follower_in_the_rack() -> None:
    """As after a restart of its broker: it is in sync again, and another leads."""
    progress = reading("r1")
    progress.failed()
    assert progress.choose_replica(metadata(leader=3))
    assert (progress.broker, progress.choice) == (1, ReplicaChoice.SAME_RACK)


def test_a_changed_byte_is_found_by_the_crc_unless_crcs_are_not_checked() -> None:
    records = bytearray(built([Record(0, 1, None, b"value")]))
    records[-3] ^= 1
    changed = FetchedRecords(OK, bytes(records), 10, 0, ())
    with pytest.raises(CorruptRecords):
        reading().received(changed)
    trusting = RangeProgress(OffsetRange(ORDERS, 0, 10), "r2", fail_on_data_loss=True, check_crcs=False)
    assert trusting.choose_replica(metadata())
    assert trusting.received(changed).fetched is not None


def test_records_of_a_transaction_that_the_response_names_as_aborted_are_left_out() -> None:
    records = built([Record(0, 1, None, b"v"), Record(1, 1, None, b"v")], producer=7, transactional=True)
    progress = reading()
    step = progress.received(FetchedRecords(OK, records, 10, 0, (FetchedAbort(7, 0),)))
    assert step.fetched is not None
    assert len(step.fetched.records) == 0
    assert progress.position == 2


def planned(topic_id: str | None, *, strict: bool) -> RangeProgress:
    return RangeProgress(OffsetRange(ORDERS, 2, 10, topic_id), "r2", fail_on_data_loss=strict)


def test_a_topic_created_again_ends_the_read() -> None:
    for progress in (reading(start=2), planned("id-1", strict=True)):
        assert not any(progress.choose_replica(metadata(topic_id=2)) for _ in range(OTHER_IDS - 1))
        with pytest.raises(ClusterRequestFailed) as raised:
            progress.choose_replica(metadata(topic_id=2))
        assert str(raised.value) == (
            "orders-0: offsets 2 to 10 are gone; topic orders was deleted and created again after they were planned: its id was id-1, "
            "and is id-2 now. Start the query again; a stream needs failOnDataLoss=false for that, or a new checkpointLocation"
        )


def test_a_topic_created_again_is_skipped_where_losses_are_allowed() -> None:
    progress = planned("id-1", strict=False)
    assert not any(progress.choose_replica(metadata(topic_id=2)) for _ in range(OTHER_IDS))
    assert progress.is_done
    assert progress.created_again is not None
    assert progress.created_again.lost is not None
    assert progress.created_again.lost[:2] == (2, 10)


def test_a_broker_that_is_late_to_list_a_topic_is_no_loss() -> None:
    progress = planned("id-2", strict=True)
    for _ in range(3):
        assert not any(progress.choose_replica(metadata(topic_id=1)) for _ in range(OTHER_IDS - 1))
        assert progress.choose_replica(metadata(topic_id=2))
    assert not progress.is_done


@pytest.mark.parametrize(("before", "now"), [(None, 2), ("id-1", None), (None, None)])
def test_an_unknown_topic_id_is_compared_with_none(before: str | None, now: int | None) -> None:
    progress = planned(before, strict=True)
    assert progress.choose_replica(metadata(topic_id=now))
    assert progress.topic_id == (before or (now and f"id-{now}"))


def test_batches_move_the_position_to_the_end() -> None:
    progress = reading()
    step = progress.received(response(0, 1, 2))
    assert (step.next, progress.position) == (Next.FETCH, 3)
    step = progress.received(response(7, 12))
    assert (step.next, progress.is_done) == (Next.DONE, True)
    assert step.fetched is not None
    assert step.fetched.records.offsets.tolist() == [7]


def test_an_error_that_passes_and_a_corrupt_batch_are_read_again_elsewhere() -> None:
    for code in (NOT_LEADER, 2, 9, 56, 74, 78):
        progress = reading()
        assert progress.received(response(error=code)).next is Next.REFRESH
        assert progress.choose_replica(metadata())
        assert progress.broker == 1


def test_an_error_that_stays_ends_the_read() -> None:
    with pytest.raises(ClusterRequestFailed, match=r"broker 2 refuses the fetch: TOPIC_AUTHORIZATION_FAILED \(29\)"):
        reading().received(response(error=UNAUTHORIZED))


def test_a_follower_behind_the_high_watermark_is_waited_for_and_then_left() -> None:
    progress = reading()
    steps = [progress.received(response()).next for _ in range(LAGGING_FETCHES)]
    assert steps == [Next.FETCH] * (LAGGING_FETCHES - 1) + [Next.REFRESH]
    assert progress.choose_replica(metadata())
    assert progress.broker == 1


def test_progress_begins_the_wait_anew() -> None:
    progress = reading()
    for _ in range(LAGGING_FETCHES - 1):
        progress.received(response())
    progress.received(response(0))
    assert progress.received(response()).next is Next.FETCH


def test_only_the_leader_decides_that_offsets_are_out_of_range() -> None:
    progress = reading()
    assert progress.received(response(error=OUT_OF_RANGE)).next is Next.REFRESH
    assert progress.choose_replica(metadata())
    assert progress.received(response(error=OUT_OF_RANGE)).next is Next.OUT_OF_RANGE


@pytest.mark.parametrize(("log", "begins"), [((4, 20), 4), ((30, 40), 10), ((0, 1), 10)])
def test_lost_records_are_an_error_or_skipped(log: tuple[int, int], begins: int) -> None:
    with pytest.raises(
        ClusterRequestFailed, match=rf"orders-0: offsets 2 to {begins} are gone; .*failOnDataLoss=false"
    ):
        reading(start=2).beyond_log(*log)
    progress = reading(start=2, strict=False)
    step = progress.beyond_log(*log)
    assert (progress.position, progress.is_done) == (begins, begins == 10)
    assert step.lost is not None
    assert step.lost[:2] == (2, begins)


def test_a_log_that_has_the_position_after_all_is_read_again() -> None:
    assert reading(start=2).beyond_log(0, 20).next is Next.REFRESH


def test_a_batch_larger_than_a_fetch_names_the_option_to_raise() -> None:
    cut = built([Record(0, 1, None, b"v" * 100)])[:90]
    larger = FetchedRecords(OK, cut, 10, 0, ())
    progress = reading()
    assert progress.received(larger).next is Next.FETCH
    assert progress.fetch_bytes(8_000_000) == 8_000_000
    with pytest.raises(ClusterRequestFailed, match=r"raise kafka\.max\.partition\.fetch\.bytes"):
        progress.received(larger)


def test_no_more_is_requested_than_the_rest_of_the_range_is_about() -> None:
    progress = reading(end=100_000)
    assert progress.fetch_bytes(8_000_000) == 8_000_000
    assert reading(end=10).fetch_bytes(8_000_000) < 100_000
    got = response(0, 49_999)
    progress.received(got)
    assert len(got.records) < progress.fetch_bytes(8_000_000) < 2 * len(got.records) + 70_000
    assert progress.fetch_bytes(100) == 100
