import re
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.report import svg, timeline
from rackspan.report.data import AT_RISK, History, HistoryPoint, StateCounts
from tests.report import story
from tests.report.html_checks import Element, drawn

counts = st.builds(StateCounts, *[st.integers(0, 3_000_000)] * 5)
spans = st.one_of(st.integers(1, 300), st.integers(300, 200_000), st.integers(200_000, 400_000_000))


@st.composite
def histories(draw: st.DrawFn) -> History:
    start = datetime.fromtimestamp(draw(st.integers(1_600_000_000, 1_900_000_000)), UTC)
    seconds = draw(spans)
    shares = sorted({0.0, 1.0, *draw(st.lists(st.floats(0, 1), max_size=20))})
    times = sorted({start + timedelta(seconds=round(share * seconds)) for share in shares})
    points = tuple(HistoryPoint(at, draw(counts)) for at in times)
    return History(len(points), times[0], times[-1], points, (), 0.0, 0.0, 0.0)


def text_boxes(root: Element) -> list[tuple[float, float, float, float]]:
    """Left, right, top, bottom of each text, as wide as it can be."""
    boxes = []
    for text in root.all("text"):
        width = len(text.text) * svg.CHARACTER
        x, y = float(text.attributes["x"]), float(text.attributes["y"])
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[text.attributes["text-anchor"]]
        boxes.append((left, left + width, y - 9, y + 3))
    return boxes


@given(histories(), st.sampled_from([(343, 240), (1040, 270)]))
def test_no_text_of_the_time_line_leaves_the_picture_or_covers_another(history: History, size: tuple[int, int]) -> None:
    width, height = size
    boxes = text_boxes(drawn(timeline.timeline(history, "t", width, height)))
    assert all(left >= -0.1 and right <= width + 0.1 for left, right, _, _ in boxes)
    for (left, right, top, bottom), (left2, right2, top2, bottom2) in combinations(boxes, 2):
        apart = right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
        assert apart, boxes


@given(histories())
def test_the_area_of_each_state_is_its_partitions_times_its_seconds(history: History) -> None:
    root = drawn(timeline.timeline(history, "t", 1040, 270))
    top = timeline.top_of_axis(max(one.counts.at_risk for one in history.points))
    left = min((float(one.attributes["d"][1:].split()[0]) for one in root.all("path", "grid")), default=40.0)
    frame = timeline.TimelineFrame(1040, 270, history.first_taken_at, history.last_taken_at, top, left)
    edges = [*(frame.x(one.taken_at) for one in history.points), frame.x_end]
    for state in AT_RISK:
        paths = [one.attributes["d"] for one in root.all("path", state.value)]
        expected = sum(
            (right - left) * (frame.y(0) - frame.y(one.counts.of(state)))
            for one, left, right in zip(history.points, edges, edges[1:], strict=False)
        )
        # A tenth of a pixel is the drawing's own grain.
        assert abs(sum(map(area, paths)) - expected) <= 0.2 * (frame.width + frame.height) + 0.002 * expected


def test_nothing_is_drawn_where_a_state_does_not_occur() -> None:
    """Two stretches of one state; none of any other."""
    state, at = AT_RISK[1], datetime(2026, 1, 1, tzinfo=UTC)
    points = [
        HistoryPoint(at + timedelta(minutes=minute), StateCounts(**{state.field: count}))
        for minute, count in enumerate((0, 2, 1, 0, 3))
    ]
    frame = timeline.TimelineFrame(1040, 270, points[0].taken_at, points[-1].taken_at, 10, 40)
    runs = {one: list(timeline._runs(frame, points, AT_RISK[:level], one)) for level, one in enumerate(AT_RISK)}
    assert {one: list(map(len, found)) for one, found in runs.items()} == {
        one: [2, 1] if one is state else [] for one in AT_RISK
    }


def area(path: str) -> float:
    """The shoelace formula over the closed outlines of a path of M, H and V."""
    total, x, y = 0.0, 0.0, 0.0
    for outline in path.split("Z"):
        points: list[tuple[float, float]] = []
        for letter, numbers in re.findall(r"([MHV])([-0-9. ]+)", outline):
            if letter == "M":
                x, y = map(float, numbers.split())
            elif letter == "H":
                x = float(numbers)
            else:
                y = float(numbers)
            points.append((x, y))
        total += abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(points, points[1:] + points[:1], strict=True))) / 2
    return total


