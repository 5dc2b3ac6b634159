"""Runs the command line in this process, in an empty folder, with no settings but those a test writes."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rackspan.cli import main
from rackspan.cli.output import documents

GOOD: dict[str, Any] = {
    "version": 1,
    "cluster_id": "5L6g3nShT-eMCtK--X86sw",
    "taken_at": "2026-11-21T02:00:00Z",
    "controllers": [{"id": 1, "rack": "r1"}, {"id": 2, "rack": "r2"}, {"id": 3, "rack": "r3"}],
    "brokers": [{"id": broker, "rack": f"r{(broker - 1) % 3 + 1}"} for broker in range(1, 7)],
    "topics": [
        {
            "name": "orders",
            "config": {"min.insync.replicas": "2"},
            "partitions": [
                {"partition": 0, "leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3]},
                {"partition": 1, "leader": 5, "replicas": [5, 6, 4], "isr": [5, 6, 4]},
            ],
        }
    ],
}


@dataclass(frozen=True)
class Ran:
    """One command line: its exit code and its two outputs."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def cli(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    documents_validated: None,
) -> Callable[..., Ran]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("NO_COLOR", "1")
    # Tests compare whole lines.
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(documents, "PIPED_WIDTH", 1_000_000)

    def run(*words: str | Path) -> Ran:
        code = main([str(word) for word in words])
        output = capsys.readouterr()
        return Ran(code, output.out, output.err)

    return run


@pytest.fixture(autouse=True)
def known_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    """A style that Rich does not know fails, which else is drawn as plain text without a word."""
    style_of = Console.get_style
    monkeypatch.setattr(Console, "get_style", lambda console, name, default=None: style_of(console, name))


@pytest.fixture
def write(tmp_path: Path) -> Callable[[object], Path]:
    """A snapshot file of the given document."""

    def written(document: object) -> Path:
        path = tmp_path / "moment.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
        return path

    return written


def good(**partition: Any) -> dict[str, Any]:
    """The good cluster, its first partition changed."""
    document: dict[str, Any] = json.loads(json.dumps(GOOD))
    document["topics"][0]["partitions"][0].update(partition)
    return document
