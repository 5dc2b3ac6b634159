import xml.etree.ElementTree as ElementTree
from random import Random
from typing import Any

from rackspan.streams import replay, settings
from rackspan.streams.lab.picture import WIDTH, lab_picture
from tests.streams.problems import problem

SVG = "{http://www.w3.org/2000/svg}"


def replayed(*names: str) -> dict[str, Any]:
    chosen = settings([], [], [])
    return replay({name: problem(Random(at), standbys=1) for at, name in enumerate(names)}, chosen)


def parsed(document: dict[str, Any]) -> ElementTree.Element:
    return ElementTree.fromstring(lab_picture(document))  # noqa: S314 - our own picture


def test_every_number_of_the_table_is_in_the_picture() -> None:
    document = replayed("one", "two")
    drawn = parsed(document)
    texts = [text.text for text in drawn.iter(f"{SVG}text")]
    for drawn_problem in document["problems"]:
        for run in drawn_problem["runs"]:
            assert f"{run['cross_rack']['active']}, {run['cross_rack']['standby']}" in texts
            assert str(run["moved"]["in_all"]) in texts


def test_bars_are_to_one_scale_and_inside_the_picture() -> None:
    document = replayed("one")
    drawn = parsed(document)
    bars = [float(bar.attrib["width"]) for bar in drawn.iter(f"{SVG}rect") if bar.attrib["class"] == "moved"]
    moved = [run["moved"]["in_all"] for run in document["problems"][0]["runs"]]
    scale = max(bars) / max(moved)
    assert all(abs(bar - count * scale) < 0.06 for bar, count in zip(bars, moved, strict=True))
    assert all(float(bar.attrib["x"]) + float(bar.attrib["width"]) < WIDTH for bar in drawn.iter(f"{SVG}rect"))


def test_names_are_escaped() -> None:
    drawn = parsed(replayed('<script>"&'))
    assert any((text.text or "").startswith('<script>"&:') for text in drawn.iter(f"{SVG}text"))


def test_equal_documents_give_equal_pictures() -> None:
    assert lab_picture(replayed("one")) == lab_picture(replayed("one"))
