"""A series of documents, each written when it is there, and the cells of a CSV."""

import pytest

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
