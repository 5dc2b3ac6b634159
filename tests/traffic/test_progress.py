"""A topic of one partition that grew from 1,000 bytes in 10 records to 1,300 in 13, and what groups committed of it."""

from dataclasses import replace

from rackspan.model import TopicPartition
from rackspan.traffic import group_progress, volumes_between
from tests.traffic.test_logs import UNKNOWN, Log, reading

T = TopicPartition("t", 0)
GROWN = Log([1300] * 3, end=13)


def progress(earlier: int | None, committed: int | None, after: Log = GROWN) -> dict[TopicPartition, int | None]:
    offsets = [{} if offset is None else {"g": {T: offset}} for offset in (earlier, committed)]
    first, second = (
        replace(reading({"t": log}), committed=of) for log, of in zip((Log(), after), offsets, strict=True)
    )
    return dict(group_progress(first, second, volumes_between(first, second)).get("g", {}))


def test_a_group_read_the_records_between_what_it_committed() -> None:
    assert progress(10, 13) == {T: 300}
    # It is catching up, or behind.
    assert progress(2, 9) == {T: 700}
    assert progress(10, 11) == {T: 100}


def test_a_group_that_committed_nothing_while_records_arrived_is_not_known() -> None:
    assert progress(10, 10) == {T: None}
    assert progress(10, 10, Log()) == {T: 0}


def test_offsets_that_were_reset_and_records_of_unknown_size_are_not_known() -> None:
    assert progress(10, 4) == {T: None}
    assert progress(2, 9, Log()) == {T: None}
    assert progress(10, 13, Log([UNKNOWN] * 3, end=13)) == {T: None}


def test_a_group_that_began_or_was_reset_in_between_is_not_known_and_one_without_offsets_is_left_out() -> None:
    assert progress(None, 13) == progress(10, None) == {T: None}
    assert progress(None, None) == {}


def test_a_topic_that_is_gone_is_left_out() -> None:
    before = replace(reading({"t": Log()}), committed={"g": {T: 10, TopicPartition("gone", 0): 1}})
    after = replace(reading({"t": GROWN}), committed={"g": {T: 13, TopicPartition("gone", 0): 2}})
    assert group_progress(before, after, volumes_between(before, after)) == {"g": {T: 300}}


def test_each_partition_counts_its_own_records_at_their_own_size_for_each_group() -> None:
    u = TopicPartition("u", 0)
    first = replace(
        reading({"t": Log(), "u": Log()}), committed={"g": {T: 10, u: 9}, "h": {u: 10}, "left": {T: 1}, "idle": {}}
    )
    second = replace(
        reading({"t": GROWN, "u": Log([1800] * 3, end=14)}),
        committed={"g": {T: 11, u: 12}, "h": {u: 14}, "came": {T: 13}, "idle": {}},
    )
    assert group_progress(first, second, volumes_between(first, second)) == {
        "g": {T: 100, u: 600},
        "h": {u: 800},
        "left": {T: None},
        "came": {T: None},
        "idle": {},
    }


def test_bytes_read_are_rounded_to_whole_ones() -> None:
    # Seven records of 100 and two thirds.
    assert progress(3, 10, Log([1302] * 3, end=13)) == {T: 705}
    assert progress(3, 10, Log([1301] * 3, end=13)) == {T: 702}
