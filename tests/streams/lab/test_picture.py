import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rackspan.streams import replay, settings
from rackspan.streams.lab.picture import GAP, LABELS, PANEL, WIDTH, lab_picture
from rackspan.streams.lab.replay import LabDocument
from tests.streams.problems import problem

SVG = "{http://www.w3.org/2000/svg}"


def replayed(*names: str) -> LabDocument:
    chosen = settings([], [], [])
    return replay({name: problem(Random(at), standbys=1) for at, name in enumerate(names)}, chosen)


def parsed(document: LabDocument) -> ElementTree.Element:
    return ElementTree.fromstring(lab_picture(document))  # noqa: S314 - our own picture


@pytest.mark.slow
def test_every_number_of_the_table_is_in_the_picture() -> None:
    document = replayed("one", "two")
    drawn = parsed(document)
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    for drawn_problem in document["problems"]:
        for run in drawn_problem["runs"]:
            assert f"{run['cross_rack']['active']}, {run['cross_rack']['standby']}" in texts
            assert str(run["moved"]["in_all"]) in texts


@pytest.mark.slow
def test_bars_are_to_one_scale_and_inside_the_picture() -> None:
    document = replayed("one")
    drawn = parsed(document)
    bars = [float(bar.attrib["width"]) for bar in drawn.iter(f"{SVG}rect") if bar.attrib["class"] == "moved"]
    moved = [run["moved"]["in_all"] for run in document["problems"][0]["runs"]]
    scale = max(bars) / max(moved)
    assert all(abs(bar - count * scale) < 0.06 for bar, count in zip(bars, moved, strict=True))
    assert all(float(bar.attrib["x"]) + float(bar.attrib["width"]) < WIDTH for bar in drawn.iter(f"{SVG}rect"))


def test_each_number_stands_behind_its_bar_and_the_standbys_behind_the_active_tasks() -> None:
    """By hand: 3 and 1 partitions across racks are the longest of the first panel, 4 tasks moved of the second."""
    run = {
        "assignor": "ha", "strategy": "min_traffic", "traffic_cost": 10, "non_overlap_cost": 1, "rounds": 2,
        "cross_rack": {"active": 3, "standby": 1}, "moved": {"in_all": 4}, "converged": True,
    }  # fmt: skip
    other = run | {"cross_rack": {"active": 1, "standby": None}, "moved": {"in_all": 0}, "converged": False}
    document: Any = {"problems": [{"problem": "one", "tasks": 4, "clients": 2, "racks": 2, "runs": [run, other]}]}
    drawn = parsed(document)
    bars = [
        (bar.attrib["class"], float(bar.attrib["x"]), float(bar.attrib["width"])) for bar in drawn.iter(f"{SVG}rect")
    ]
    second = LABELS + PANEL + GAP
    wanted: object = [
        (kind, pytest.approx(x, abs=0.06), pytest.approx(width, abs=0.06))
        for kind, x, width in (
            ("across", LABELS, PANEL * 3 / 4), ("standby", LABELS + PANEL * 3 / 4, PANEL / 4), ("moved", second, PANEL),
            ("across", LABELS, PANEL / 4), ("standby", LABELS + PANEL / 4, 0), ("moved", second, 0),
        )
    ]  # fmt: skip
    assert bars == wanted
    places = {text.text: float(text.attrib["x"]) for text in drawn.iter(f"{SVG}text")}
    assert places["3, 1"] == pytest.approx(LABELS + PANEL + 5, abs=0.06)
    assert places["1, ?"] == pytest.approx(LABELS + PANEL / 4 + 5, abs=0.06)
    assert places["4"] == pytest.approx(second + PANEL + 5, abs=0.06)
    assert places["0"] == pytest.approx(second + 5, abs=0.06)
    assert {"2", "2+", "10/1", "ha, min_traffic", "one: 4 tasks, 2 clients, 2 racks"} <= places.keys()
    assert drawn.attrib["aria-label"].startswith("ha min_traffic: 3 partitions across racks, 4 tasks moved, 2 rounds; ")


def test_a_problem_without_runs_has_its_heading() -> None:
    document: Any = {"problems": [{"problem": "one", "tasks": 4, "clients": 2, "racks": 2, "runs": []}]}
    assert "one: 4 tasks" in lab_picture(document)


def test_names_are_escaped() -> None:
    drawn = parsed(replayed('<script>"&'))
    assert any((text.text or "").startswith('<script>"&:') for text in drawn.iter(f"{SVG}text"))


@pytest.mark.slow
def test_equal_documents_give_equal_pictures() -> None:
    assert lab_picture(replayed("one")) == lab_picture(replayed("one"))


def test_the_committed_picture_is_the_one_that_its_figures_give() -> None:
    folder = Path(__file__).resolve().parents[3] / "docs" / "pictures"
    figures = json.loads((folder / "streams.json").read_text(encoding="utf-8"))
    drawn = lab_picture({"problems": [figures["cost"]]})
    assert drawn == (folder / "streams-cost.svg").read_text(encoding="utf-8"), "draw it again: python -m tools.pictures"
