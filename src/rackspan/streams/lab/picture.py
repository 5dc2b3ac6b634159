"""The table of `streams lab` as an SVG picture: bars to one scale, for light and dark pages."""

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup

from rackspan.streams.lab.replay import LabDocument, LabProblem, LabRun, heading
from rackspan.text import count_noun

WIDTH: Final = 800
ROW: Final = 26
HEAD: Final = 62
FOOT: Final = 22
LABELS: Final = 272
"""Width in px of the settings' names."""
GAP: Final = 72
"""Width in px after each panel, for the number of its longest bar."""
PANEL: Final = (WIDTH - LABELS - 2 * GAP - 50) / 2
"""Width in px of one panel's longest bar. The rounds have the last 50 px."""

STYLE: Final = Markup(
    "<style>svg{font:12px system-ui,sans-serif;color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--across:#b35900;"
    "--standby:#e0b98f;--moved:#0b63b0}@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa4af;"
    "--across:#f0883e;--standby:#8a5a2b;--moved:#58a6ff}}text{fill:var(--ink)}.soft{fill:var(--soft)}"
    ".across{fill:var(--across)}.standby{fill:var(--standby)}.moved{fill:var(--moved)}.head{font-weight:600}"
    ".line{stroke:var(--soft);stroke-width:.5}</style>"
)


def lab_picture(document: LabDocument) -> str:
    """Draw the document of `lab.replay`. Pure: equal documents give equal bytes."""
    sections, top = [], 0
    for problem in document["problems"]:
        sections.append(Markup('<g transform="translate(0 {})">{}</g>').format(top, _section(problem)))
        top += HEAD + ROW * len(problem["runs"]) + FOOT
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
            'aria-label="{label}">{style}{body}</svg>\n'
        ).format(w=WIDTH, h=top, label=_label(document), style=STYLE, body=Markup("").join(sections))
    )


def _label(document: LabDocument) -> str:
    return "; ".join(
        f"{run['assignor']} {run['strategy']}: {_count(run['cross_rack']['active'])} partitions across racks, "
        f"{count_noun(run['moved']['in_all'], 'task')} moved, {count_noun(run['rounds'], 'round')}"
        for problem in document["problems"]
        for run in problem["runs"]
    )


def _section(problem: LabProblem) -> Markup:
    runs = problem["runs"]
    longest = max((_across(run) for run in runs), default=0), max((run["moved"]["in_all"] for run in runs), default=0)
    rows = [
        Markup('<g transform="translate(0 {})">{}</g>').format(HEAD + ROW * index, _row(run, *longest))
        for index, run in enumerate(runs)
    ]
    return Markup("").join([*_head(problem), *rows])


def _head(problem: LabProblem) -> Iterator[Markup]:
    yield _text(0, 16, heading(problem), "head")
    yield _text(LABELS, 42, "across racks: active, standby", "soft")
    yield _text(LABELS + PANEL + GAP, 42, "active tasks moved", "soft")
    yield _text(WIDTH, 42, "rounds", "soft", "end")
    yield Markup('<path class="line" d="M0 50H{}"/>').format(WIDTH)


def _row(run: LabRun, most_across: int, most_moved: int) -> Markup:
    moved, left = run["moved"]["in_all"], LABELS + PANEL + GAP
    return Markup("").join(
        [
            _text(0, 13, f"{run['assignor']}, {run['strategy']}"),
            _text(LABELS - 8, 13, f"{run['traffic_cost']}/{run['non_overlap_cost']}", "soft", "end"),
            *_across_bars(run, most_across),
            _bar(left, _scaled(moved, most_moved), "moved"),
            _text(left + _scaled(moved, most_moved) + 5, 13, str(moved)),
            _text(WIDTH, 13, f"{run['rounds']}{'' if run['converged'] else '+'}", "", "end"),
        ]
    )


def _across_bars(run: LabRun, most: int) -> Iterator[Markup]:
    active, standby = run["cross_rack"]["active"], run["cross_rack"]["standby"]
    end = LABELS + _scaled(_across(run), most)
    yield _bar(LABELS, _scaled(active or 0, most), "across")
    yield _bar(LABELS + _scaled(active or 0, most), _scaled(standby or 0, most), "standby")
    yield _text(end + 5, 13, f"{_count(active)}, {_count(standby)}")


def _across(run: LabRun) -> int:
    return (run["cross_rack"]["active"] or 0) + (run["cross_rack"]["standby"] or 0)


def _scaled(count: int, most: int) -> float:
    return count / most * PANEL if most else 0.0


def _bar(x: float, width: float, kind: str) -> Markup:
    return Markup('<rect class="{}" x="{:.1f}" y="3" width="{:.1f}" height="13"/>').format(kind, x, width)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, text)


def _count(count: int | None) -> str:
    return "?" if count is None else str(count)
