import io
from pathlib import Path
from typing import Any

import pytest

from rackspan.disk import append_line, replace_file, writing_output
from rackspan.errors import UsageError
from tests.power_loss import FlushedFolder


def test_a_write_that_fails_leaves_the_older_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    path.write_text("yesterday's")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with (
        pytest.raises(
            UsageError, match=r"plan\.json: cannot be written: No space left on device; choose another --out"
        ),
        writing_output(path),
    ):
        replace_file(path, "today's")
    assert path.read_text() == "yesterday's"
    assert [one.name for one in tmp_path.iterdir()] == ["plan.json"]


def test_what_utf_8_cannot_hold_is_refused_or_replaced_as_requested(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with pytest.raises(UnicodeEncodeError):
        replace_file(path, "r\udc80")
    assert list(tmp_path.iterdir()) == []
    replace_file(path, "r\udc80", errors="replace")
    assert path.read_text() == "r?"


@pytest.mark.parametrize("before", [{}, {"plan.json": b"yesterday's"}])
def test_a_file_that_was_replaced_is_there_after_a_power_loss_and_whole_at_any_time(
    before: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in before.items():
        (tmp_path / name).write_bytes(content)
    disk = FlushedFolder(tmp_path, monkeypatch)
    observations: list[dict[str, bytes]] = []
    flush = disk._fsync

    def observed(descriptor: int) -> None:
        observations.extend((disk.left(), disk.left_at_best()))
        flush(descriptor)

    monkeypatch.setattr("os.fsync", observed)
    replace_file(tmp_path / "plan.json", "today's")
    after = {"plan.json": b"today's"}
    assert disk.left() == disk.left_at_best() == after
    for files in observations:
        assert files.get("plan.json") in (before.get("plan.json"), b"today's")


def test_a_line_that_was_appended_is_there_after_a_power_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"one\n")
    disk = FlushedFolder(tmp_path, monkeypatch)
    with path.open("ab") as file:
        append_line(file, "two")
        assert disk.left() == {"journal": b"one\ntwo\n"}
        append_line(file, "three")
        assert disk.left() == {"journal": b"one\ntwo\nthree\n"}


class NearlyFull(io.FileIO):
    """Takes a few bytes of each write, as a disk does that is nearly full, and then no more."""

    capacity = 1_000

    def write(self, data: Any, /) -> int:
        if not self.capacity:
            raise OSError(28, "No space left on device")
        written = super().write(memoryview(data)[: min(7, self.capacity)])
        self.capacity -= written
        return written


def test_a_line_is_appended_whole_or_not_at_all(tmp_path: Path) -> None:
    with NearlyFull(tmp_path / "journal", "a") as file:
        append_line(file, "r\u00e4ck " * 9)
        append_line(file, "second")
        file.capacity = 20
        with pytest.raises(OSError, match="No space left on device"):
            append_line(file, "third " * 9)
    *whole, part = (tmp_path / "journal").read_text().split("\n")
    assert whole == ["r\u00e4ck " * 9, "second"]
    assert part == ("third " * 9)[:20]
