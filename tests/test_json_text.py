"""Users' JSON is what Python's json makes of it, or refused in one line. The judge of what is read is json itself."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.json_text import NotJson, parse, shown

characters = st.characters(exclude_categories=["Cs"])
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(characters),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(characters), inner, max_size=4),
    max_leaves=20,
)


@given(documents, st.booleans(), st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]))
def test_a_document_comes_back_however_it_was_saved(document: object, ascii_only: bool, encoding: str) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    assert parse(text.encode(encoding)) == document
    assert parse(text) == document


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "not JSON: Expecting value: line 1 column 1 (char 0); is the file complete?"),
        (b'{"a": 1', "not JSON: Expecting ',' delimiter: line 1 column 8 (char 7); is the file complete?"),
        (b'{"a": "\xff"}', "not JSON: no UTF-8 text (invalid start byte); is it the right file?"),
        (b'{"a": "\xed\xa0\x80"}', "not JSON: no UTF-8 text (invalid continuation byte); is it the right file?"),
        ('"\ud800"', "not JSON: no UTF-8 text (surrogates not allowed); is it the right file?"),
        ("\ufeff{}".encode("utf-16")[:-1], "not JSON: no UTF-8 text (truncated data); is it the right file?"),
        (b"[" * 100_000, "brackets nested too deep; write the file again"),
        (b"{}\n {}", "not one JSON document: more text follows it at line 2 column 2; keep the document that is meant"),
        (b"[NaN]", "NaN is not a JSON number; fix it in the file"),
        (b"[-Infinity]", "-Infinity is not a JSON number; fix it in the file"),
        (b"1" * 5_000, "a number has more than 4,300 digits; fix it in the file"),
        (b'{"a": 1, "b": 2, "a": 3}', 'key "a" occurs twice in one object; leave one of them out'),
        (
            b'{"a":\n "b\\ud800"}',
            "\\ud800 at line 2 column 4 is half of a surrogate pair and not a character; fix it in the file",
        ),
        (b'["\\uD83D\\uDE00\\udE00"]', "\\udE00 at line 1 column 15 is half of a surrogate pair and not a character; fix it in the file"),
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused_in_a_line_that_says_where(content: str | bytes, line: str) -> None:
    with pytest.raises(NotJson) as refused:
        parse(content)
    assert str(refused.value) == line


def test_what_is_no_number_is_null_on_request() -> None:
    assert parse(b"[NaN, -Infinity, 1]", allow_nan=True) == [None, None, 1]


def test_an_escaped_backslash_before_a_u_is_no_escape() -> None:
    assert parse(rb'"\\ud800"') == r"\ud800"


@given(documents)
def test_what_is_shown_is_a_line_that_does_not_run_away(document: object) -> None:
    assert len(shown(document)) <= 40
    assert json.dumps(document, ensure_ascii=False).startswith(shown(document).removesuffix("..."))


def test_a_document_too_deep_to_be_shown_is_shown_all_the_same() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "[" * 37 + "..."
