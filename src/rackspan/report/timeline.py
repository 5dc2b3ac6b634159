"""The time line: partitions at risk as stacked steps in SVG, with the worst point marked.

Its text cannot be stretched, so it is drawn once for each width and the page shows the one that fits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Final

from markupsafe import Markup

from rackspan.report import words
from rackspan.report.data import AT_RISK, DurabilityState, History, HistoryPoint
from rackspan.report.svg import CHARACTER, text

LAST_POINT: Final = 5.0
"""Width in px of the last point, which has no duration and would be invisible."""

CALM_HEIGHT: Final = 110
"""Height in px where nothing ever happened."""

_STEPS_SECONDS: Final = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12)),
    *(86400 * days for days in (1, 2, 7, 14, 28, 91, 182, 364)),
)


@dataclass(frozen=True, slots=True)
class TimelineFrame:
    """A time line's place: outer size and margins in px, and what its axes span."""

    width: int
    height: int
    start: datetime
    end: datetime
    top_value: int
    left: float = 40
    right: float = 14
    top: float = 54
    bottom: float = 40

    @property
    def x_end(self) -> float:
        return self.width - self.right

    @property
    def base(self) -> float:
        return self.height - self.bottom

    def x(self, time: datetime) -> float:
        share = (time - self.start) / (self.end - self.start) if self.end > self.start else 0.0
        return self.left + share * (self.x_end - LAST_POINT - self.left)

    def y(self, value: int) -> float:
        return self.base - value / self.top_value * (self.base - self.top)


def timeline(history: History, ident: str, width: int, height: int) -> Markup:
    """Partitions at risk over time, stacked, the worst state at the bottom; the worst point marked.

    `ident` must be unique in the page: title and description are tied to it.
    """
    highest = max(point.counts.at_risk for point in history.points)
    frame = _frame(history, width, height if highest else CALM_HEIGHT, top_of_axis(highest))
    parts = [*(_eventful(frame, history) if highest else _calm(frame)), *_time_axis(frame)]
    return Markup(
        '<svg class="timeline" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-labelledby="{id}-t {id}-d">'
        '<title id="{id}-t">Partitions at risk over time</title><desc id="{id}-d">{desc}</desc>{body}</svg>'
    ).format(w=width, h=frame.height, id=ident, desc=_described(history), body=Markup("\n").join(parts))


def top_of_axis(highest: int) -> int:
    """The least of 1, 2, 5, 10, 20 … that is not below `highest`, or an even step towards it."""
    scale = 1
    while True:
        for step in (1, 2, 4, 5, 6, 8):
            if step * scale >= highest:
                return step * scale
        scale *= 10


