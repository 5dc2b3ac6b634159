"""The folder of rackspan demo. What the demo does is tested in tests/demo."""

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import Ran

Cli = Callable[..., Ran]


def test_an_existing_folder_is_left_as_it_is_and_the_new_one_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def demo(out: Path, _progress: Callable[[str], None], *, kafka: bool) -> SimpleNamespace:
        written.append((out, kafka))
        loss = SimpleNamespace(racks=("r2",), survived=True, total=lambda _state: 0)
        return SimpleNamespace(
            predicted=loss, two_racks=None, acknowledged=1, missing=[], report=out / "report.html", warehouse=out
        )

    monkeypatch.setattr("rackspan.demo.run_demo", demo)
    for name in ("here", "here-2"):
        (tmp_path / name).mkdir()
    ran = cli("demo", "--out", tmp_path / "here")
    assert ran.code == 0
    assert written == [(tmp_path / "here-3", False)]
    assert "1 records acknowledged, none missing afterwards." in ran.out.splitlines()
    assert f"Report: {tmp_path / 'here-3' / 'report.html'}" in ran.out.splitlines()
    assert f"{tmp_path / 'here'} exists already: everything is written to {tmp_path / 'here-3'}" in ran.err
    assert list((tmp_path / "here").iterdir()) == []
