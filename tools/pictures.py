"""Draw the README's pictures of task assignment from measured figures: `python -m tools.pictures`.

docs/pictures/streams.json (measured by benchmarks/_streams_figures.py) becomes streams-cost.svg, the picture that
`rackspan streams lab --out` draws, and streams-time.svg, our time and Kafka's by size on logarithmic axes.
"""

import json
from collections.abc import Iterator, Mapping
from math import log10
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from rackspan.streams.lab.picture import lab_picture

FOLDER: Final = Path(__file__).parent.parent / "docs" / "pictures"
FIGURES: Final = FOLDER / "streams.json"

WIDTH: Final = 800
HEIGHT: Final = 420
LEFT, RIGHT, TOP, BOTTOM = 66, 214, 44, 46
X_DECADES: Final = (1.6, 5.0)
"""Tasks, from 40 to 100,000, as powers of ten."""
Y_DECADES: Final = (-3.3, 3.4)
"""Seconds, from half a millisecond to forty minutes."""

STRATEGIES: Final[Mapping[str, str]] = {"min_traffic": "", "balance_subtopology": "dashed"}

STYLE: Final = Markup(
    "<style>svg{font:12px system-ui,sans-serif;color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--grid:#d8dee4;"
    "--kafka:#b35900;--rackspan:#0b63b0}@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa4af;"
    "--grid:#30363d;--kafka:#f0883e;--rackspan:#58a6ff}}text{fill:var(--ink)}.soft{fill:var(--soft)}"
    ".head{font-weight:600}.grid{stroke:var(--grid)}.line{fill:none;stroke-width:2}.dashed{stroke-dasharray:6 4}"
    "path.kafka,circle.kafka{stroke:var(--kafka)}path.rackspan,circle.rackspan{stroke:var(--rackspan)}"
    "circle{stroke-width:2;fill:none}text.kafka{fill:var(--kafka)}text.rackspan{fill:var(--rackspan)}</style>"
)

Figures = Mapping[str, Any]
Point = tuple[float, float]


def main() -> None:
    figures = json.loads(FIGURES.read_text(encoding="utf-8"))
    (FOLDER / "streams-cost.svg").write_text(cost_picture(figures), encoding="utf-8")
    (FOLDER / "streams-time.svg").write_text(time_picture(figures), encoding="utf-8")


def cost_picture(figures: Figures) -> str:
    return lab_picture({"problems": [figures["cost"]]})


def time_picture(figures: Figures) -> str:
    """A line for each strategy of ours and of Kafka's; where Kafka did not finish, an arrow up from its limit."""
    parts = [*_axes(), *(part for strategy in STRATEGIES for part in _strategy(figures, strategy))]
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
            'aria-label="{label}">{style}{body}</svg>\n'
        ).format(w=WIDTH, h=HEIGHT, label=_label(figures), style=STYLE, body=Markup("").join(parts))
    )


def _label(figures: Figures) -> str:
    def words(row: Figures) -> str:
        kafka = row.get("kafka_seconds")
        beside = f", Kafka {kafka:.3g} s" if kafka else ""
        return f"{row['tasks']} tasks, {row['strategy']}: {row['rackspan_seconds']:.2g} s{beside}"

    return "Time to assign, by tasks. " + "; ".join(words(row) for row in figures["time"])


def _axes() -> Iterator[Markup]:
    yield _text(0, 16, "Seconds to assign all tasks at least cost, by their number (both axes logarithmic)", "head")
    for power in range(-3, 4):
        y = _y(10.0**power)
        yield Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(LEFT, y, WIDTH - RIGHT)
        yield _text(LEFT - 8, y + 4, f"{10.0**power:g} s" if power >= 0 else f"{10 ** (power + 3)} ms", "soft", "end")
    for tasks in (100, 1_000, 10_000, 100_000):
        yield Markup('<path class="grid" d="M{0:.1f} {1}V{2}"/>').format(_x(tasks), TOP, HEIGHT - BOTTOM)
        yield _text(_x(tasks), HEIGHT - BOTTOM + 18, f"{tasks:,}", "soft", "middle")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "tasks (on 10 to 1,000 clients)", "soft", "middle")


def _strategy(figures: Figures, strategy: str) -> Iterator[Markup]:
    rows = [row for row in figures["time"] if row["strategy"] == strategy]
    dash = STRATEGIES[strategy]
    yield from _line([(row["tasks"], row["rackspan_seconds"]) for row in rows], "rackspan", dash, strategy)
    finished = [(row["tasks"], row["kafka_seconds"]) for row in rows if row.get("kafka_seconds")]
    yield from _line(finished, "kafka", dash, strategy)
    for row in rows:
        if row.get("kafka_not_within_seconds"):
            yield from _unfinished(row["tasks"], row["kafka_not_within_seconds"])


def _line(points: list[Point], whose: str, dash: str, strategy: str) -> Iterator[Markup]:
    if not points:
        return
    placed = [f"{_x(tasks):.1f} {_y(seconds):.1f}" for tasks, seconds in points]
    yield Markup('<path class="line {} {}" d="M{}"/>').format(whose, dash, "L".join(placed))
    for tasks, seconds in points:
        yield Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="2.5"/>').format(whose, _x(tasks), _y(seconds))
    tasks, seconds = points[-1]
    name = "Kafka Streams" if whose == "kafka" else "rackspan"
    yield _text(_x(tasks) + 10, _y(seconds) + 4, f"{name}, {strategy}", whose)


def _unfinished(tasks: int, limit: int) -> Iterator[Markup]:
    x, y = _x(tasks), _y(limit)
    yield Markup('<path class="line kafka" d="M{0:.1f} {1:.1f}v-12m-4 5l4 -5l4 5"/>').format(x, y)
    yield _text(x + 10, y - 4, f"not finished in {limit:,} s", "kafka")


def _x(tasks: float) -> float:
    least, most = X_DECADES
    return LEFT + (log10(tasks) - least) / (most - least) * (WIDTH - LEFT - RIGHT)


def _y(seconds: float) -> float:
    least, most = Y_DECADES
    return HEIGHT - BOTTOM - (log10(seconds) - least) / (most - least) * (HEIGHT - TOP - BOTTOM)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, text)


if __name__ == "__main__":
    main()
