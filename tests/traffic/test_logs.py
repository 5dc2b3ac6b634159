"""Topics of one partition: replicas on brokers 1 to 3, led by broker 1, at first with logs of 1,000 bytes in 10 records."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random

import numpy as np
import pytest

from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.model.partitions import UNKNOWN_SIZE, padded_lists
from rackspan.traffic import Basis, ClusterLogs, TrafficPath, Volumes, produce_flows, replication_flows, volumes_between

UNKNOWN = UNKNOWN_SIZE
AT = datetime(2026, 11, 24, tzinfo=UTC)


@dataclass(frozen=True)
class Log:
    """One reading of a partition. Sizes are in the order of the replicas."""

    sizes: Sequence[int] = (1000, 1000, 1000)
    end: int = 10
    leader: int = 1
    replicas: Sequence[int] = (1, 2, 3)
    isr: Sequence[int] = (1, 2, 3)
    adding: Sequence[int] = ()
    topic_id: str = "id"


def reading(logs: dict[str, Log], down: Sequence[int] = ()) -> ClusterLogs:
    ordered = [logs[name] for name in sorted(logs)]
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(n), RackId(f"r{n}"), n in down) for n in range(1, 6)),
        topics=tuple(Topic(TopicName(name), logs[name].topic_id) for name in sorted(logs)),
        partitions=columns(
            topic=range(len(ordered)),
            partition=[0] * len(ordered),
            leader=[log.leader for log in ordered],
            replicas=[log.replicas for log in ordered],
            isr=[log.isr for log in ordered],
            adding_replicas=[log.adding for log in ordered],
        ),
    )
    return ClusterLogs(
        snapshot,
        AT,
        np.array([log.end for log in ordered], np.int64),
        padded_lists([log.sizes for log in ordered]).astype(np.int64),
    )


def of_one_topic(before: dict[str, Log], after: dict[str, Log]) -> Volumes:
    """The logs as partitions of one topic, in the order of their names."""

    def joined(logs: dict[str, Log]) -> ClusterLogs:
        read = reading(logs)
        rows = read.snapshot.partitions
        numbered = replace(rows, topic=rows.topic * 0, partition=rows.topic)
        return replace(read, snapshot=replace(read.snapshot, topics=read.snapshot.topics[:1], partitions=numbered))

    return volumes_between(joined(before), joined(after))


def between(before: Log, after: Log, down: Sequence[int] = ()) -> tuple[int, bool, list[int]]:
    """Bytes in, whether they are guessed, and the bytes of each replica."""
    volumes = volumes_between(reading({"t": before}, down), reading({"t": after}, down))
    return int(volumes.bytes_in[0]), bool(volumes.guessed[0]), volumes.copied[0].tolist()


def test_a_log_grows_by_what_it_received() -> None:
    assert between(Log(), Log([1300, 1300, 1300], end=13)) == (300, False, [300, 300, 300])


def test_a_follower_that_catches_up_copied_more_and_one_out_of_sync_less() -> None:
    grown = Log([1300, 1300, 1050], end=13, isr=(1, 2))
    behind = Log([1000, 400, 1000], isr=(1, 3))
    assert between(behind, grown) == (300, False, [300, 900, 50])


def test_a_leader_that_deleted_segments_received_what_a_follower_in_sync_did() -> None:
    assert between(Log(), Log([500, 1300, 900], end=13)) == (300, False, [300, 300, 300])
    # One that was not in sync before may have caught up.
    behind = Log(isr=(1, 3))
    assert between(behind, Log([500, 1300, 900], end=13))[0] == UNKNOWN
    # A follower in sync may lag a little: the leader counts.
    assert between(Log([1000, 900, 1000]), Log([1300, 1300, 1300], end=13)) == (300, False, [300, 400, 300])


def test_if_every_replica_deleted_segments_records_count_as_large_as_those_of_the_other_partitions() -> None:
    before = {name: Log() for name in "abc"}
    grown = {"a": Log([1300] * 3, end=13), "b": Log([1600] * 3, end=16), "c": Log([700] * 3, end=14)}
    volumes = of_one_topic(before, grown)
    assert volumes.bytes_in.tolist() == [300, 600, 400]
    assert volumes.guessed.tolist() == [False, False, True]
    assert volumes.copied.tolist() == [[300] * 3, [600] * 3, [400] * 3]
    # Grown, but by less than half of what four records need.
    volumes = of_one_topic(before, grown | {"c": Log([1190] * 3, end=14)})
    assert volumes.bytes_in.tolist() == [300, 600, 400]
    volumes = of_one_topic(before, grown | {"c": Log([1210] * 3, end=14)})
    assert volumes.bytes_in.tolist() == [300, 600, 210]
    assert volumes.guessed.tolist() == [False, False, False]


def test_if_no_partition_of_the_topic_grew_its_records_have_no_size() -> None:
    assert between(Log(), Log([500] * 3, end=13))[0] == UNKNOWN


def test_a_follower_in_sync_that_deleted_segments_copied_what_its_leader_received() -> None:
    after = Log([1300, 1010, 1010], end=13)
    assert between(Log(), after) == (300, False, [300, 300, 300])
    assert between(Log(), replace(after, isr=(1, 2))) == (300, False, [300, 300, 10])


def test_a_replica_that_is_added_copied_what_its_log_has() -> None:
    new = Log([1000, 1000, 1000, 700], replicas=(1, 2, 3, 4), adding=(4,))
    assert between(Log(), new) == (0, False, [0, 0, 0, 700])
    assert between(new, replace(new, sizes=[1000, 1000, 1000, 900])) == (0, False, [0, 0, 0, 200])
    completed = Log([1000, 1000, 700], replicas=(1, 2, 5), isr=(1, 2, 5))
    assert between(Log(), completed) == (0, False, [0, 0, 700])
    unread = replace(new, sizes=[1000, 1000, 1000, UNKNOWN])
    assert between(new, unread) == (0, False, [0, 0, 0, UNKNOWN])


def test_a_replica_on_a_broker_that_is_down_copied_nothing_and_an_unread_one_what_its_leader_received() -> None:
    before, after = Log([1000, 1000, UNKNOWN]), Log([1300, 1300, UNKNOWN], end=13)
    assert between(before, after, down=(3,)) == (300, False, [300, 300, 0])
    assert between(before, after) == (300, False, [300, 300, 300])


def test_another_topic_of_the_same_name_and_a_truncated_log_are_not_known() -> None:
    assert between(Log(), Log(topic_id="other", end=13))[0] == UNKNOWN
    assert between(Log(), Log([1100, 1100, 1100], end=9))[0] == UNKNOWN


def test_nothing_was_written_if_the_end_is_where_it_was() -> None:
    assert between(Log([UNKNOWN] * 3), Log([UNKNOWN] * 3)) == (0, False, [0, 0, 0])


def test_offsets_that_are_not_known_leave_the_growth_and_sizes_that_are_not_known_nothing() -> None:
    assert between(Log(end=-1), Log([1300] * 3, end=-1))[:2] == (300, False)
    assert between(Log([UNKNOWN] * 3), Log([UNKNOWN] * 3, end=13))[0] == UNKNOWN
    assert between(Log(), Log([1300] * 3, end=13, leader=-1))[:2] == (300, False)


@pytest.mark.slow
def test_partitions_are_found_again_whatever_came_and_went_between() -> None:
    rng = Random(7)
    for _ in range(200):
        names = rng.sample("abcdefghij", rng.randrange(1, 9))
        before = {name: Log() for name in rng.sample("abcdefghij", rng.randrange(1, 9))}
        grown = {name: rng.randrange(0, 9) for name in names}
        after = {name: Log([1000 + 100 * grown[name]] * 3, end=10 + grown[name]) for name in names}
        volumes = volumes_between(reading(before), reading(after))
        expected = [100 * grown[name] if name in before else UNKNOWN for name in sorted(names)]
        assert volumes.bytes_in.tolist() == expected


def test_each_row_of_replication_says_where_its_bytes_come_from() -> None:
    before = reading({"a": Log(), "b": Log([1000, UNKNOWN, 1000]), "d": Log(), "e": Log()})
    after = reading(
        {
            "a": Log([1300, 1300, 1300], end=13),
            "b": Log([1300, UNKNOWN, 1300], end=13),
            "d": Log([1000, 1000, 1000, 70], replicas=(1, 2, 3, 4), adding=(4,)),
            "e": Log([1000, 1000, 1000], replicas=(1, 2, 5), isr=(1, 2, 5)),
        }
    )
    flows = replication_flows(after.snapshot, volumes_between(before, after))
    rows = {
        (flow.link.topic, flow.link.path, flow.link.destination_rack): (
            flow.size_bytes,
            flow.link.basis,
            flow.link.assumption,
        )
        for flow in flows
    }
    grew = "the replica's log grew by as much"
    copied = "each replica copied all that its leader received"
    assert rows == {
        ("a", TrafficPath.REPLICATE, "r2"): (300, Basis.DERIVED, grew),
        ("a", TrafficPath.REPLICATE, "r3"): (300, Basis.DERIVED, grew),
        ("b", TrafficPath.REPLICATE, "r2"): (300, Basis.DERIVED, copied),
        ("b", TrafficPath.REPLICATE, "r3"): (300, Basis.DERIVED, grew),
        ("d", TrafficPath.REASSIGN, "r4"): (70, Basis.DERIVED, grew),
        # Completed between the readings.
        ("e", TrafficPath.REASSIGN, "r5"): (1000, Basis.DERIVED, grew),
    }


def test_bytes_that_follow_from_records_are_estimates_on_every_path() -> None:
    snapshot = reading({"t": Log([1300] * 3, end=13)}).snapshot
    guessed = Volumes(
        np.array([300], np.int64),
        np.array([True]),
        np.array([3], np.int64),
        np.array([100.0]),
        np.full((1, 3), 300, np.int64),
        np.zeros((1, 3), np.bool_),
        np.zeros((1, 3), np.bool_),
    )
    suffix = "; records are as large as those of the topic's other partitions"
    for flows in (replication_flows(snapshot, guessed), produce_flows(snapshot, guessed)):
        assert flows
        assert all(flow.link.basis is Basis.ESTIMATED and flow.link.assumption.endswith(suffix) for flow in flows)


def test_a_first_reading_without_topics_leaves_everything_unknown() -> None:
    volumes = volumes_between(reading({}), reading({"a": Log(), "b": Log()}))
    assert volumes.bytes_in.tolist() == volumes.records.tolist() == [-1, -1]
    assert volumes.record_bytes.tolist() == [np.inf, np.inf]
    assert volumes.copied.tolist() == [[-1] * 3] * 2
    assert not volumes.guessed.any()
    assert not volumes.from_own_log.any()
    assert not volumes.added.any()
    assert volumes_between(reading({"a": Log()}), reading({})).bytes_in.tolist() == []


def test_a_topic_that_is_created_again_is_not_taken_for_another_that_was_there() -> None:
    before = reading({name: Log(topic_id=f"first {name}") for name in "abc"})
    after = reading({name: Log([1300] * 3, end=13, topic_id=f"second {name}") for name in "abc"})
    volumes = volumes_between(before, after)
    assert volumes.bytes_in.tolist() == volumes.records.tolist() == [UNKNOWN] * 3
    assert not volumes.guessed.any()


def test_records_are_counted_unless_an_end_is_not_known_or_moved_back() -> None:
    logs = {"a": (10, 13), "b": (10, 10), "c": (-1, 13), "d": (10, -1), "e": (10, 9), "f": (0, 2), "g": (2, 0)}
    before = reading({name: Log(end=earlier) for name, (earlier, _) in logs.items()})
    after = reading({name: Log(end=later) for name, (_, later) in logs.items()})
    assert volumes_between(before, after).records.tolist() == [3, 0, -1, -1, -2, 2, -2]


def test_a_partition_has_its_own_average_record_and_one_that_is_guessed_the_median_of_its_topic() -> None:
    """The sizes of records are 200, 300 and 350."""
    before = {name: Log() for name in "abcdef"}
    after = {
        "a": Log([1200] * 3, end=11),
        "b": Log([1700] * 3, end=12),
        "c": Log([1900] * 3, end=13),
        "d": Log([0] * 3, end=11),
        "e": Log([UNKNOWN] * 3, end=10),
        "f": Log([500] * 3, end=-1),
    }
    volumes = of_one_topic(before, after)
    assert volumes.bytes_in.tolist() == [200, 700, 900, 300, 0, UNKNOWN]
    assert volumes.guessed.tolist() == [False, False, False, True, False, False]
    assert volumes.record_bytes.tolist() == [200, 350, 300, 300, 300, 300]
    # Of an even number it is the larger one of the middle.
    del before["c"], after["c"]
    assert of_one_topic(before, after).bytes_in.tolist() == [200, 700, 350, 0, UNKNOWN]


def test_each_topic_has_a_median_of_its_own_or_none() -> None:
    before, after = (
        reading({name: Log() for name in "abcdef"}),
        reading(
            {
                "a": Log([1500] * 3, end=12),
                "b": Log([1800] * 3, end=12),
                "c": Log([1000] * 3),
                "d": Log([1500] * 3, end=15),
                "e": Log([0] * 3, end=12),
                "f": Log([0] * 3, end=12),
            }
        ),
    )
    # Partitions 0 of `a`, `c` and `e`, and 1 of the same topics.
    topic = np.array([0, 0, 1, 1, 2, 2], np.int32)

    def paired(logs: ClusterLogs) -> ClusterLogs:
        rows = replace(logs.snapshot.partitions, topic=topic, partition=np.array([0, 1] * 3, np.int32))
        return replace(logs, snapshot=replace(logs.snapshot, topics=logs.snapshot.topics[::2], partitions=rows))

    volumes = volumes_between(paired(before), paired(after))
    assert volumes.record_bytes.tolist() == [250, 400, 100, 100, np.inf, np.inf]
    assert volumes.bytes_in.tolist() == [500, 800, 0, 500, UNKNOWN, UNKNOWN]


def test_a_log_that_grew_by_half_of_what_was_written_has_not_lost_segments() -> None:
    assert between(Log(), Log([1150, 1300, 1149], end=13)) == (150, False, [150, 300, 149])
    assert between(Log(), Log([1149, 1300, 1150], end=13)) == (300, False, [300, 300, 150])
    assert between(Log(), Log([1300, 1150, 1149], end=13)) == (300, False, [300, 150, 300])
    before = {name: Log() for name in "ab"}
    half = of_one_topic(before, {"a": Log([1400] * 3, end=14), "b": Log([1200] * 3, end=14)})
    # Of 50 and of 100 bytes a record, the larger is the median.
    assert (half.bytes_in.tolist(), half.guessed.tolist()) == ([400, 200], [False, False])
    less = of_one_topic(before, {"a": Log([1400] * 3, end=14), "b": Log([1199] * 3, end=14)})
    assert (less.bytes_in.tolist(), less.guessed.tolist()) == ([400, 400], [False, True])


def test_a_replica_out_of_sync_whose_log_stood_still_copied_nothing() -> None:
    assert between(Log(isr=(1, 2)), Log([1300, 1300, 1000], end=13, isr=(1, 2))) == (300, False, [300, 300, 0])


def test_places_without_a_replica_are_neither_added_nor_logs_of_their_own() -> None:
    before = reading({"a": Log(), "b": Log([1000], replicas=(1,), isr=(1,))})
    after = reading(
        {
            "a": Log([1300, 1300, 1300, 70], end=13, replicas=(1, 2, 3, 4), adding=(4,)),
            "b": Log([1300], end=13, replicas=(1,), isr=(1,)),
        }
    )
    volumes = volumes_between(before, after)
    assert volumes.added.tolist() == [[False, False, False, True], [False] * 4]
    assert volumes.from_own_log.tolist() == [[True] * 4, [True, False, False, False]]
    assert volumes.copied[1].tolist() == [300] * 4


def test_a_broker_that_is_down_at_one_reading_only_copied_what_its_leader_received() -> None:
    unread = {"t": Log([1000, 1000, UNKNOWN])}
    grown = {"t": Log([1300, 1300, UNKNOWN], end=13)}
    for down_before, down_after, copied in (((), (3,), 300), ((3,), (), 300), ((3,), (3,), 0)):
        volumes = volumes_between(reading(unread, down_before), reading(grown, down_after))
        assert volumes.copied[0].tolist() == [300, 300, copied]
    # One whose log was read has copied what it grew by.
    volumes = volumes_between(reading({"t": Log()}, (3,)), reading({"t": Log([1300, 1300, 1200], end=13)}, (3,)))
    assert volumes.copied[0].tolist() == [300, 300, 200]


def test_replicas_on_a_broker_that_is_not_registered_are_down() -> None:
    before = Log([1000, 1000, UNKNOWN], replicas=(1, 2, 9), isr=(1, 2))
    assert between(before, replace(before, sizes=[1300, 1300, UNKNOWN], end=13)) == (300, False, [300, 300, 0])


def test_a_reading_has_no_offsets_of_groups_and_nothing_unread_if_none_are_given() -> None:
    read = reading({"t": Log()})
    assert (read.committed, read.partial, read.start_offset) == ({}, (), None)
