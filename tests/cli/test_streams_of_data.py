"""Standard input and output in place of files, and -o csv."""

import csv
import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import GOOD, Ran, good

Cli = Callable[..., Ran]
Write = Callable[[object], Path]

PLAN = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}]}
SPEC = {"brokers": [{"id": 0}, {"id": 1}], "partitions": 2, "replication_factor": 1, "seed": 1}


@pytest.fixture
def standard_input(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    def given(document: object) -> None:
        text = document if isinstance(document, str) else json.dumps(document)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return given


def test_a_snapshot_goes_through_a_pipe(cli: Cli, write: Write, standard_input: Callable[[object], None]) -> None:
    write(good(isr=[1]))
    printed = cli("snapshot", "--snapshot", "moment.json", "--out", "-")
    assert (printed.code, printed.err) == (0, "")
    standard_input(printed.out)
    piped = cli("audit", "--snapshot", "-")
    # Standard input is read once: no command that is printed can repeat it.
    of_file = cli("audit", "--snapshot", "moment.json")
    assert piped == replace(of_file, out=of_file.out.replace(" --snapshot moment.json", ""))
    assert piped.code == 2


@pytest.mark.parametrize(
    ("words", "document"),
    [
        (("place", "plan", "--spec", "-"), SPEC),
        (("reassign", "lint", "--plan", "-", "--snapshot", "moment.json"), PLAN),
        (("reassign", "verify", "--plan", "-", "--snapshot", "moment.json"), PLAN),
    ],
)
def test_a_file_may_be_standard_input(
    cli: Cli, write: Write, standard_input: Callable[[object], None], words: tuple[str, ...], document: object
) -> None:
    write(GOOD)
    Path("file").write_text(json.dumps(document))
    standard_input(document)
    assert cli(*words, "-o", "json") == cli(*(("file" if word == "-" else word) for word in words), "-o", "json")


def test_an_error_names_standard_input(cli: Cli, standard_input: Callable[[object], None]) -> None:
    standard_input("[")
    ran = cli("audit", "--snapshot", "-")
    assert (ran.code, ran.err.startswith("rackspan: standard input: ")) == (1, True)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("reassign", "plan", "--out", "-"),
            "--out -: standard output has the page; use -o json there, or name a file",
        ),
        (("acks", "watch"), "--snapshot -: standard input does not change; name a file or a cluster to watch"),
    ],
)
def test_where_a_stream_makes_no_sense_it_is_refused(
    cli: Cli, standard_input: Callable[[object], None], words: tuple[str, ...], line: str
) -> None:
    standard_input(GOOD)
    ran = cli(*words, "--snapshot", "-")
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
    assert not Path("-").exists()


def test_csv_has_a_row_for_each_finding(cli: Cli, write: Write) -> None:
    write(good(isr=[1]))
    words = ("audit", "--snapshot", "moment.json", "-o")
    rows = list(csv.DictReader(io.StringIO(cli(*words, "csv").out)))
    found = cli(*words, "json").document["findings"]
    assert rows == [{key: "" if value is None else str(value) for key, value in one.items()} for one in found]
    assert rows


def test_csv_of_a_stop_names_the_list_of_each_partition(cli: Cli, write: Write) -> None:
    document = json.loads(json.dumps(GOOD))
    document["topics"][0]["config"]["min.insync.replicas"] = "3"
    ran = cli("restart", "safe", "--snapshot", write(document), "--broker", "1", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["list"], row["topic"], row["partition"]) for row in rows] == [("refuses_writes", "orders", "0")]


def test_csv_of_nothing_is_its_header(cli: Cli, write: Write) -> None:
    write(GOOD)
    ran = cli("reassign", "plan", "--snapshot", "moment.json", "-o", "csv")
    assert (ran.code, ran.out) == (0, "step,topic,partition,replicas,undo\n")


def test_csv_joins_lists_and_empties_null(cli: Cli, write: Write) -> None:
    write(GOOD)
    Path("spec.json").write_text(json.dumps({**SPEC, "replication_factor": 2, "partitions": 1}))
    ran = cli("place", "plan", "--spec", "spec.json", "-o", "csv")
    assert ran.out in ('topic,partition,replicas\n,0,"0,1"\n', 'topic,partition,replicas\n,0,"1,0"\n')
