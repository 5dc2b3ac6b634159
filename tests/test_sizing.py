"""docs/sizing.md has the figures of the cost model as it stands."""

from pathlib import Path

import pytest

from benchmarks import _cost_model
from benchmarks._cost_model import Fleet, bytes_a_day, task_seconds_a_day

PAGE = Path(__file__).parents[1] / "docs" / "sizing.md"


def test_the_table_of_the_page_is_what_the_model_prints(capsys: pytest.CaptureFixture[str]) -> None:
    _cost_model.main()
    assert capsys.readouterr().out in PAGE.read_text(encoding="utf-8")


def test_costs_are_linear_in_clusters_and_a_snapshot_without_changes_is_not_judged() -> None:
    one, two = (Fleet(clusters, 10_000, 300, collectors=0, runs_a_day=0) for clusters in (1, 2))
    assert bytes_a_day(two) == pytest.approx(2 * bytes_a_day(one))
    quiet, hourly = Fleet(1, 10_000, 300, changing=0), Fleet(1, 10_000, 3_600)
    assert task_seconds_a_day(quiet) == pytest.approx(task_seconds_a_day(hourly))
