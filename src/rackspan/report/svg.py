"""Bars and marks as inline SVG, coloured by the page's style sheet.

Colour is never the only difference: each state has its own hatching (the patterns in templates/signs.svg), its own sign, and its
count in words beside it. All is to scale in percent, so it fits a phone without a script.
"""

from collections.abc import Iterable
from typing import Final

from markupsafe import Markup

from rackspan.audit.outage import RackLoss
from rackspan.report.data import BrokerRow, Cell, DurabilityState, StateCounts

CHARACTER: Final = 6.4
"""Width in px that one character of a picture's text takes at most (11 px, any sans-serif)."""


def state_bar(counts: StateCounts, label: str) -> Markup:
    """All partitions of one point in time as one bar, the worst on the left."""
    return _bar([(state.value, counts.of(state)) for state in DurabilityState], label)


def loss_bar(loss: RackLoss, harmed: int, partitions: int, label: str) -> Markup:
    """The states of all partitions after a loss as one bar, the worst on the left.

    A partition under both minimums is drawn as under min ISR, so that the bar's length is that of all partitions.
    """
    offline, under_min_isr = loss.total("offline"), loss.total("under_min_isr")
    segments = (
        (DurabilityState.OFFLINE, offline),
        (DurabilityState.UNDER_MIN_ISR, under_min_isr),
        (DurabilityState.UNDER_MIN_RACKS, harmed - offline - under_min_isr),
        (DurabilityState.OK, partitions - harmed),
    )
    return _bar([(state.value, number) for state, number in segments], label)


def cell_bar(cell: Cell, longest: int) -> Markup:
    """Replicas of one topic in one rack, to the scale of its fullest rack: in sync filled, out of sync hollow."""
    in_sync = Markup('<rect class="i" width="{}%" height="9"/>').format(_percent(cell.in_sync, longest))
    behind = cell.replicas - cell.in_sync
    hollow = Markup('<rect class="o" x="{}%" width="{}%" height="9"/>')
    rest = hollow.format(_percent(cell.in_sync, longest), _percent(behind, longest)) if behind > 0 else ""
    return Markup('<svg class="b">{}{}</svg>').format(in_sync if cell.in_sync else "", rest)


def broker_bar(row: BrokerRow, most: int) -> Markup:
    """The replicas of a broker to the scale of the fullest one: what it leads filled, the others hollow."""
    return cell_bar(Cell(row.replicas, row.leaders, row.leaders, None), most)


def mark(state: str) -> Markup:
    """The sign of a state or verdict, drawn once a page and used by name."""
    return Markup('<svg class="k {0}"><use href="#k-{0}"/></svg>').format(state)


def text(x: float, y: float, words: str, anchor: str, kind: str = "label") -> Markup:
    """Text of a picture in px. It cannot be stretched, so a picture with text is drawn once for each width."""
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(kind, x, y, anchor, words)


def _bar(segments: Iterable[tuple[str, int]], label: str) -> Markup:
    present = [(state, number) for state, number in segments if number > 0]
    total = sum(number for _, number in present)
    rects, before = [], 0
    for state, number in present:
        rects.append(
            Markup('<rect class="s {}" x="{}%" width="{}%" height="14"/>').format(
                state, _percent(before, total), _percent(number, total)
            )
        )
        before += number
    return Markup('<svg class="bar" role="img" aria-label="{}">{}</svg>').format(label, Markup("").join(rects))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}".removesuffix(".0") if whole else "0"
