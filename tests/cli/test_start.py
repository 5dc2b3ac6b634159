"""The first keystrokes: help and versions are printed at once, and commands import only what they use."""

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rackspan.cli import command_tree, main, output, report
from rackspan.cli.commands import COMMANDS
from rackspan.cli.help import summary
from rackspan.kafka_process import TESTED_VERSIONS
from tests.cli.conftest import GOOD, Ran
from tests.waiting import WITHIN_SECONDS

Cli = Callable[..., Ran]


@pytest.mark.parametrize(
    "group",
    [
        (),
        *((name,) for name, command in command_tree().commands.items() if hasattr(command, "commands")),
    ],
)
def test_a_group_without_arguments_prints_its_help_and_that_is_no_error(cli: Cli, group: tuple[str, ...]) -> None:
    bare = cli(*group)
    assert bare == cli(*group, "--help")
    assert (bare.code, bare.err) == (0, "")
    assert bare.out.lstrip().startswith(f"Usage: {' '.join(('rackspan', *group))}")


def test_the_error_for_a_file_without_its_flag_names_the_flag(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "moment.json").touch()
    ran = cli("audit", "moment.json")
    assert (ran.code, ran.out) == (1, "")
    assert "; for a file, give --snapshot moment.json; see rackspan audit --help" in ran.err
    assert "--snapshot" not in cli("config", "show", "moment.json").err
    assert "--snapshot" not in cli("place", "create", "orders").err


def test_help_has_a_section_for_each_purpose_and_every_command_in_one(cli: Cli) -> None:
    lines = cli("--help").out.splitlines()
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles == [
        "Options:", "See:", "Place and move:", "Guard writes:", "Kafka Streams:", "A fleet, on Spark:", "Set up and develop:",
    ]  # fmt: skip
    assert {line.split()[0] for line in lines if line.startswith("  ") and line[2:3].isalpha()} >= set(COMMANDS)


def test_the_help_of_a_command_begins_as_the_list_of_commands_says() -> None:
    commands = command_tree().commands
    assert {name: summary(commands[name].help) for name in COMMANDS} == {
        name: entry.summary for name, entry in COMMANDS.items()
    }


def test_a_command_is_made_once_in_a_process() -> None:
    """Its line, the commands it prints and the schema of its document look it up."""
    assert command_tree().commands["reassign"] is command_tree().commands["reassign"]


def test_the_version_names_the_releases_of_kafka_that_are_tested(cli: Cli) -> None:
    shown = cli("--version").out
    assert shown.startswith("rackspan ")
    assert all(version in shown for version in TESTED_VERSIONS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("rackspan zz", []),
        ("rackspan rea", ["reassign"]),
        ("rackspan reassign ", ["generate", "plan", "lint", "apply", "verify", "cancel", "undo"]),
        ("rackspan audit --snap", ["--snapshot"]),
    ],
)
def test_a_shell_completes_commands_and_options(typed: str, completed: list[str]) -> None:
    variables = {
        "_RACKSPAN_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    program = "from rackspan.cli import run; import sys; sys.argv[0] = 'rackspan'; run()"
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=True,
    )
    assert ran.stdout.split() == completed
    # Commands are listed at each key: none is imported for it.
    assert "rackspan.api" not in ran.stderr or typed != "rackspan zz"


def imported(*words: str | Path) -> set[str]:
    """The modules that a command line imports, in a process of its own."""
    program = (
        "import sys\nfrom rackspan.cli import main\ncode = main(sys.argv[1:])\nprint(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)],
        capture_output=True,
        text=True,
        check=True,
        timeout=WITHIN_SECONDS,
    )
    return set(ran.stderr.split())


@pytest.mark.parametrize("words", [("--help",), ("--version",), ()])
def test_help_imports_no_command(words: tuple[str, ...]) -> None:
    modules = imported(*words)
    assert not modules & {"numpy", "rich", "pydantic", "msgspec", "rackspan.api", "rackspan.model.snapshot"}
    assert not {module for module in modules if module.startswith("rackspan.cli.options")}


@pytest.mark.slow
def test_an_audit_of_a_file_imports_no_planner_client_or_pydantic(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(GOOD))
    modules = imported("audit", "--snapshot", file)
    assert "rackspan.audit.judge" in modules
    unused = (
        "rackspan.plan",
        "rackspan.reassign",
        "rackspan.streams",
        "rackspan.placement",
        "rackspan.client",
        "rackspan.pipeline",
    )
    assert not {
        module for module in modules if module.startswith((*unused, "pydantic.", "pyarrow", "ortools", "jinja2"))
    }


WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys(("pyarrow", "deltalake", "pyspark", "confluent_kafka", "aiokafka")))
from rackspan.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""The command line where no extra is installed."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("pipeline", "run", "--warehouse", "w"), "spark"),
        (("pipeline", "report", "--warehouse", "w", "--out", "report.html"), "warehouse"),
        (("snapshot", "--snapshot", "moment.json", "--out", "folder"), "warehouse"),
        (("demo",), "clients"),
    ],
)
def test_a_missing_extra_is_one_line_that_says_what_to_install(
    words: tuple[str, ...], extra: str, tmp_path: Path
) -> None:
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
    assert f"pip install '.[{extra}]' in a checkout of rackspan" in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--snapshot", "moment.json"),
        ("outage", "--snapshot", "moment.json"),
        ("acks", "harden", "--snapshot", "moment.json"),
        ("reassign", "plan", "--snapshot", "moment.json", "--drain", "4"),
        ("restart", "plan", "--snapshot", "moment.json"),
        (
            "place",
            "create",
            "--snapshot",
            "moment.json",
            "--topic",
            "n",
            "--partitions",
            "6",
            "--replication-factor",
            "3",
        ),
    ],
)
def test_what_the_default_install_is_for_needs_no_extra(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert ran.returncode in (0, 2)
    assert ran.stdout
    assert "rackspan:" not in ran.stderr


@pytest.mark.slow
def test_an_embedded_cluster_needs_no_extra() -> None:
    program = WITHOUT_EXTRAS.replace("from rackspan.cli import main\nsys.exit(main(sys.argv[1:]))\n", "")
    program += "from rackspan.cluster import EmbeddedCluster\nwith EmbeddedCluster(racks=3, brokers=3): pass\n"
    subprocess.run([sys.executable, "-c", program], timeout=WITHIN_SECONDS, check=True)


def test_help_is_printed_whatever_the_environment_sets(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RACKSPAN_TIMEOUT", "soon")
    ran = cli("audit", "--help")
    assert (ran.code, ran.err) == (0, "")
    refused = cli("audit", "--bootstrap-server", "h:1")
    assert refused.code == 1
    assert "(env var: 'RACKSPAN_TIMEOUT')" in refused.err


def test_ctrl_c_and_a_pipe_that_was_closed_end_as_the_shell_expects(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    discarded: list[None] = []
    monkeypatch.setattr(output, "discard_standard_output", lambda: discarded.append(None))
    assert (report(KeyboardInterrupt()), len(discarded)) == (130, 0)
    assert capsys.readouterr().err == "interrupted\n"
    assert (report(BrokenPipeError()), len(discarded)) == (141, 1)
    assert capsys.readouterr().err == ""


def test_a_disk_that_is_full_when_the_output_is_flushed_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "discard_standard_output", lambda: None)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Full())
        code = main(["schema", "audit"])
    assert code == 1
    assert "No space left on device" in capsys.readouterr().err
