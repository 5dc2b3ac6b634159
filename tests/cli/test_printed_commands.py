"""A command that is printed repeats the flags by which its output came about, and can be run as it stands."""

import html
import json
import re
import shlex
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.text import Text
from typer.core import TyperCommand

from rackspan.cli.help import REPEATED
from rackspan.cli.log_format import LogFormat
from rackspan.cli.output import messages
from rackspan.cli.output.printed_commands import runnable, runnable_document, runnable_text
from rackspan.cli.output.tables import COMMAND
from rackspan.errors import UsageError
from tests.cli.conftest import Ran, good

Cli = Callable[..., Ran]
Write = Callable[[object], Path]

SETTINGS, CLUSTER, WAREHOUSE = "--settings 'my settings.toml'", "--cluster prod", "--warehouse w"
LOGIN, SNAPSHOT, POLICY = "--command-config c.properties", "--snapshot s.json", "--require-controllers"


@pytest.fixture
def given() -> Iterator[Callable[..., None]]:
    def repeated(*flags: str) -> None:
        REPEATED.update({flag.partition(" ")[0]: flag for flag in flags})

    yield repeated
    REPEATED.clear()


@pytest.mark.parametrize(
    ("flags", "text", "printed"),
    [
        ((SETTINGS,), "rackspan reassign plan --topic x", f"rackspan reassign plan {SETTINGS} --topic x"),
        ((CLUSTER, LOGIN), "do: rackspan outage shows more", f"do: rackspan outage {CLUSTER} {LOGIN} shows more"),
        # Once, and not beside another name of a cluster.
        ((CLUSTER,), "rackspan audit --cluster other -o json", "rackspan audit --cluster other -o json"),
        ((CLUSTER,), "rackspan audit --bootstrap-server=h:1", "rackspan audit --bootstrap-server=h:1"),
        ((CLUSTER,), "rackspan audit; rackspan audit", f"rackspan audit {CLUSTER}; rackspan audit {CLUSTER}"),
        # Only what the command takes.
        ((POLICY,), "rackspan audit, then rackspan reassign apply", f"rackspan audit {POLICY}, then rackspan reassign apply"),
        ((CLUSTER, WAREHOUSE), "rackspan pipeline run", f"rackspan pipeline run {WAREHOUSE}"),
        ((SETTINGS,), "rackspan schema", "rackspan schema"),
        # What changes a cluster is not done to a snapshot, nor is a snapshot taken of one.
        ((SNAPSHOT,), "rackspan reassign cancel --in-flight", "rackspan reassign cancel --in-flight"),
        ((SNAPSHOT,), "take it with rackspan snapshot", "take it with rackspan snapshot"),
        # Anywhere in the command, values in quotes included, and not after its end.
        ((WAREHOUSE,), "rackspan pipeline rebuild findings --warehouse w", "rackspan pipeline rebuild findings --warehouse w"),
        ((CLUSTER,), "`rackspan audit` --cluster x", f"`rackspan audit {CLUSTER}` --cluster x"),
        ((CLUSTER,), "rackspan audit. Not --cluster x", f"rackspan audit {CLUSTER}. Not --cluster x"),
        ((CLUSTER,), "rackspan reassign plan --topic 'a; b' --cluster x", "rackspan reassign plan --topic 'a; b' --cluster x"),
        (("--snapshot 'rackspan audit/s.json'",), "rackspan outage", "rackspan outage --snapshot 'rackspan audit/s.json'"),
        # Names of commands that are not to be run, and what is none.
        ((CLUSTER,), "the plan is one of rackspan reassign plan", "the plan is one of rackspan reassign plan"),
        ((CLUSTER,), "see rackspan audit --help", "see rackspan audit --help"),
        ((CLUSTER,), "rackspan reassign pla, my-rackspan audit", "rackspan reassign pla, my-rackspan audit"),
        ((), "rackspan audit", "rackspan audit"),
    ],
)  # fmt: skip
def test_a_printed_command_has_the_flags_that_it_takes(
    given: Callable[..., None], flags: tuple[str, ...], text: str, printed: str
) -> None:
    given(*flags)
    assert runnable(text) == printed
    assert runnable(printed) == printed
    assert runnable_text(Text(text)).plain == printed
    assert runnable_document({"a": [{"remedy": text, "n": 3}], "b": None}) == {"a": [{"remedy": printed, "n": 3}], "b": None}  # fmt: skip


def test_names_of_the_user_are_as_they_are(given: Callable[..., None]) -> None:
    given(CLUSTER)
    row = {"rack": "rackspan audit", "topics": ["rackspan audit"], "remedy": "rackspan audit"}
    assert runnable_document({"findings": [row]}) == {"findings": [{**row, "remedy": f"rackspan audit {CLUSTER}"}]}


def test_a_page_for_a_browser_has_them_once(given: Callable[..., None]) -> None:
    given(SETTINGS, CLUSTER)
    page = runnable("<p>rackspan audit -o json</p>", html.escape)
    assert page == f"<p>rackspan audit --settings &#x27;my settings.toml&#x27; {CLUSTER} -o json</p>"
    assert runnable(page, html.escape) == page


def test_a_command_with_a_value_in_quotes_is_never_wrapped() -> None:
    for command in (
        f"rackspan audit {SETTINGS} --topic 'a b'",
        "kafka-cluster.sh unregister --bootstrap-server h:1 --id 3",
    ):
        assert [found[0] for found in COMMAND.finditer(f"see {command} for more")] == [command]


