"""The bytes from rack to rack as a picture: a row for each rack that sends, a column for each that receives, in SVG.

Bars are to the scale of the most bytes between two racks, divided by basis. What stays in a rack has a number and no bar, since it would hide the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from rackspan.model.ids import RackId, shown
from rackspan.report.svg import CHARACTER, text
from rackspan.report.traffic import RackFlow
from rackspan.text import human_bytes
from rackspan.traffic import Basis

BASES: Final = tuple(basis.value for basis in Basis)
"""In this order in every bar."""

NUMBER_WIDTH: Final = 64.0
"""Width in px of a cell that a number fits into; narrower ones have bars only."""

CELL_WIDTH_MOST: Final = 168.0
CELL_HEIGHT: Final = 44.0
CELL_LEAST: Final = 14.0
"""Of a side in px, for a line of text. With more racks than fit so, the picture is wider than the screen, and scrolls."""

NARROW_HEIGHT_MOST: Final = 24.0

NAME_MOST: Final = 14
"""Characters of a rack's name; longer ones are cut, and complete in the table below the picture."""

UNKNOWN: Final = "not known"


@dataclass(frozen=True, slots=True)
class _Grid:
    """The place of each cell in px. Rows and columns have the same racks in the same order; None is the rack that is not known."""

    racks: Sequence[str | None]
    left: float
    top: float
    cell_width: float
    cell_height: float

    @property
    def numbered(self) -> bool:
        return self.cell_width >= NUMBER_WIDTH

    @property
    def width(self) -> float:
        return self.left + self.cell_width * len(self.racks)

    @property
    def height(self) -> float:
        return self.top + self.cell_height * len(self.racks)


def flow_picture(flows: Sequence[RackFlow], ident: str, width: int) -> Markup:
    """Racks by racks, `width` px wide at most unless there are very many. `ident` must be unique in the page: title and description are tied to it."""
    grid = _grid(flows, width)
    by_pair = {(flow.source, flow.destination): flow for flow in flows}
    most = max((flow.size_bytes for flow in flows if flow.crosses is not False), default=0)
    parts = [*_names(grid), *_cells(grid, by_pair, most)]
    return Markup(
        '<svg class="flows" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" height="{h:.0f}" role="img" aria-labelledby="{id}-t {id}-d">'
        '<title id="{id}-t">Bytes from rack to rack</title><desc id="{id}-d">{desc}</desc>{body}</svg>'
    ).format(w=grid.width, h=grid.height, id=ident, desc=described(flows), body=Markup("\n").join(parts))


def described(flows: Sequence[RackFlow]) -> str:
    """`Most from r1 to r2: 1.2 GiB.`"""
    crossing = [flow for flow in flows if flow.crosses and flow.size_bytes]
    if not crossing:
        return "Nothing crossed racks, as far as bytes are known."
    most = max(crossing, key=lambda flow: flow.size_bytes)
    return f"Most from {rack_name(most.source)} to {rack_name(most.destination)}: {human_bytes(most.size_bytes)}."


def rack_name(rack: str | None) -> str:
    """The rack's name, and of one that is not known the words for it."""
    return UNKNOWN if rack is None else shown(RackId(rack))


def _grid(flows: Sequence[RackFlow], width: int) -> _Grid:
    named = sorted({rack for flow in flows for rack in (flow.source, flow.destination) if rack is not None})
    unknown = any(flow.crosses is None for flow in flows)
    racks: list[str | None] = [*named, *([None] if unknown else [])]
    left = 10 + CHARACTER * max(len(_name(rack)) for rack in racks)
    cell_width = max(CELL_LEAST, min(CELL_WIDTH_MOST, (width - left) / len(racks)))
    if cell_width >= NUMBER_WIDTH:
        return _Grid(racks, left, 40, cell_width, CELL_HEIGHT)
    # The names of columns stand upright.
    return _Grid(racks, left, left + 22, cell_width, min(cell_width, NARROW_HEIGHT_MOST))


def _name(rack: str | None) -> str:
    name = rack_name(rack)
    return name if len(name) <= NAME_MOST else f"{name[: NAME_MOST - 1]}…"


def _names(grid: _Grid) -> Iterator[Markup]:
    yield text(0, 12, "from ↓ to →", "start")
    for place, rack in enumerate(grid.racks):
        y = grid.top + grid.cell_height * (place + 0.5) + 4
        yield text(0, y, _name(rack), "start", "rack")
        x = grid.left + grid.cell_width * place
        if grid.numbered:
            most = int(grid.cell_width / CHARACTER)
            name = _name(rack)
            yield text(x + 6, grid.top - 10, name if len(name) <= most else f"{name[: most - 1]}…", "start", "rack")
        else:
            middle = x + grid.cell_width / 2 + 4
            upright = Markup('<g transform="rotate(-90 {0:.1f} {1:.1f})">{2}</g>')
            yield upright.format(middle, grid.top - 6, text(middle, grid.top - 6, _name(rack), "start", "rack"))


def _cells(grid: _Grid, by_pair: Mapping[tuple[str | None, str | None], RackFlow], most: int) -> Iterator[Markup]:
    for row, source in enumerate(grid.racks):
        for column, destination in enumerate(grid.racks):
            x, y = grid.left + grid.cell_width * column, grid.top + grid.cell_height * row
            flow = by_pair.get((source, destination))
            if source == destination and source is not None:
                yield Markup('<rect class="home" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>').format(
                    x + 1, y + 1, grid.cell_width - 2, grid.cell_height - 2
                )
            else:
                frame = Markup('<rect class="cell" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')
                yield frame.format(x + 1, y + 1, grid.cell_width - 2, grid.cell_height - 2)
                yield from _bar(grid, x, y, flow, most)
            if grid.numbered:
                number = "–" if flow is None else human_bytes(flow.size_bytes)
                yield text(x + 6, y + 18, number, "start", "number")


def _bar(grid: _Grid, x: float, y: float, flow: RackFlow | None, most: int) -> Iterator[Markup]:
    """The bytes of a cell, divided by basis."""
    if flow is None or not most:
        return
    top, height = (y + 26, 12.0) if grid.numbered else (y + 3, grid.cell_height - 6)
    left, full = x + (6 if grid.numbered else 3), grid.cell_width - (12 if grid.numbered else 6)
    for basis in BASES:
        size = flow.by_basis.get(basis, 0)
        if size:
            width = full * size / most
            rect = Markup('<rect class="flow {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>')
            yield rect.format(basis, left, top, width, height)
            left += width
