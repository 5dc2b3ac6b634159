"""The README's pictures are those of the figures beside them."""

import json
import re
from typing import Any

import pytest

from tools import pictures


@pytest.fixture(scope="module")
def figures() -> Any:
    return json.loads(pictures.FIGURES.read_text(encoding="utf-8"))


def test_the_pictures_are_drawn_from_the_figures(figures: Any) -> None:
    for name, drawn in (("cost", pictures.cost_picture(figures)), ("time", pictures.time_picture(figures))):
        assert (pictures.FOLDER / f"streams-{name}.svg").read_text(encoding="utf-8") == drawn


def test_every_point_lies_inside_the_axes(figures: Any) -> None:
    for row in figures["time"]:
        assert pictures.LEFT <= pictures._x(row["tasks"]) <= pictures.WIDTH - pictures.RIGHT
        for seconds in (row["rackspan_seconds"], row.get("kafka_seconds"), row.get("kafka_not_within_seconds")):
            assert seconds is None or pictures.TOP <= pictures._y(seconds) <= pictures.HEIGHT - pictures.BOTTOM


def test_every_figure_stands_with_the_run_that_measured_it(figures: Any) -> None:
    for row in figures["time"]:
        size = f"{row['tasks']}x{row['clients']}"
        assert re.fullmatch(rf"python -m benchmarks\._streams_figures \d+ {size}", row["command"])
        assert re.fullmatch(r"[0-9a-f]{7,}(-dirty)?", row["commit"])
        assert row["load"] >= 0
        # A figure typed by hand has no more digits than a person writes.
        assert all(round(row[key], 2) != row[key] for key in ("rackspan_seconds", "kafka_seconds") if row.get(key))
        if row.get("kafka_seconds"):
            assert row["kafka_runs"] >= 1
            assert row["kafka_first_run_seconds"] > 0


def test_a_size_that_kafka_did_not_finish_is_drawn_as_such() -> None:
    row = {"tasks": 1000, "strategy": "min_traffic", "rackspan_seconds": 0.002}
    unfinished = {"time": [{**row, "kafka_seconds": None, "kafka_not_within_seconds": 400}]}
    with_kafka = {"time": [{**row, "kafka_seconds": 218.0}]}
    assert "not finished in 400 s" in pictures.time_picture(unfinished)
    assert "not finished" not in pictures.time_picture(with_kafka)
