"""The first keystrokes: help and versions are printed at once, and commands import only what they use."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rackspan.cli import command_tree
from rackspan.cli.commands import COMMANDS
from rackspan.cli.help import summary
from rackspan.kafka_process import TESTED_VERSIONS
from tests.cli.conftest import GOOD, Ran

Cli = Callable[..., Ran]


@pytest.mark.parametrize(
    "group",
    [
        (),
        *(
            (name,)
            for name, command in command_tree().commands.items()
            if hasattr(command, "commands") and name != "gateway"
        ),
    ],
)
def test_a_group_without_arguments_prints_its_help_and_that_is_no_error(cli: Cli, group: tuple[str, ...]) -> None:
    bare = cli(*group)
    assert bare == cli(*group, "--help")
    assert (bare.code, bare.err) == (0, "")
    assert bare.out.lstrip().startswith(f"Usage: {' '.join(('rackspan', *group))}")


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


def test_the_version_names_the_releases_of_kafka_that_are_tested(cli: Cli) -> None:
    shown = cli("--version").out
    assert shown.startswith("rackspan ")
    assert all(version in shown for version in TESTED_VERSIONS)


def imported(*words: str | Path) -> set[str]:
    """The modules that a command line imports, in a process of its own."""
    program = (
        "import sys\nfrom rackspan.cli import main\ncode = main(sys.argv[1:])\nprint(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], capture_output=True, text=True, check=True, timeout=60
    )
    return set(ran.stderr.split())


@pytest.mark.parametrize("words", [("--help",), ("--version",), ()])
def test_help_imports_no_command(words: tuple[str, ...]) -> None:
    modules = imported(*words)
    assert not modules & {"numpy", "rich", "pydantic", "msgspec", "rackspan.api", "rackspan.model.snapshot"}
    assert not {module for module in modules if module.startswith("rackspan.cli.options")}


def test_an_audit_of_a_file_imports_no_planner_client_or_pydantic(tmp_path: Path) -> None:
    import json

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