def time_ticks(start: datetime, end: datetime, most: int) -> list[datetime]:
    """At most `most` round times from `start` to `end`, counted from midnight UTC."""
    seconds = (end - start).total_seconds()
    whole_days = ceil(seconds / most / 86400 + 1) * 86400
    step = next((step for step in _STEPS_SECONDS if seconds / step < most), whole_days)
    midnight = start.replace(hour=0, minute=0, second=0, microsecond=0)
    first = -(-(start - midnight) // timedelta(seconds=step))
    ticks: list[datetime] = []
    tick = midnight + first * timedelta(seconds=step)
    while tick <= end and len(ticks) < most:
        ticks.append(tick)
        tick += timedelta(seconds=step)
    return ticks


def _frame(history: History, width: int, height: int, top_value: int) -> TimelineFrame:
    left = max(40.0, 8 + CHARACTER * len(f"{top_value:,}"))
    return TimelineFrame(width, height, history.first_taken_at, history.last_taken_at, top_value, left)


def _eventful(frame: TimelineFrame, history: History) -> Iterator[Markup]:
    yield from _value_axis(frame)
    yield from _layers(frame, history.points)
    yield from _worst(frame, history)


def _calm(frame: TimelineFrame) -> list[Markup]:
    """One band: every partition was ok all the time."""
    band = Markup('<rect class="s ok" x="{}" y="{}" width="{:.1f}" height="{}"/>')
    return [
        band.format(frame.left, frame.base - 30, frame.x_end - frame.left, 30),
        text(0, frame.base - 36, "all ok", "start"),
    ]


def _value_axis(frame: TimelineFrame) -> Iterator[Markup]:
    values = [0, frame.top_value] if frame.top_value % 2 else [0, frame.top_value // 2, frame.top_value]
    for value in values:
        y = frame.y(value)
        yield Markup('<path class="grid" d="M{} {:.1f}H{:.1f}"/>').format(frame.left, y, frame.x_end)
        yield text(frame.left - 6, y + 4, f"{value:,}", "end")
    yield text(0, 12, "partitions not ok", "start")


def _time_axis(frame: TimelineFrame) -> Iterator[Markup]:
    # A label is 8 characters at most, and needs as much air again beside it.
    most = max(2, int((frame.x_end - frame.left) / (CHARACTER * 13)))
    ticks = time_ticks(frame.start, frame.end, most)
    with_seconds = any(tick.second for tick in ticks)
    shown_day = None
    for tick in ticks:
        x = frame.x(tick)
        yield Markup('<path class="axis" d="M{0:.1f} {1}v5"/>').format(x, frame.base)
        yield _beside(x, frame.base + 18, f"{tick:%H:%M:%S}" if with_seconds else f"{tick:%H:%M}", frame)
        if tick.date() != shown_day:
            shown_day = tick.date()
            yield _beside(x, frame.base + 33, f"{tick:%d %b}", frame)
    yield text(frame.x_end, 12, "times in UTC", "end")


def _layers(frame: TimelineFrame, points: Sequence[HistoryPoint]) -> Iterator[Markup]:
    for level, state in enumerate(AT_RISK):
        path = "".join(_outline(run) for run in _runs(frame, points, AT_RISK[:level], state))
        if path:
            yield Markup('<path class="s {}" d="{}"/>').format(state.value, path)


Block = tuple[float, float, float, float]
"""The block of one point: left, right, top, bottom in px."""


def _runs(
    frame: TimelineFrame, points: Sequence[HistoryPoint], below: Sequence[DurabilityState], state: DurabilityState
) -> Iterator[list[Block]]:
    """Stretches in which a state occurs, as steps, so that where it does not nothing is drawn."""
    edges = [*(frame.x(point.taken_at) for point in points), frame.x_end]
    run: list[Block] = []
    for point, (left, right) in zip(points, pairwise(edges), strict=True):
        under = sum(point.counts.of(lower) for lower in below)
        over = under + point.counts.of(state)
        if over > under:
            run.append((left, right, frame.y(over), frame.y(under)))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _outline(run: Sequence[Block]) -> str:
    """The outline of a run as an SVG path: forward along the tops, back along the bottoms."""
    forward = "".join(f"V{top:.1f}H{right:.1f}" for _, right, top, _ in run)
    back = "".join(f"V{bottom:.1f}H{left:.1f}" for left, _, _, bottom in reversed(run))
    return f"M{run[0][0]:.1f} {run[0][3]:.1f}{forward}{back}Z"


def _worst(frame: TimelineFrame, history: History) -> Iterator[Markup]:
    worst = history.worst
    if worst is None:
        return
    x = frame.x(worst.taken_at)
    yield Markup('<path class="worst" d="M{0:.1f} {1}V{2}"/>').format(x, frame.top - 8, frame.base)
    head, counts = f"{_clock(history, worst.taken_at)} worst:", words.states(worst.counts)
    for line, words_of_line in enumerate(reversed(_lines(head, counts, frame.width))):
        yield _beside(x, frame.top - 12 - 14 * line, words_of_line, frame, "worst")


def _lines(head: str, counts: str, width: float) -> list[str]:
    """One line if it fits, else two; what is too long even so is cut, since the table under the picture has it."""
    characters = int(width / CHARACTER)
    lines = [f"{head} {counts}"] if len(head) + len(counts) < characters else [head, counts]
    return [line if len(line) <= characters else f"{line[: characters - 1]}…" for line in lines]


def _beside(x: float, y: float, label: str, frame: TimelineFrame, kind: str = "label") -> Markup:
    """Text centred on x as far as the picture's edges allow."""
    half = len(label) * CHARACTER / 2
    if x - half < 0:
        return text(0, y, label, "start", kind)
    if x + half > frame.width:
        return text(frame.width, y, label, "end", kind)
    return text(x, y, label, "middle", kind)


def _clock(history: History, time: datetime) -> str:
    one_day = history.first_taken_at.date() == history.last_taken_at.date()
    return f"{time:%H:%M:%S}" if one_day else f"{time:%d %b %H:%M:%S}"


def _described(history: History) -> str:
    worst = history.worst
    ends = f"From {words.utc(history.first_taken_at)} to {words.utc(history.last_taken_at)}. {words.risk(history)}"
    return ends if worst is None else f"{ends} Worst at {words.utc(worst.taken_at)}: {words.states(worst.counts)}."
