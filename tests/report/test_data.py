from dataclasses import replace
from datetime import timedelta

import pytest

from rackspan.model import ClusterSnapshot
from rackspan.report.data import (
    DurabilityState,
    History,
    HistoryPoint,
    RackSafety,
    StateCounts,
    TopicMap,
    TopicRow,
)
from tests.report import story


def test_the_worst_state_of_a_topic_is_the_first_that_any_partition_is_in() -> None:
    assert StateCounts(offline=1, ok=9).worst is DurabilityState.OFFLINE
    assert StateCounts(under_min_racks=2, one_rack=5).worst is DurabilityState.UNDER_MIN_RACKS
    assert StateCounts(ok=9).worst is DurabilityState.OK
    assert StateCounts().worst is DurabilityState.OK


def test_partitions_at_risk_are_all_that_are_not_ok() -> None:
    counts = StateCounts(offline=1, under_min_isr=2, under_min_racks=3, one_rack=4, ok=5)
    assert (counts.at_risk, counts.total) == (10, 15)
    assert [counts.of(state) for state in DurabilityState] == [1, 2, 3, 4, 5]


def test_one_partition_offline_is_worse_than_ten_under_min_isr() -> None:
    later = story.NOON + timedelta(minutes=1)
    history = History(
        snapshots=2,
        first_taken_at=story.NOON,
        last_taken_at=later,
        points=(HistoryPoint(story.NOON, StateCounts(under_min_isr=10)), HistoryPoint(later, StateCounts(offline=1))),
        states=(),
        seconds_at_risk=60.0,
        longest_gap_seconds=60.0,
        seconds_unknown=0.0,
    )
    assert history.worst == history.points[1]
    assert history.seconds == 60.0


def test_a_history_that_was_always_ok_has_no_worst_point() -> None:
    assert story.history_of(story.report_by_hand([story.safe_cluster()]).clusters[0]).worst is None


def test_a_cluster_without_partitions_is_not_called_safe() -> None:
    assert story.report_by_hand([story.empty_cluster()]).clusters[0].verdict is RackSafety.NOT_JUDGED


def test_a_cluster_without_partitions_that_would_lose_its_quorum_is_not_safe() -> None:
    voters = {101: "r1", 102: "r1", 103: "r3"}
    cluster = story.snapshot([], brokers=story.SIX_BROKERS, voters=voters)
    assert story.report_by_hand([cluster]).clusters[0].verdict is RackSafety.NOT_SAFE


def test_a_fleet_shows_first_what_needs_a_look() -> None:
    data = story.report_by_hand(
        [story.safe_cluster("a")], [story.empty_cluster("b")], story.shop_history(1), [story.safe_cluster("0")]
    )
    assert [one.verdict for one in data.clusters] == [
        RackSafety.NOT_SAFE,
        RackSafety.NOT_JUDGED,
        RackSafety.SAFE,
        RackSafety.SAFE,
    ]
    assert [one.cluster_id for one in data.clusters[2:]] == ["0", "a"]


def test_a_row_must_have_a_cell_for_every_rack() -> None:
    row = TopicRow("orders", False, 1, (3,), 2, 1, StateCounts(ok=1), (), 0)
    with pytest.raises(ValueError, match="0 cells on a map of 1 racks"):
        TopicMap((story.rack_of(1),), (row,), 1)


def test_clusters_that_the_loss_of_a_rack_harms_come_first_and_then_all_by_id() -> None:
    def named(name: str) -> list[ClusterSnapshot]:
        return [replace(one, cluster_id=name) for one in story.shop_history(1)]

    data = story.report_by_hand([story.safe_cluster("d")], [story.safe_cluster("c")], named("f"), named("e"))
    assert [one.cluster_id for one in data.clusters] == ["e", "f", "c", "d"]
