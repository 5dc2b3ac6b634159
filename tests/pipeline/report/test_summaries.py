"""What Arrow sums up batch by batch is what plain loops sum up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from rackspan.errors import InvalidSnapshot
from rackspan.model import ClusterSnapshot
from rackspan.pipeline.report.aggregates import FOUND, ReadColumns, finding_sums
from rackspan.pipeline.report.summaries import KnownUntil, Tables, summarize
from rackspan.pipeline.schemas import DRIFT, FINDINGS, OUTAGE_IMPACT, PARTITION_DURABILITY, Table
from rackspan.report.data import AT_RISK, ClusterReport, History, ReportData, StateCounts
from tests.pipeline import plain_time
from tests.report import story
from tests.report.story import TopicPlan, report_by_hand

BATCH_ROWS = 7
"""So few that groups are spread over batches."""


def restless(seed: int, count: int) -> list[ClusterSnapshot]:
    """A cluster whose brokers come and go, at uneven times."""
    rng = Random(seed)
    at, snapshots = datetime(2026, 11, 20, 22, 0, tzinfo=UTC), []
    for _ in range(count):
        at += timedelta(microseconds=rng.randrange(1, 3_600_000_000))
        gone = [broker for broker in range(1, 7) if rng.random() < 0.3]
        lagging = [broker for broker in range(1, 7) if rng.random() < 0.2]
        snapshots.append(
            story.snapshot(
                story.SHOP, brokers=story.SIX_BROKERS, gone=gone, lagging=lagging, at=at, cluster_id=f"restless {seed}"
            )
        )
    return snapshots


def without_partitions(history: list[ClusterSnapshot], at: int) -> list[ClusterSnapshot]:
    """A history whose snapshot `at` finds no partition, and so ends the time of the one before it."""
    empty = replace(
        story.empty_cluster("emptied for a while"), cluster_id=history[at].cluster_id, taken_at=history[at].taken_at
    )
    return [*history[:at], empty, *history[at + 1 :]]


HISTORIES: Sequence[list[ClusterSnapshot]] = (
    story.shop_history(20),
    restless(1, 30),
    restless(2, 2),
    [story.safe_cluster("calm")],
    [story.empty_cluster("new")],
    without_partitions(restless(3, 12), 5),
    # Emptied at last, and empty at first.
    [story.safe_cluster("emptied"), replace(story.empty_cluster("emptied"), taken_at=story.NOON + timedelta(hours=1))],
)


def summarized(histories: Sequence[list[ClusterSnapshot]], **bounds: int) -> ReportData:
    snapshots = [one for history in histories for one in history]
    rows = [row for one in snapshots for row in story.durability_rows(one)]
    findings = [row for one in snapshots for row in story.finding_rows(one)]
    Random(7).shuffle(rows)
    tables = Tables(
        _batches(rows, PARTITION_DURABILITY),
        _batches(findings, FINDINGS),
        _batches(story.impact_rows(snapshots), OUTAGE_IMPACT),
        _batches(story.drift_rows(snapshots), DRIFT),
        known := known_until(histories),
        known,
    )
    return summarize(
        tables,
        {str(history[-1].cluster_id): history[-1] for history in histories},
        story.POLICY,
        **bounds,
    )


def known_until(histories: Sequence[list[ClusterSnapshot]]) -> Mapping[str, KnownUntil]:
    """As if the snapshots of each cluster were stored together, without a period."""
    found: dict[str, KnownUntil] = {}
    for history in histories:
        of_cluster = plain_time.of_one_append([one.taken_at for one in history if one.taken_at is not None])
        found[str(history[-1].cluster_id)] = {micros(at): micros(until) for at, until in of_cluster.items()}
    return found


def micros(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _batches(rows: list[dict[str, Any]], table: Table) -> ReadColumns:
    whole = pa.Table.from_pylist(rows, table.at_each_snapshot.schema)
    return lambda columns: iter(whole.select(columns).to_batches(max_chunksize=BATCH_ROWS))


def to_the_microsecond(data: ReportData) -> ReportData:
    """Sums of floats differ in their last bits with their order."""
    return ReportData(tuple(map(_rounded_cluster, data.clusters)), data.rackspan_version)


def _rounded_cluster(one: ClusterReport) -> ClusterReport:
    losses = (replace(loss, seconds_not_survived=round(loss.seconds_not_survived, 6)) for loss in one.loss_history)
    return replace(one, history=_rounded(story.history_of(one)), loss_history=tuple(losses))


def _rounded(history: History) -> History:
    return replace(
        history,
        states=tuple(replace(one, seconds=round(one.seconds, 6)) for one in history.states),
        seconds_at_risk=round(history.seconds_at_risk, 6),
        longest_gap_seconds=round(history.longest_gap_seconds, 6),
        seconds_unknown=round(history.seconds_unknown, 6),
    )


@pytest.mark.slow
def test_arrow_sums_up_what_plain_loops_sum_up() -> None:
    summary, expected = to_the_microsecond(summarized(HISTORIES)), to_the_microsecond(report_by_hand(*HISTORIES))
    assert [one.cluster_id for one in summary.clusters] == [one.cluster_id for one in expected.clusters]
    for mine, theirs in zip(summary.clusters, expected.clusters, strict=True):
        for field in theirs.__slots__:
            assert getattr(mine, field) == getattr(theirs, field), (theirs.cluster_id, field)


@pytest.mark.slow
def test_losses_of_a_rack_take_as_long_in_whatever_order_their_rows_are_read() -> None:
    """To the last bit: equal tables have to give equal pages."""
    history = restless(1, 30)
    rows = story.impact_rows(history)
    durability = _batches([row for one in history for row in story.durability_rows(one)], PARTITION_DURABILITY)
    known = known_until([history])
    first, second = (
        summarize(
            Tables(
                durability, _batches([], FINDINGS), _batches(impact, OUTAGE_IMPACT), _batches([], DRIFT), known, known
            ),
            {str(history[-1].cluster_id): history[-1]},
            story.POLICY,
        )
        for impact in (rows, rows[::-1])
    )
    assert first.clusters[0].loss_history == second.clusters[0].loss_history


@pytest.mark.slow
def test_a_long_history_is_drawn_by_the_worst_point_of_each_stretch_and_the_last() -> None:
    history = restless(3, 60)
    whole = story.history_of(report_by_hand(history).clusters[0])
    drawn = story.history_of(summarized([history], points_most=8).clusters[0])
    assert (len(drawn.points), drawn.snapshots, drawn.condensed) == (8, 60, True)
    assert drawn.points[-1] == whole.points[-1]
    assert set(drawn.points) <= set(whole.points)
    assert drawn.worst == whole.worst

    def badness(counts: StateCounts) -> list[int]:
        return [counts.of(state) for state in AT_RISK]

    stretches = [[one for row, one in enumerate(whole.points[:-1]) if row * 7 // 59 == part] for part in range(7)]
    assert [max(part, key=lambda one: badness(one.counts)) for part in stretches] == list(drawn.points[:-1])
    # The numbers beside the picture are still those of all snapshots.
    assert _rounded(drawn).states == _rounded(whole).states


def test_of_many_topics_at_risk_the_worst_are_brought_back() -> None:
    plans = [TopicPlan(f"t{code:03}", [[1, 4]] * (1 + code % 3), min_insync_replicas=1) for code in range(80)]
    plans.append(TopicPlan("zzz", [[1, 2]], min_insync_replicas=2))
    cluster = story.snapshot(plans, brokers=story.SIX_BROKERS, lagging=[2])
    rows = summarized([[cluster]], topics_most=5).clusters[0].topic_map.rows
    assert [row.topic for row in rows] == ["zzz", "t002", "t005", "t008", "t011"]
    assert rows[1].states == StateCounts(one_rack=3)


def test_the_example_of_a_finding_is_of_the_last_snapshot_that_has_it() -> None:
    """Although another finding, whose last one is earlier, has rows of an earlier time in the same batch."""
    minute = timedelta(minutes=1)
    found = [("leaders", story.NOON, "a"), ("spread", story.NOON, "a"), ("leaders", story.NOON + minute, "b")]
    rows = [
        {"cluster_id": "c", "constraint": constraint, "severity": "error", "taken_at": at, "topic": topic}
        for constraint, at, topic in found
    ]
    sums = finding_sums(_batches(rows, FINDINGS), {"c": micros(story.NOON + minute)})
    assert {
        constraint: dict(zip(FOUND, one.example, strict=True))["topic"] for (constraint, _), one in sums["c"].items()
    } == {"leaders": "b", "spread": "a"}


def test_a_warehouse_without_rows_makes_an_empty_report() -> None:
    assert summarized([]).clusters == ()


def test_a_snapshot_without_a_time_is_refused_by_name() -> None:
    timeless = replace(story.safe_cluster("calm"), taken_at=None)
    durability, findings, impact, drift = (
        _batches([], table) for table in (PARTITION_DURABILITY, FINDINGS, OUTAGE_IMPACT, DRIFT)
    )
    empty = Tables(durability, findings, impact, drift, {}, {})
    with pytest.raises(InvalidSnapshot, match="cluster 'calm': its latest snapshot has no taken_at; collect it again"):
        summarize(empty, {"calm": timeless}, story.POLICY)
