"""Every command of rackspan on a page, in a block or in a sentence, is one that there is, with options that it has.

The blocks of docs/how-to that begin with `$` are run besides, with their output (tests/how_to/).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from rackspan.cli import command_tree

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))

_FENCED: Final = re.compile(r"^```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE: Final = re.compile(r"`(rackspan [^`]+)`")
_LINE: Final = re.compile(r"(?:^|[\s\"'(])(?:python -m )?rackspan +([a-z][^|;&#\n]*)", re.MULTILINE)
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def commands(text: str) -> Iterator[str]:
    """What stands after `rackspan` in every command of a page."""
    for block in _FENCED.findall(text):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if re.match(r"(\$ |> |\s*(sudo )?(rackspan|python -m rackspan) )", line):
                yield from _LINE.findall(line)
    for command in _INLINE.findall(_FENCED.sub("", text)):
        yield from _each(" ".join(command.split()[1:]))


def _each(command: str) -> Iterator[str]:
    """`create|extend` of a table as two commands."""
    either = re.search(r"[a-z-]+(?:\\?\|[a-z-]+)+", command)
    names = re.split(r"\\?\|", either[0]) if either else [""]
    return (command.replace(either[0], name) if either else command for name in names)


def mistake(command: str, tree: Any) -> str | None:
    """What is wrong with a command: a name, or an option, that there is not."""
    words, found = command.split(), tree
    while hasattr(found, "commands") and words and re.fullmatch(r"[a-z][a-z-]*", words[0]):
        if words[0] not in found.commands:
            return f"rackspan has no command {words[0]}"
        found = found.commands[words.pop(0)]
    known = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [option for option in _OPTION.findall(" ".join(words)) if option not in {*known, "--help"}]
    return f"{found.name} has no {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_there_with_its_options(page: Path) -> None:
    tree = command_tree()
    text = page.read_text(encoding="utf-8")
    wrong = {command: fault for command in commands(text) if (fault := mistake(command, tree))}
    assert wrong == {}


def test_commands_are_found_in_blocks_and_in_sentences() -> None:
    page = (
        "See `rackspan audit\nSOURCE`.\n```console\n$ rackspan place \\\n    create orders\nrackspan: a message\n```\n"
    )
    page += r"| `rackspan reassign undo\|verify -o json` |"
    assert [" ".join(command.split()) for command in commands(page)] == [
        "place create orders",
        "audit SOURCE",
        "reassign undo -o json",
        "reassign verify -o json",
    ]


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("audit --topic x", None),
        ("reassign plan --nosuch 3", "plan has no --nosuch"),
        ("reassing plan", "rackspan has no command reassing"),
    ],
)
def test_a_command_that_is_not_there_is_found(command: str, fault: str | None) -> None:
    assert mistake(command, command_tree()) == fault
