"""docs/settings.md has the keys that the settings code accepts, with examples that it accepts."""

import re
from pathlib import Path

import pytest

from rackspan.cli import command_tree
from rackspan.cli.commands import leaf_commands
from rackspan.cli.options import settings_table
from rackspan.cli.options.settings import load
from rackspan.cli.options.settings_file import SettingsFile, read_settings_file
from rackspan.errors import UsageError
from tests.reference.pages import codes, rows, section

PAGE = "settings.md"
TABLES = {
    "Above all tables": "{}",
    "[clusters.NAME]": '[clusters.a]\nbootstrap-server = "a:1"\n{}',
    '[topics."NAME"]': '[topics."a"]\n{}',
    "[brokers]": "[brokers]\n{}",
    "[racks]": "[racks]\n{}",
}
"""The headings of the page, and a file with a line of that table."""


def documented(heading: str) -> dict[str, str]:
    """The example of each key."""
    return {
        codes(cells[0])[0]: codes(cells[1])[0] for cells in rows(section(PAGE, heading)) if cells[0].startswith("`")
    }


def read(tmp_path: Path, heading: str, line: str) -> SettingsFile:
    content = TABLES[heading].format(line)
    if line.startswith("bootstrap-server") and heading == "[clusters.NAME]":
        content = f"[clusters.a]\n{line}"
    (tmp_path / "rackspan.toml").write_text(content)
    return read_settings_file(tmp_path / "rackspan.toml")


def test_no_command_declares_a_setting_in_its_own_way() -> None:
    declared = {f"--{setting.key}": setting for setting in settings_table.IN_FILE}
    found = set()
    for words, command in leaf_commands(command_tree()):
        for option in command.params:
            for setting in [declared[flag] for flag in option.opts if flag in declared]:
                assert option.envvar == setting.variable, words
                found.add(setting.key)
    assert {f"--{key}" for key in found} == set(declared)


@pytest.mark.parametrize("heading", TABLES)
def test_every_documented_key_is_accepted_with_its_example(tmp_path: Path, heading: str) -> None:
    keys = documented(heading)
    assert keys
    for key, example in keys.items():
        read(tmp_path, heading, f"{key} = {example}")


@pytest.mark.parametrize("heading", TABLES)
def test_the_page_has_every_key_that_is_accepted(tmp_path: Path, heading: str) -> None:
    """An unknown key is refused with those that there are."""
    with pytest.raises(UsageError) as refused:
        read(tmp_path, heading, "no-such-key = 1")
    known = re.sub(r"^.*; there (?:are|is) ", "", str(refused.value))
    assert set(known.split(", ")) - {"topics", "controllers", "brokers", "racks", "clusters"} == set(
        documented(heading)
    )


def test_the_example_of_the_page_is_accepted(tmp_path: Path) -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", section(PAGE, "An example"), re.DOTALL)
    (tmp_path / "rackspan.toml").write_text(example)
    found = read_settings_file(tmp_path / "rackspan.toml")
    assert found.clusters["prod-eu"].excluded_brokers == frozenset({4})
    assert found.clusters["prod-eu"].controllers == {3000: "eu-1a"}


def test_the_page_says_where_the_files_are(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for = section(PAGE, "Where it is looked for")
    monkeypatch.setenv("XDG_CONFIG_HOME", "$XDG_CONFIG_HOME")
    assert [f"`{path}`" in looked_for for path in load().places] == [True, True]
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", lambda: Path("~"))
    assert f"`{load().places[1]}`" in looked_for
