"""Every command of rackspan on a page is run by a test, or marked as an example; every one names what the program has.

Above the block of an example stands `<!-- example: WHY IT IS NOT RUN -->`, which no renderer shows.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackspan.cli import command_tree
from tests.how_to.page import Command, read

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(<!-- example: \S[^\n]*-->\n)?^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:^|(?<!from)[\s\"'`])rackspan (?!-|does )((?:[^\n\\`\"']|\\\n)*)", re.MULTILINE)
SHELLS = {"", "sh", "bash", "console"}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_command_is_run_or_marked_as_an_example(path: Path) -> None:
    assert not_run(path) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_command_names_commands_and_options_of_the_program(path: Path) -> None:
    tree = command_tree()
    wrong = {words: fault for words in written(path) if (fault := fault_of(tree, words.split()))}
    assert wrong == {}


@pytest.mark.parametrize(
    ("block", "count"),
    [
        ("```sh\nrackspan audit\n```", 1),
        ("```\nrackspan audit --snapshot a.json   # why\n```", 1),
        ("```sh\nmake demo; rackspan --version\n```", 1),
        ("<!-- example: it needs a cluster -->\n```sh\nrackspan audit\n```", 0),
        ("```text\nrackspan audit\n```", 0),
        ("```console\n$ rackspan audit\n```", 0),
    ],
)
def test_of_a_page_in_docs_the_console_is_run(block: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "page.md"
    page.write_text(f"# Page\n\n{block}\n")
    assert len(not_run(page)) == count


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("audit --snapshot FILE", None),
        ("place create|extend SOURCE --topic T", None),
        ("reassign apply|verify SOURCE --plan FILE", None),
        ("adit", "no command adit"),
        ("reassign undone", "no command undone"),
        ("audit --snapshots FILE", "no option --snapshots"),
    ],
)
def test_a_misspelled_word_is_named(words: str, fault: str | None) -> None:
    assert fault_of(command_tree(), words.split()) == fault


def not_run(path: Path) -> list[str]:
    """The lines in the blocks of a page that start rackspan, and that neither the tests of pages run nor a mark excuses."""
    ran = {step.line for step in read(path).steps if isinstance(step, Command)} if "docs" in path.parts else set()
    return [
        line
        for mark, language, body in BLOCK.findall(path.read_text(encoding="utf-8"))
        if not mark and language in SHELLS and not (language == "console" and ran)
        for line in body.splitlines()
        if re.search(r"(?:^|[$;|&] *)rackspan ", line)
    ]


def written(path: Path) -> Iterator[str]:
    """What follows `rackspan` in the code of a page, in blocks and between backticks."""
    text = path.read_text(encoding="utf-8")
    for _, _, body in BLOCK.findall(text):
        yield from (re.split(r" [#|>] ?", re.sub(r"\\\n", " ", match))[0] for match in COMMAND.findall(body))
    yield from re.findall(r"`rackspan (?!-)([^`]+)`", BLOCK.sub("", text))


def fault_of(tree: Any, words: list[str]) -> str | None:
    """The first word that the program does not have: a command, or an option of the command."""
    if not words or not re.match(r"[a-z]", words[0]):
        return None
    commands = [tree]
    for word in words:
        names = re.sub(r"[.,;:)]+$", "", word).replace("\\", "").split("|")
        groups = [command for command in commands if getattr(command, "commands", None)]
        if word.startswith("-") or not re.fullmatch(r"[a-z-]+", names[0]) or not groups:
            continue
        found = [group.commands[name] for group in groups for name in names if name in group.commands]
        if not found:
            return f"no command {word}"
        commands = found
    options = {flag for command in commands for it in command.params for flag in (*it.opts, *it.secondary_opts)}
    known = options | {flag for it in tree.params for flag in it.opts} | {"--help", "-h"}
    flags = [flag for word in words for flag in re.findall(r"^\[?(--?[a-z][a-z-]*)", word)]
    return next((f"no option {flag}" for flag in flags if flag not in known), None)
