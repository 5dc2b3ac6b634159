"""docs/kips.md is true: its quotes, their order, that nothing is left out, the files and tests it names, its counts.

The proposals' texts are not in this repository; their fingerprints are (tools/kips_index.py). Where the texts are at
hand, RACKSPAN_SEEDS=FOLDER holds the page and the fingerprints against the words themselves.
"""

import os
from pathlib import Path

import pytest

from tools import kips_index, kips_page
from tools.kips_page import Row

SEEDS = os.environ.get("RACKSPAN_SEEDS")
INDEX = kips_index.INDEX

TEXT = """Current state: Accepted

Racks are nice, e.g. where they burn. The leader must write the
rack at the end. Otherwise, nothing.

  1. Brokers may move
  2. Or stay

/**
 * If empty, no racks
 * will be used.
 */
Rack => string
"""


@pytest.fixture(scope="module")
def page() -> str:
    return kips_page.PAGE.read_text(encoding="utf-8")


@pytest.fixture
def copies(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the page, which the tool takes for the page; beside it the index."""
    copy = tmp_path / "kips.md"
    copy.write_text(page, encoding="utf-8")
    (tmp_path / INDEX.name).write_bytes(INDEX.read_bytes())
    monkeypatch.setattr(kips_index, "PAGE", copy)
    monkeypatch.setattr(kips_index, "INDEX", tmp_path / INDEX.name)
    return copy


@pytest.fixture(scope="module")
def indexes() -> dict[str, kips_index.TextIndex]:
    return kips_index.read_index(INDEX)


def test_every_row_is_well_formed_in_order_and_names_what_exists(page: str) -> None:
    assert kips_page.faults(page) == []


def test_every_quote_stands_in_its_proposal_and_every_statement_has_a_row(
    page: str, indexes: dict[str, kips_index.TextIndex]
) -> None:
    assert kips_index.all_problems(indexes, page) == []


def test_every_proposal_has_rows_and_statements(page: str, indexes: dict[str, kips_index.TextIndex]) -> None:
    """An empty index would find no fault with anything."""
    rows = kips_page.read_page(page)
    assert {prefix: len(index.statements) > 15 for prefix, index in indexes.items()} == dict.fromkeys(
        kips_page.PROPOSALS, True
    )
    assert all(len(kips_page.rows_of(prefix, rows)) > 50 for prefix in kips_page.PROPOSALS)


SLIPS = {
    "a word changed in a quote": (
        "“Rack will be included in",
        "“Rack should be included in",
        "does not stand in the text",
    ),
    "a word left out of a quote": ("“An optional broker", "“An broker", "does not stand in the text"),
    "a quote from further up": (
        "“Rack will be included in",
        "“An optional broker property",
        "does not stand in the text",
    ),
    "a quote too short": ("“New public interface: ReplicaPlacer”", "“New public”", "the quote has 2 words"),
    "a row taken out": ("| 36-106 |", "36-106", "has no row"),
    "an id twice": ("| 925-007 |", "| 925-006 |", "stands after 925-006"),
    "an id of no proposal": ("| 36-007 |", "| 37-007 |", "no proposal has the prefix"),
    "a kind that is none": ("” | metric |", "” | gauge |", "is none of"),
    "a status that is none": ("| background: the motive |", "| soon |", "none of the legal forms"),
    "a status without a reason": ("| background: the motive |", "| background |", "none of the legal forms"),
    "a place without a test": (
        "| background: the motive |",
        "| `src/rackspan/model/racks.py` |",
        "none of the legal forms",
    ),
    "a package that is none": ("| background: the motive |", "| not yet (cellar) |", "waits for 'cellar'"),
    "a file that is not there": (
        "`src/rackspan/placement/placer.py`",
        "`src/rackspan/placement/cellars.py`",
        "does not exist",
    ),
    "a test that is not there": (
        "| background: the motive |",
        "| `src/rackspan/model/racks.py` ; `tests/test_kips.py::test_nothing` |",
        "`tests/test_kips.py::test_nothing` does not exist",
    ),
    "a rejected alternative without a decision": ("| decided: agreed |", "| differs: agreed |", "has a decision"),
    "a broken row": ("| 660-002 | “The", "| 660-002 | The", "not a row"),
    "a count that is not true": ("| **all** | ", "| **all** | 9", "the counts are not the page's"),
}


@pytest.mark.slow
@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_the_page_is_found(slip: str, page: str, indexes: dict[str, kips_index.TextIndex]) -> None:
    right, wrong, fault = SLIPS[slip]
    assert right in page
    slipped = page.replace(right, wrong, 1)
    assert any(fault in one for one in kips_page.faults(slipped) + kips_index.all_problems(indexes, slipped))


@pytest.mark.slow
def test_a_wrong_word_in_any_quote_is_found(page: str, indexes: dict[str, kips_index.TextIndex]) -> None:
    for number, row in enumerate(kips_page.read_page(page)):
        words = row.quote.split()
        words[number % len(words)] += "s"
        assert indexes[row.prefix].places(row.prefix, " ".join(words)) == [], row


def test_a_row_that_is_built_names_its_place_and_its_test() -> None:
    status = "`src/rackspan/model/racks.py`, `src/rackspan/model/ids.py` ; `tests/test_kips.py::test_a_slip_in_the_page_is_found`: in short"
    page = f"| 36-001 | “three words here” | statement | requirement | {status} |"
    (row,) = kips_page.read_page(page)
    assert kips_page.status_of(row) == "done"
    assert row.named == (
        "src/rackspan/model/racks.py",
        "src/rackspan/model/ids.py",
        "tests/test_kips.py::test_a_slip_in_the_page_is_found",
    )
    assert kips_page.faults(page) == []


def test_a_sentence_ends_with_its_full_stop_or_with_a_line_that_is_not_gone_on_with() -> None:
    assert [" ".join(words) for words in kips_index.sentences(TEXT)] == [
        "Current state: Accepted",
        "Racks are nice, e.g. where they burn.",
        "The leader must write the rack at the end.",
        "Otherwise, nothing.",
        "1. Brokers may move",
        "2. Or stay",
        "If empty, no racks will be used.",
        "Rack => string",
    ]


def test_a_statement_is_a_sentence_with_a_modal_word() -> None:
    words = [word for sentence in kips_index.sentences(TEXT) for word in sentence]
    statements = kips_index.index_of("36", TEXT).statements
    assert [" ".join(words[start:end]) for start, end in statements] == [
        "The leader must write the rack at the end.",
        "1. Brokers may move",
        "If empty, no racks will be used.",
    ]


def test_a_quote_is_found_where_its_words_stand_together_and_nowhere_else() -> None:
    index = kips_index.index_of("36", TEXT)
    assert index.places("36", "The leader must write") == [10]
    assert index.places("36", "the leader must write") == []
    assert index.places("36", "The leader must read") == []
    assert index.places("36", "leader must") == []
    assert index.places("36d", "The leader must write") == []


def test_statements_without_a_row_and_quotes_out_of_order_are_reported() -> None:
    index = kips_index.index_of("36", TEXT)
    late = Row("36-001", "36", 1, "1. Brokers may move", "statement", "requirement", "background: a fact")
    early = Row("36-002", "36", 2, "The leader must write", "statement", "requirement", "background: a fact")
    assert kips_index.problems("36", index, [late, early]) == [
        "36-002: “The leader must write” does not stand in the text after the row before; correct the quote",
        "36: the statement at words 10 to 19 has no row; add one",
        "36: the statement at words 28 to 35 has no row; add one",
    ]


def test_the_index_reads_back_as_written(tmp_path: Path, indexes: dict[str, kips_index.TextIndex]) -> None:
    again = tmp_path / "index.json"
    again.write_text(kips_index.index_text(indexes), encoding="utf-8")
    assert kips_index.read_index(again) == indexes
    assert again.read_text(encoding="utf-8") == INDEX.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_tool_corrects_the_counts_and_nothing_else(page: str, copies: Path) -> None:
    copies.write_text(page.replace("| **all** | ", "| **all** | 9", 1), encoding="utf-8")
    assert kips_index.main([]) == 0
    assert copies.read_text(encoding="utf-8") == page
    assert kips_index.INDEX.read_bytes() == INDEX.read_bytes()


@pytest.mark.slow
def test_the_tool_leaves_a_wrong_page_alone_and_says_why(
    page: str, copies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = page.replace("“Rack will be included in", "“Rack should be included in", 1)
    copies.write_text(wrong, encoding="utf-8")
    assert kips_index.main([]) == 1
    assert copies.read_text(encoding="utf-8") == wrong
    assert capsys.readouterr().err.startswith(
        "36-099: “Rack should be included in inter-broker protocol.” does not stand"
    )


def test_the_tool_refuses_a_folder_that_is_not_there(copies: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kips_index.main([str(copies.parent / "nowhere")]) == 1
    assert capsys.readouterr().err == "usage: python tools/kips_index.py [SEEDS_DIR]\n"


@pytest.mark.skipif(
    SEEDS is None, reason="the proposals' texts are not ours to keep; RACKSPAN_SEEDS names their folder"
)
class TestAgainstTheTexts:
    def test_the_fingerprints_are_those_of_the_texts(self, indexes: dict[str, kips_index.TextIndex]) -> None:
        assert kips_index.index_seeds(Path(SEEDS or "")) == indexes

    @pytest.mark.parametrize("prefix", kips_page.PROPOSALS)
    def test_the_quoted_words_stand_in_the_text_in_that_order(self, prefix: str, page: str) -> None:
        """By plain search, without fingerprints. Comment stars are the one thing in the texts that is no word."""
        lines = Path(SEEDS or "", kips_index.SEEDS[prefix]).read_text(encoding="utf-8").splitlines()
        text = " ".join(word for line in lines for word in line.strip().removeprefix("*").split())
        place = 0
        for row in kips_page.rows_of(prefix, kips_page.read_page(page)):
            found = text.find(row.quote, place)
            assert found >= 0, row
            place = found + 1
