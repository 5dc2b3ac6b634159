"""Draw one run twice, the proposal as written above and the rule below: python -m tests.simulation.picture

Each broker is a row in its rack: full where it is in the committed ISR, pale where it is not; the dashed frame is the fault.
Dots are acknowledgements, red where fewer racks hold the record than were required. Writes docs/pictures/rack-leak.svg.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from markupsafe import Markup

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import Effect, ProduceResponse, Respond
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId
from tests.simulation.environment.parameters import FAULTS_MS
from tests.simulation.faults.drawing import Fault
from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import KINDS
from tests.simulation.mistakes.planted import PLANTED
from tests.simulation.runs.replay import explained
from tests.simulation.world import ORDERS, Build, Running, World

SEED: Final = 38
"""Three brokers in three racks, two racks required: one fault suffices."""

TARGET: Final = Path(__file__).parents[2] / "docs" / "pictures" / "rack-leak.svg"

WIDTH, LEFT, RIGHT, ROW, PANEL = 800, 96, 16, 30, 190
SHOWN_MS: Final = 600
"""Before and after the leak."""

STYLE: Final = Markup(
    "<style>svg{font:12px system-ui,sans-serif;color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--in:#0b63b0;"
    "--bad:#c62828}@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa4af;--in:#58a6ff;--bad:#ff6b6b}}"
    "text{fill:var(--ink)}.soft{fill:var(--soft)}.head{font-weight:600}.in{fill:var(--in);opacity:.75}"
    ".out{fill:var(--in);opacity:.15}.struck{fill:none;stroke:var(--soft);stroke-dasharray:3 3}.ok{fill:var(--ink)}"
    ".bad{fill:var(--bad)}.leak{stroke:var(--bad);stroke-width:2}</style>"
)


@dataclass(slots=True)
class Story:
    """What a run showed. Times in ms."""

    isr: list[tuple[int, tuple[BrokerId, ...]]] = field(default_factory=list)
    acknowledged: list[tuple[int, BrokerId, int]] = field(default_factory=list)
    """When, by whom, on how many racks' disks."""
    refused: int = 0
    ended: int = 0
    violation: str | None = None


class Recorded(Running):
    """A run that notes down what the picture shows."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.story = Story()

    def carry_out(self, node: NodeId, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Respond) and isinstance(effect.response, ProduceResponse):
                self._note(node, effect.response)
        super().carry_out(node, effects)
        isr = self.observer.evidence.committed.isr
        if not self.story.isr or self.story.isr[-1][1] != isr:
            self.story.isr.append((self.clock.now, isr))

    def _note(self, node: NodeId, result: ProduceResponse) -> None:
        if result.error is not ErrorCode.NONE:
            self.story.refused += 1
            return
        logs = [(one.rack, one.disk.logs.get(ORDERS)) for one in self.machines.values()]
        racks = {rack for rack, log in logs if log is not None and log.end_offset > result.base_offset}
        self.story.acknowledged.append((self.clock.now, BrokerId(node), len(racks)))


def recorded(faults: tuple[Fault, ...], build: Build) -> Recorded:
    running = Recorded(World(KINDS["clean"], SEED, faults, build))
    try:
        running.run()
    except Violation as violation:
        running.story.violation = violation.text
    running.story.ended = running.clock.now
    return running


def picture() -> str:
    build = PLANTED["the proposal as written"].build
    violation = _violation(build)
    faults = explained(KINDS["clean"], SEED, violation, build).faults
    leak, held = recorded(faults, build), recorded(faults, Build())
    span = (leak.story.ended - SHOWN_MS, leak.story.ended + SHOWN_MS)
    body = [
        *_panel(leak, span, 0, "The proposal as written: racks are counted before the append only"),
        *_panel(held, span, PANEL, "The rule: racks are counted when the watermark moves, too"),
    ]
    return str(
        Markup(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" role="img">{s}{b}</svg>\n'
        ).format(w=WIDTH, h=2 * PANEL, s=STYLE, b=Markup("").join(body))
    )


def _violation(build: Build) -> Violation:
    try:
        World(KINDS["clean"], SEED, build=build).run()
    except Violation as violation:
        return violation
    raise AssertionError(f"seed {SEED} breaks nothing any more: choose another")


def _panel(run: Recorded, span: tuple[int, int], top: int, title: str) -> Iterator[Markup]:
    yield Markup('<text class="head" x="8" y="{}">{}</text>').format(top + 18, title)
    for place, broker in enumerate(run.parameters.brokers):
        y = top + 34 + place * ROW
        rack, leads = run.machines[broker].rack, broker == _leader(run)
        yield Markup('<text x="8" y="{}">rack {}, broker {}{}</text>').format(
            y + 15, rack, broker, "*" if leads else ""
        )
        yield from _bars(run.story, broker, span, y)
    yield from _struck(run, span, top + 30)
    yield from _dots(run, span, top + 34 + len(run.parameters.brokers) * ROW)
    if run.story.violation is not None:
        x = _x(run.story.ended, span)
        yield Markup('<line class="leak" x1="{0}" x2="{0}" y1="{1}" y2="{2}"/>').format(x, top + 26, top + 142)
    yield Markup('<text class="soft" x="8" y="{}">{}</text>').format(top + 166, _words(run, span))


def _leader(run: Recorded) -> BrokerId | None:
    return run.observer.evidence.committed.leader


def _words(run: Recorded, span: tuple[int, int]) -> str:
    required = run.parameters.min_insync_racks
    if run.story.violation is not None:
        return f"{run.story.ended} ms: readers see, and a producer is told of, a record that one rack holds; {required} were requested."
    count = sum(span[0] <= time <= span[1] for time, _, _ in run.story.acknowledged)
    return f"No rule broken. {count} batches acknowledged between {span[0]} and {span[1]} ms, each held by {required} racks or more. * leads"


def _bars(story: Story, broker: BrokerId, span: tuple[int, int], y: int) -> Iterator[Markup]:
    ends = [time for time, _ in story.isr[1:]] + [story.ended]
    for (begin, isr), end in zip(story.isr, ends, strict=True):
        x1, x2 = _x(begin, span), _x(end, span)
        if x2 > x1:
            yield Markup('<rect class="{}" x="{}" y="{}" width="{}" height="18"/>').format(
                "in" if broker in isr else "out", x1, y, round(x2 - x1, 1)
            )


def _struck(run: Recorded, span: tuple[int, int], y: int) -> Iterator[Markup]:
    for fault in run.faults:
        x1, x2 = _x(fault.at_ms, span), _x(min(fault.at_ms + fault.duration_ms, FAULTS_MS), span)
        yield Markup('<rect class="struck" x="{}" y="{}" width="{}" height="96"/>').format(x1, y, round(x2 - x1, 1))
        yield Markup('<text class="soft" x="{}" y="{}" text-anchor="end">{}: {}</text>').format(
            x2, y - 4, fault.kind.value, fault.target.value
        )


def _dots(run: Recorded, span: tuple[int, int], y: int) -> Iterator[Markup]:
    yield Markup('<text x="8" y="{}">acknowledged</text>').format(y + 12)
    for time, _, racks in run.story.acknowledged:
        if span[0] <= time <= span[1]:
            bad = racks < run.parameters.min_insync_racks
            yield Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(
                "bad" if bad else "ok", _x(time, span), y + 8, 5 if bad else 1.6
            )


def _x(time: int, span: tuple[int, int]) -> float:
    inside = min(max(time, span[0]), span[1])
    return round(LEFT + 24 + (inside - span[0]) * (WIDTH - LEFT - RIGHT - 24) / (span[1] - span[0]), 1)


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
