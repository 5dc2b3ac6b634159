import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.plain_words import IN_MESSAGES, ROOT, complaints


@pytest.mark.parametrize(
    "text",
    [
        "class FetchAnswer: ...\n",
        "asked_racks = 1\n",
        "def f(seen: int) -> None: ...\n",
        "x = 1  # the broker is told later\n",
        '"""A room of brokers."""\n',
        'OPTION = Option(help="whoever is asked")\n',
        "taken = source.read()\n",
    ],
)
def test_a_word_is_found_in_names_comments_docstrings_and_help(text: str) -> None:
    assert list(complaints("src/rackspan/a.py", text))


@pytest.mark.parametrize("phrase", ["answered", "front pages", "late names", "carried", "availability zone", "taken"])
def test_a_word_is_found_however_a_name_is_written(phrase: str) -> None:
    """A file in which no word stands is not looked at more closely, so that first look must miss no spelling."""
    words = phrase.split()
    whole = ["_".join(words), "_".join(words).upper(), f"_{'_'.join(words)}_", "".join(map(str.title, words))]
    longer = [f"x_{whole[0]}_2", f"x{whole[3]}Y", f"HTTP{whole[3]}", f"ABC_{whole[1]}", f"X{whole[3]}List"]
    for name in whole if phrase == "taken" else whole + longer:
        assert list(complaints("src/rackspan/a.py", f"{name} = 1\n")), name
        assert list(complaints(f"src/rackspan/{name}.py", "")), name


@pytest.mark.parametrize(
    "text",
    [
        'message = "no answer"\n',
        '"""`said` is a field of the format; the leader has taken over."""\n',
        "taken_at = 1\n",
        '"""Reads the wall clock."""\n',
    ],
)
def test_output_and_quoted_code_are_left_alone(text: str) -> None:
    assert list(complaints("src/rackspan/a.py", text)) == []


def test_pages_are_read_without_their_code_and_quotations() -> None:
    page = "The broker is told.\n```\ntold\n```\n`told`, “told”\n"
    assert list(complaints("docs/a.md", page)) == ["docs/a.md:1: 'told' (1 times): report, send, describe"]


def test_a_file_may_not_be_named_by_such_a_word() -> None:
    assert list(complaints("src/rackspan/answers.py", ""))


A_PHRASE = re.compile(rf"\b(?:{'|'.join(IN_MESSAGES)})\b", re.IGNORECASE)


def _messages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every string literal, docstrings apart; of an f-string its fixed parts."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documentation = {
        id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def test_no_message_has_a_phrase_that_an_operator_reads_twice() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {phrase[0]!r}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, text in _messages(path)
        if (phrase := A_PHRASE.search(text))
    ]
    assert found == []


@pytest.mark.parametrize("text", ["fix it; correct it and run again", "make it anew", "Nobody answered"])
def test_the_phrases_are_found(text: str) -> None:
    assert A_PHRASE.search(text)
