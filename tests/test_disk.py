from pathlib import Path

import pytest

from rackspan.disk import replace_file, writing_output
from rackspan.errors import UsageError


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
