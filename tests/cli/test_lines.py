"""A series of documents, each written when it is there, and the cells of a CSV."""

import json
import re
from collections.abc import Iterator

import pytest

from rackspan.cli import main
from rackspan.cli.log_format import LogFormat
from rackspan.cli.options import Output
from rackspan.cli.output import messages
from rackspan.cli.output.documents import write_line

FIRST = {"event": "started", "brokers": [1, 2], "safe": True, "reason": None, "places": {"1": [0]}, "rows": [{"a": 1}]}


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        (
            Output.JSON,
            [
                '{"event": "started", "brokers": [1, 2], "safe": true, "reason": null, "places": {"1": [0]}, "rows": [{"a": 1}]}'
            ]
            * 2,
        ),
        (Output.HUMAN, ["started"] * 2),
        (
            Output.CSV,
            ["event,brokers,safe,reason,places,rows", *['started,"1,2",true,,"{""1"": [0]}","[{""a"": 1}]"'] * 2],
        ),
        (
            Output.YAML,
            [
                "- event: started",
                "  brokers:",
                "  - 1",
                "  - 2",
                "  safe: true",
                "  reason: null",
                "  places:",
                "    '1':",
                "    - 0",
                "  rows:",
                "  - a: 1",
            ]
            * 2,
        ),
    ],
)
def test_each_document_is_a_line_and_only_the_first_row_has_a_head(
    output: Output, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for first in (True, False):
        write_line(FIRST, output, "started", first=first)
    assert capsys.readouterr().out.splitlines() == lines


def test_a_warning_has_the_name_of_a_topic_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    messages.warn(["topic a:smile:b[red]: hidden\nfrom this user"])
    assert capsys.readouterr().err == "warning: topic a:smile:b[red]: hidden\\nfrom this user\n"


def test_progress_that_names_files_is_one_line_at_every_width(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    line = f"prod: stored as 1 in {'/a-folder' * 9}"
    messages.note(line)
    assert capsys.readouterr().err == f"{line}\n"
    messages.warn([line])
    assert capsys.readouterr().err.count("\n") > 1


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lines of a fixed time, on a narrow screen that is no terminal."""
    monkeypatch.setattr(messages, "_now", lambda: "2026-11-28T12:00:00Z")
    monkeypatch.setenv("COLUMNS", "20")
    yield
    messages.begin_log(None)


def write_lines() -> None:
    messages.note("stored as 1 in w", "Production, Europe")
    messages.warn(["sizes of 1 partition:\nunknown"], "[red]us")
    messages.fail("no broker responded", "us")
    messages.warn(["a warning of no cluster"])
    messages.fail("it ends")


@pytest.mark.usefixtures("log")
def test_a_line_of_a_log_has_its_time_and_its_cluster_and_is_never_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    messages.begin_log(LogFormat.TEXT)
    write_lines()
    assert capsys.readouterr().err.splitlines() == [
        "2026-11-28T12:00:00Z Production, Europe: stored as 1 in w",
        "2026-11-28T12:00:00Z [red]us: warning: sizes of 1 partition:\\nunknown",
        "2026-11-28T12:00:00Z us: error: no broker responded",
        "2026-11-28T12:00:00Z warning: a warning of no cluster",
        "2026-11-28T12:00:00Z rackspan: it ends",
    ]


@pytest.mark.usefixtures("log")
def test_a_line_of_a_log_may_be_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    messages.begin_log(LogFormat.JSON)
    write_lines()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line.pop("time") for line in lines} == {"2026-11-28T12:00:00Z"}
    assert lines == [
        {"level": "info", "cluster": "Production, Europe", "message": "stored as 1 in w"},
        {"level": "warning", "cluster": "[red]us", "message": "sizes of 1 partition:\nunknown"},
        {"level": "error", "cluster": "us", "message": "no broker responded"},
        {"level": "warning", "cluster": None, "message": "a warning of no cluster"},
        {"level": "error", "cluster": None, "message": "it ends"},
    ]


def test_the_time_of_a_line_is_utc() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", messages._now())


def test_a_log_ends_with_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "collect", "--snapshot", "no-such-file", "--warehouse", "/dev/null/w"]) == 1
    messages.note("plain")
    assert capsys.readouterr().err.splitlines()[-1] == "plain"
