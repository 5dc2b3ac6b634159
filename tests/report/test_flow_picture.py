"""The bytes from rack to rack as a picture: what it shows is what the flows have, and its text fits."""

import pytest

from rackspan.report import page, svg, words
from rackspan.report.flow_picture import flow_picture
from rackspan.report.traffic import RackFlow
from rackspan.text import human_bytes
from rackspan.traffic import Basis
from tests.report import story
from tests.report.html_checks import Element, drawn

WIDE, NARROW = 1040, 343
RACKS = {
    "three": ("r1", "r2", "r3"),
    "unknown": ("r1", None),
    "seven": tuple(f"eu-west-1{letter}" for letter in "abcdefg"),
    "thirty": tuple(f"rack-{number:02}" for number in range(30)),
    "long": ("eu-central-1b" * 9, "us-west-2a" * 12),
}


def picture(flows: tuple[RackFlow, ...], width: int) -> Element:
    return drawn(str(flow_picture(flows, "x", width))).all("svg")[0]


def number(element: Element, name: str) -> float:
    return float(element.attributes[name])


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", RACKS)
def test_the_width_of_each_bar_is_to_the_scale_of_its_bytes(name: str, width: int) -> None:
    flows = story.traffic(RACKS[name]).flows
    crossing = [flow for flow in flows if flow.crosses is not False]
    most = max(flow.size_bytes for flow in crossing)
    bars = picture(flows, width).all("rect", "flow")
    assert len(bars) == len(crossing)
    full = max(number(bar, "width") for bar in bars)
    for bar, flow in zip(bars, crossing, strict=True):
        assert bar.kinds[1] in flow.by_basis
        assert number(bar, "width") == pytest.approx(full * flow.size_bytes / most, abs=0.15)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("name", RACKS)
def test_everything_is_within_the_picture_and_no_text_covers_the_next_cell(name: str, width: int) -> None:
    root = picture(story.traffic(RACKS[name]).flows, width)
    # Thirty racks are wider than a phone, with lines that can be read.
    assert number(root, "width") <= width or (name, width) == ("thirty", NARROW)
    assert min(number(cell, "height") for cell in root.all("rect", "cell")) >= 12
    for rect in root.all("rect"):
        assert number(rect, "x") >= 0
        assert number(rect, "x") + number(rect, "width") <= number(root, "width") + 0.1
        assert number(rect, "y") + number(rect, "height") <= number(root, "height") + 0.1
    assert {text.attributes["text-anchor"] for text in root.all("text")} == {"start"}
    upright = {text for group in root.all("g") for text in map(id, group.all("text"))}
    for text in root.all("text"):
        ends = number(text, "x") + len(text.text) * svg.CHARACTER
        assert number(text, "y") <= number(root, "height")
        if id(text) in upright:
            assert len(text.text) * svg.CHARACTER <= number(text, "y")
        else:
            assert ends <= number(root, "width") + 1
    numbers = root.all("text", "number")
    cells = root.all("rect", "cell") + root.all("rect", "home")
    for text in numbers:
        (cell,) = [
            cell
            for cell in cells
            if number(cell, "x") <= number(text, "x") < number(cell, "x") + number(cell, "width")
            and number(cell, "y") <= number(text, "y") < number(cell, "y") + number(cell, "height")
        ]
        assert number(text, "x") + len(text.text) * svg.CHARACTER <= number(cell, "x") + number(cell, "width")


def test_a_picture_of_many_racks_has_the_names_of_its_columns_upright() -> None:
    groups = picture(story.traffic(RACKS["thirty"]).flows, NARROW).all("g")
    assert [text.text for group in groups for text in group.all("text")] == list(RACKS["thirty"])
    assert all("rotate(-90 " in group.attributes["transform"] for group in groups)


def test_each_cell_has_the_bytes_of_its_pair_and_a_bar_of_each_basis() -> None:
    flows = (
        RackFlow("a", "a", {"derived": 5 * 2**20}),
        RackFlow("a", "b", {"estimated": 2**20, "measured": 3 * 2**20}),
        RackFlow(None, "b", {"derived": 2**20}),
    )
    root = picture(flows, WIDE)
    shown = [text.text for text in root.all("text", "number")]
    assert shown == [human_bytes(5 * 2**20), "4.0 MiB", *["–"] * 5, "1.0 MiB", "–"]
    assert [bar.kinds[1] for bar in root.all("rect", "flow")] == ["measured", "estimated", "derived"]
    # The most between two racks fills its cell, however much stays in a rack.
    full = sum(number(bar, "width") for bar in root.all("rect", "flow")[:2])
    assert full == pytest.approx(number(root.all("rect", "cell")[0], "width") - 10, abs=0.15)
    assert len(root.all("rect", "home")) == 2
    assert [text.text for text in root.all("text", "rack")] == ["a", "a", "b", "b", "not known", "not known"]
    assert root.all("desc")[0].text == "Most from a to b: 4.0 MiB."


def test_where_nothing_crosses_there_is_no_bar() -> None:
    root = picture((RackFlow("a", "a", {"derived": 7}), RackFlow("b", "a", {"derived": 0})), NARROW)
    assert root.all("rect", "flow") == []
    assert root.all("desc")[0].text == "Nothing crossed racks, as far as bytes are known."


def test_every_basis_has_a_place_and_a_meaning_so_that_the_columns_of_racks_in_full_add_up() -> None:
    flows = [RackFlow("r1", "r1", {basis.value: 2**number for number, basis in enumerate(Basis)})]
    assert sum(size for _, size in page.bases(flows)) == flows[0].size_bytes
    assert words.BASIS_MEANING.keys() == {basis.value for basis in Basis}
