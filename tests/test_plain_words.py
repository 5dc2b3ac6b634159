import pytest

from tools.plain_words import complaints


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
