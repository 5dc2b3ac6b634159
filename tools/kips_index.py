"""Fingerprints of the five proposals, which hold the quotes of docs/kips.md to the texts without the texts.

    python tools/kips_index.py [SEEDS_DIR]

rewrites the page's counts, unless the page is wrong: it says what is wrong and leaves everything. With SEEDS_DIR, where
the proposals' texts lie (they are not ours, and not in this repository), it fingerprints them anew into
tests/vectors/kips_index.json; without, it goes by that file. A fingerprint confirms words that one has, so the page
can be checked, and rows added, by anyone who has read the proposals.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # So that the file also runs by its own name.
    sys.path.insert(0, str(ROOT))

from tools.kips_page import PAGE, PROPOSALS, QUOTED_WORDS, Row, faults, read_page, rows_of, with_counts  # noqa: E402

INDEX: Final = ROOT / "tests" / "vectors" / "kips_index.json"

SEEDS: Final[Mapping[str, str]] = {
    "36": "kip-36.txt",
    "36d": "kip-36-draft.txt",
    "660": "kip-660.txt",
    "mir": "min-insync-racks.txt",
    "925": "kip-925.txt",
}
"""The file of each proposal's text, by the prefix of its row ids."""

WINDOW: Final = QUOTED_WORDS[0]
"""Words a fingerprint covers: as many as the shortest quote has."""

DIGITS: Final = 6
"""Hex digits of a fingerprint: 24 bits. A wrong quote of one window passes in at most one of 4,000 cases."""

STATEMENT: Final = re.compile(
    r"\b(?:must|will|should|shall|can|cannot|could|may|would)\b"
    r"|\b(?:won|shouldn|couldn|wouldn)['’]t\b"
    r"|\b(?:needs?|have|has) to\b|\brequire[sd]?\b",
    re.IGNORECASE,
)
"""What makes a sentence a statement that needs a row."""

_COMMENT_MARK: Final = re.compile(r"^\s*(?:/\*\*|\*/?)(?=\s|$)")
"""The frame of a comment in code, which is no word of it."""

_ITEM_MARK: Final = re.compile(r"•|//|\d+\.")
_SENTENCE_END: Final = re.compile(r"[.?!][)\"”’]*$")
_ABBREVIATION: Final = re.compile(r"\(?(?:e\.g|i\.e|etc|vs)\.:?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TextIndex:
    """One proposal's text as fingerprints.

    `windows[i]` is the fingerprint of the words i … i + WINDOW − 1. `statements` are the sentences that STATEMENT finds,
    as half-open ranges of word positions, ascending.
    """

    windows: tuple[str, ...]
    statements: tuple[tuple[int, int], ...]

    def places(self, prefix: str, quote: str) -> list[int]:
        """Every word position at which the quote stands, ascending. Words are compared exactly, spaces are not."""
        wanted = fingerprints(prefix, quote.split())
        if not wanted:
            return []
        starts = range(len(self.windows) - len(wanted) + 1)
        return [start for start in starts if self.windows[start : start + len(wanted)] == wanted]


def fingerprints(prefix: str, words: Sequence[str]) -> tuple[str, ...]:
    """One fingerprint for every window of the words."""
    windows = (" ".join(words[start : start + WINDOW]) for start in range(len(words) - WINDOW + 1))
    return tuple(sha256(f"{prefix}\n{window}".encode()).hexdigest()[:DIGITS] for window in windows)


def index_of(prefix: str, text: str) -> TextIndex:
    """Fingerprint one proposal's text."""
    words: list[str] = []
    statements = []
    for sentence in sentences(text):
        if STATEMENT.search(" ".join(sentence)):
            statements.append((len(words), len(words) + len(sentence)))
        words += sentence
    return TextIndex(fingerprints(prefix, words), tuple(statements))


def sentences(text: str) -> Iterator[list[str]]:
    """The text's sentences as words; every word is in exactly one.

    A sentence ends with its full stop, and with its line unless the next one goes on in lower case.
    """
    sentence: list[str] = []
    for line in text.splitlines():
        words = _COMMENT_MARK.sub("", line).split()
        if sentence and not (words and words[0][0].islower()):
            yield sentence
            sentence = []
        for word in words:
            sentence.append(word)
            if _ends(sentence):
                yield sentence
                sentence = []
    if sentence:
        yield sentence


def _ends(sentence: Sequence[str]) -> bool:
    word = sentence[-1]
    if _ABBREVIATION.fullmatch(word) or (len(sentence) == 1 and _ITEM_MARK.fullmatch(word)):
        return False
    return bool(_SENTENCE_END.search(word))


def problems(prefix: str, index: TextIndex, rows: Sequence[Row]) -> list[str]:
    """What is wrong between a proposal and its rows: quotes that do not stand there in this order, statements left out."""
    found = []
    covered: set[tuple[int, int]] = set()
    last = -1
    for row in rows:
        places = index.places(prefix, row.quote)
        place = next((one for one in places if one > last), None)
        if place is None:
            found.append(f"{row.id}: “{row.quote}” does not stand in the text after the row before; correct the quote")
            continue
        if len(places) > 1 and row.kind != "field":  # A format lists the same fields more than once.
            found.append(f"{row.id}: “{row.quote}” stands in the text {len(places)} times; quote more words")
        last = place
        covered.update(span for span in index.statements if span[0] <= place < span[1])
    left_out = sorted(set(index.statements) - covered)
    return found + [f"{prefix}: the statement at words {start} to {end} has no row; add one" for start, end in left_out]


def all_problems(indexes: Mapping[str, TextIndex], page: str) -> list[str]:
    """`problems` of every proposal."""
    rows = read_page(page)
    return [one for prefix in PROPOSALS for one in problems(prefix, indexes[prefix], rows_of(prefix, rows))]


def read_index(path: Path) -> dict[str, TextIndex]:
    """The fingerprints as committed."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return {
        prefix: TextIndex(
            windows=tuple(window for line in one["windows"] for window in line.split()),
            statements=tuple((start, end) for start, end in one["statements"]),
        )
        for prefix, one in document.items()
    }


def index_text(indexes: Mapping[str, TextIndex]) -> str:
    """The fingerprints as they are committed: sixteen a line, so that a change of text shows as a change of lines."""
    document = {
        prefix: {
            "windows": [" ".join(one.windows[start : start + 16]) for start in range(0, len(one.windows), 16)],
            "statements": one.statements,
        }
        for prefix, one in indexes.items()
    }
    text = json.dumps(document, indent=1)
    return re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", text) + "\n"


def index_seeds(folder: Path) -> dict[str, TextIndex]:
    """Fingerprint the proposals' texts in a folder."""
    return {prefix: index_of(prefix, (folder / name).read_text(encoding="utf-8")) for prefix, name in SEEDS.items()}


def main(arguments: Sequence[str]) -> int:
    """Rewrite the index and the page's counts, or say what is wrong and leave both."""
    if len(arguments) > 1 or not all(Path(folder).is_dir() for folder in arguments):
        print("usage: python tools/kips_index.py [SEEDS_DIR]", file=sys.stderr)
        return 1
    indexes = index_seeds(Path(arguments[0])) if arguments else read_index(INDEX)
    page = with_counts(PAGE.read_text(encoding="utf-8"))
    if wrong := faults(page) + all_problems(indexes, page):
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    INDEX.write_text(index_text(indexes), encoding="utf-8")
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
