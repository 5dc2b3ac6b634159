from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.model import RackId
from rackspan.report import render, write_report
from tests.report import story
from tests.report.story import TopicPlan, report_by_hand

DATA = report_by_hand([story.safe_cluster()])


def test_the_file_is_the_page(tmp_path: Path) -> None:
    write_report(DATA, tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "report.html").read_text(encoding="utf-8") == render(DATA)


def test_an_older_report_is_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("yesterday's")
    write_report(DATA, path)
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_failed_write_leaves_the_older_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("yesterday's")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(
        UsageError, match=r"report\.html: cannot be written: No space left on device; choose another --out"
    ):
        write_report(DATA, path)
    assert path.read_text() == "yesterday's"
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_path_below_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        write_report(DATA, tmp_path / "file" / "report.html")


def test_a_name_that_utf_8_cannot_hold_does_not_prevent_the_report(tmp_path: Path) -> None:
    cluster = story.snapshot([TopicPlan("orders", [[1]])], brokers={1: RackId("r\udc80")})
    write_report(report_by_hand([cluster]), tmp_path / "report.html")
    assert "rack r?" in (tmp_path / "report.html").read_text(encoding="utf-8")