@given(st.integers(0, 10**7))
def test_the_value_axis_ends_at_a_round_number_not_far_above(highest: int) -> None:
    top = timeline.top_of_axis(highest)
    assert max(highest, 1) <= top <= max(2 * highest, 1)
    assert top in (1, 2, 4, 5, 6, 8) or top % 10 == 0


@given(histories(), st.integers(2, 12))
def test_time_ticks_are_round_few_and_inside(history: History, most: int) -> None:
    ticks = timeline.time_ticks(history.first_taken_at, history.last_taken_at, most)
    assert len(ticks) <= most
    assert all(history.first_taken_at <= tick <= history.last_taken_at for tick in ticks)
    assert all(tick.microsecond == 0 for tick in ticks)
    if len(ticks) > 1:
        assert len({after - before for before, after in pairwise(ticks)}) == 1


def test_ten_minutes_are_ticked_in_whole_minutes_and_three_days_at_midnight() -> None:
    start = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
    assert [f"{one:%H:%M}" for one in timeline.time_ticks(start, start + timedelta(minutes=9), 5)] == [
        "12:02",
        "12:04",
        "12:06",
        "12:08",
    ]
    assert [f"{one:%d %H}" for one in timeline.time_ticks(start, start + timedelta(days=3), 4)] == [
        "22 00",
        "23 00",
        "24 00",
    ]


@pytest.mark.slow
def test_the_worst_point_is_marked_with_its_time_and_counts() -> None:
    history = story.history_of(story.report_by_hand(story.shop_history(20)).clusters[0])
    root = drawn(timeline.timeline(history, "t", 1040, 270))
    assert [one.text for one in root.all("text", "worst")] == ["12:03:00 worst: 4 offline, 4 under-min-isr, 2 one-rack"]
    assert len(root.all("path", "worst")) == 1


@pytest.mark.slow
def test_the_axes_have_their_values_units_and_lines() -> None:
    history = story.history_of(story.report_by_hand(story.shop_history(20)).clusters[0])
    root = drawn(timeline.timeline(history, "t", 1040, 270))
    texts = [one.text for one in root.all("text")]
    top = timeline.top_of_axis(max(point.counts.at_risk for point in history.points))
    values = [text for text in texts if text.isdigit()]
    assert values == [str(value) for value in ([0, top] if top % 2 else [0, top // 2, top])]
    assert len(root.all("path", "grid")) == len(values)
    assert {"partitions not ok", "times in UTC", "12:03", "21 Nov"} <= set(texts)
    assert texts.count("21 Nov") == 1


def test_days_are_shown_where_a_history_spans_them() -> None:
    snapshots = story.shop_history(1) + story.at_times(story.shop_history(9)[-1], [story.NOON + timedelta(days=2)])
    root = drawn(timeline.timeline(story.history_of(story.report_by_hand(snapshots).clusters[0]), "t", 1040, 270))
    assert root.all("text", "worst")[0].text.startswith("23 Nov 12:00:00 worst")
    assert {"22 Nov", "23 Nov"} <= {one.text for one in root.all("text")}


def test_a_history_without_risk_is_one_calm_band() -> None:
    calm = story.at_times(story.safe_cluster(), [story.NOON, story.NOON + timedelta(hours=3)])
    root = drawn(timeline.timeline(story.history_of(story.report_by_hand(calm).clusters[0]), "t", 343, 240))
    assert len(root.all("rect", "ok")) == 1
    assert not root.all("path", "s")


@pytest.mark.slow
def test_the_picture_says_in_words_what_it_shows() -> None:
    history = story.history_of(story.report_by_hand(story.shop_history(20)).clusters[0])
    root = drawn(timeline.timeline(history, "t", 1040, 270))
    assert root.all("desc")[0].text == (
        "From 2026-11-21 12:00:00 UTC to 2026-11-21 12:09:30 UTC. 20 snapshots over 9 min 30 s: for 9 min 30 s of it at "
        "least one partition was not ok. Worst at 2026-11-21 12:03:00 UTC: 4 offline, 4 under-min-isr, 2 one-rack."
    )