def test_the_style_of_a_printed_command_stays(given: Callable[..., None]) -> None:
    given(CLUSTER)
    drawn = runnable_text(Text.assemble("by ", ("rackspan audit -o json", "bold")))
    assert drawn.plain == f"by rackspan audit {CLUSTER} -o json"
    assert [drawn.plain[span.start : span.end] for span in drawn.spans if span.style == "bold"] == [
        "rackspan audit",
        " -o json",
    ]


ONE_RACK = good(replicas=[1, 4], isr=[1, 4])


@pytest.mark.parametrize("output", ["human", "json", "yaml", "csv", "html"])
def test_the_remedy_of_an_audit_is_run_as_printed_with_its_settings(
    cli: Cli, write: Write, tmp_path: Path, output: str
) -> None:
    (tmp_path / "other folder").mkdir()
    (tmp_path / "other folder" / "own.toml").write_text('survive = "broker"\n', encoding="utf-8")
    flags = ("--settings", "other folder/own.toml", "--snapshot", write(ONE_RACK).name, "--unracked", "own")
    ran = cli("audit", *flags, "-o", output)
    plain = ran.out.replace("<span>", "").replace("</span>", "").replace("&#39;", "'").replace("&#x27;", "'")
    (command,) = set(re.findall(r"rackspan reassign plan (?:(?!rackspan).)*?--topic orders", " ".join(plain.split())))
    assert command == (
        "rackspan reassign plan --settings 'other folder/own.toml' --snapshot moment.json --unracked own --topic orders"
    )
    planned = cli(*shlex.split(command)[1:], "-o", "json")
    assert planned.document["settings"]["files"] == [str(tmp_path / "other folder" / "own.toml")]


def test_the_lines_of_other_threads_repeat_them_and_are_of_the_log_too(
    given: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    given(WAREHOUSE)
    messages.begin_log(LogFormat.JSON)
    try:
        thread = threading.Thread(target=messages.warn, args=[["damaged; rackspan pipeline check shows what to do"]])
        thread.start()
        thread.join()
    finally:
        messages.begin_log(None)
    line = json.loads(capsys.readouterr().err)
    assert line["message"] == f"damaged; rackspan pipeline check {WAREHOUSE} shows what to do"


HIDDEN = "s3cret"


RUN, COLLECT, AUDIT = ("pipeline", "run"), ("pipeline", "collect"), ("audit",)
LOCATOR, PROPERTIES = "--rack-locator-class", "--rack-locator-properties"


@pytest.mark.parametrize(
    ("words", "flags", "repeated"),
    [
        (RUN, ("--remote", f"sc://h:443/;use_ssl=true;token={HIDDEN}"), ""),
        (RUN, ("--remote", f"sc://h:443/;x-api-key={HIDDEN}"), ""),
        (RUN, ("--remote", "sc://h:443/;use_ssl=true"), " --remote 'sc://h:443/;use_ssl=true'"),
        (RUN, ("--master", f"spark://me:{HIDDEN}@h:7077"), ""),
        (RUN, ("--warehouse", f"s3://key:{HIDDEN}@bucket/w"), ""),
        (RUN, ("--warehouse", f"s3://bucket/w?sig={HIDDEN}"), ""),
        (RUN, ("--warehouse", "abfss://container@account/w"), " --warehouse abfss://container@account/w"),
        (AUDIT, (LOCATOR, "host-pattern", PROPERTIES, "pattern=(.)"), f" {LOCATOR} host-pattern {PROPERTIES} 'pattern=(.)'"),
        (AUDIT, (LOCATOR, "my.racks:Racks", PROPERTIES, f"password={HIDDEN}"), f" {LOCATOR} my.racks:Racks"),
        (AUDIT, (LOCATOR, "command", PROPERTIES, f"command=racks {HIDDEN}"), f" {LOCATOR} command"),
        # Of several clusters none is the one.
        (COLLECT, ("--snapshot", "s.json", "--bootstrap-server", "h:1"), ""),
        (COLLECT, ("--bootstrap-server", "h:1", "--bootstrap-server", "h:2"), ""),
        (COLLECT, ("--bootstrap-server", "h:1"), " --bootstrap-server h:1"),
    ],
)  # fmt: skip
def test_neither_a_value_with_a_credential_nor_one_of_several_clusters_is_repeated(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], flags: tuple[str, ...], repeated: str
) -> None:
    def refuse(*_: object) -> None:
        raise UsageError(f"damaged; rackspan {' '.join(words)}")

    monkeypatch.setenv("RACKSPAN_WAREHOUSE", "w")
    monkeypatch.setattr(TyperCommand, "invoke", refuse, raising=False)
    assert cli(*words, *flags).err == f"rackspan: damaged; rackspan {' '.join(words)}{repeated}\n"


def test_variables_and_files_are_in_force_for_a_printed_command_anyway(
    cli: Cli, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RACKSPAN_SNAPSHOT", str(write(ONE_RACK)))
    findings = json.loads(cli("audit", "-o", "json").out)["findings"]
    remedies = {finding["remedy"] for finding in findings}
    assert "rackspan reassign plan --topic orders --replication-factor 3" in remedies


def test_the_line_of_an_error_repeats_them_too(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("", encoding="utf-8")
    ran = cli("pipeline", "table", "findings", "--warehouse", "none", "--settings", "own.toml")
    assert ran.err == (
        "rackspan: none: no such folder; fill it first with rackspan pipeline collect --settings own.toml --warehouse none\n"
    )
    assert cli("pipeline", "table", "findings", "--warehouse", "none").err == (
        "rackspan: none: no such folder; fill it first with rackspan pipeline collect --warehouse none\n"
    )
