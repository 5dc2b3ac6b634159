"""Finds words that are not Kafka's or Python's, in names, comments, docstrings, help texts and pages.

    python tools/plain_words.py [PATH ...]

Each row of `WORDS` is one word to avoid and what to write instead. A name is split at underscores and capitals, so that
`asked_racks` counts as "asked racks". String literals are left alone, docstrings and `help=` apart: they are output, protocol
or test data.
"""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class Word:
    """A pattern in lower case, matched between word boundaries, and its replacement."""

    pattern: str
    instead: str


WORDS: Final = (
    Word(r"rooms?|front pages?", "package, package docstring"),
    Word(r"walls?", "layer (a clock on the wall is a wall clock)"),
    Word(r"doors?", "interface, method, port"),
    Word(r"answer(?:s|ed|ing)?|repl(?:y|ies|ied)", "response, respond, return"),
    Word(r"questions?", "request"),
    Word(r"tells?|told|telling", "report, send, describe"),
    Word(r"said", "reported, described, contained"),
    Word(r"asks?|asked|asking", "request, require"),
    Word(r"hears?|heard", "receive"),
    Word(r"seen", "observed, received, read"),
    Word(r"knows|remembers?", "hold, keep, have"),
    Word(r"dice", "rng"),
    Word(r"tickets?", "correlation id"),
    Word(r"late names|exposition", "lazy exports, Prometheus metrics"),
    Word(r"taking office", "coordinator loading"),
    Word(r"folded|folds", "replayed, applied"),
    Word(r"heeds?|heeded", "handle, honour"),
    Word(r"carrying|carried(?! out)", "broker load, held"),
    Word(r"moments?", "snapshot, timestamp"),
    Word(r"mends?|mended", "repair, fix"),
    Word(r"whoever", "the caller, the client, the broker that"),
    Word(r"oracles?", "reference implementation"),
    Word(r"migrations?", "reassignment"),
    Word(r"availability zones?", "rack"),
)

IN_MESSAGES: Final = (
    r"correct it",
    r"anew",
    r"amiss",
    r"nobody|anybody",
    r"stands? (?:on|as|twice|there)",
    r"for ever",
    r"told|tells",
    r"mend(?:s|ed)?",
    r"but it is",
    r"gone on with|goes on with",
    r"speaks by",
    r"is no (?:broker id|file|port|text|string|host name|event|replica list|snapshot folder|warehouse|placer class)",
)
"""Phrases that no message, help text or page contains: what to do next is named, and the words are an operator's."""

NAMES_ONLY: Final = {"taken": "snapshot, timestamp"}
"""Ordinary English in a sentence, a riddle as a whole name."""

EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    ("tests/", "oracle"): "the word of software testing for a reference that shares no code",
    ("benchmarks/", "oracle"): "as in tests",
    ("tests/prometheus_metrics/test_families.py", "exposition"): "a module of prometheus-client",
    ("", "migration plan"): "a section of every KIP: Compatibility, Deprecation, and Migration Plan",
    ("", "wall clock"): "the usual word for the time of day",
    ("", "wall-clock"): "the usual word for the time of day",
    ("src/rackspan/wire/messages", "zk migration ready"): "Kafka's field ZkMigrationReady",
    ("src/rackspan/sources/rack_locators", "availability zone"): "what clouds call their racks",
    ("docs/", "availability zone"): "the word of the proposals and of readers from the cloud",
    ("README.md", "availability zone"): "what readers from the cloud look for",
}
"""(path prefix, phrase): the reason. The phrase is cut out before words are looked for."""

_ANY_WORD: Final = re.compile("|".join(rf"\b(?:{word.pattern})\b" for word in WORDS))

_ANYWHERE: Final = re.compile(
    r"(?:(?<![A-Za-z0-9])|(?=[A-Z]))(?i:"
    + "|".join([word.pattern.replace("(?! out)", "").replace(" ", r"[\W_]*") for word in WORDS])
    + "".join(f"|{name}(?!_+[a-z0-9])" for name in NAMES_ONLY)
    + r")(?![a-z0-9])"
)
"""Each of the words in raw text, as a word or as a part of a name, in output and protocol too."""

OWN_FILES: Final = ("tools/plain_words.py", "tests/test_plain_words.py")
"""They name the words that they are about."""


def complaints(name: str, text: str) -> Iterator[str]:
    """One line for each word of a file that has another, with how often and where first."""
    if not may_have_words(name, text):
        return
    found: dict[tuple[str, str], list[int]] = {}
    exempt = [phrase for (prefix, phrase) in EXCEPTIONS if name.startswith(prefix)]
    for line, phrase, is_name in _phrases(name, text):
        lowered = phrase.lower()
        for cut in exempt:
            lowered = lowered.replace(cut, " ")
        if is_name and lowered in NAMES_ONLY:
            found.setdefault((lowered, NAMES_ONLY[lowered]), []).append(line)
        for word in _words_to_avoid(lowered):
            found.setdefault(word, []).append(line)
    for (match, instead), lines in sorted(found.items(), key=lambda row: row[1][0]):
        yield f"{name}:{lines[0]}: {match!r} ({len(lines)} times): {instead}"


def may_have_words(name: str, text: str) -> bool:
    """Whether one of the words stands anywhere in the file, which decides quickly that most files need no tokens."""
    return bool(_ANYWHERE.search(Path(name).stem) or _ANYWHERE.search(text))


@cache
def _words_to_avoid(phrase: str) -> list[tuple[str, str]]:
    """Each occurrence with what to write instead. Names recur by the thousand, so their verdicts are kept."""
    if not _ANY_WORD.search(phrase):
        return []
    return [(match, word.instead) for word in WORDS for match in re.findall(rf"\b(?:{word.pattern})\b", phrase)]


def _phrases(name: str, text: str) -> Iterator[tuple[int, str, bool]]:
    yield 0, " ".join(_parts(Path(name).stem)), True
    if name.endswith(".py"):
        yield from _python(text)
    elif name.endswith(".md"):
        yield from _markdown(text)


def _python(text: str) -> Iterator[tuple[int, str, bool]]:
    statement_begins, help_begins = True, 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string, False
        elif token.type == tokenize.NAME:
            yield token.start[0], " ".join(_parts(token.string)), True
            help_begins = 2 if token.string == "help" else 0
        elif token.type == tokenize.STRING and (statement_begins or help_begins == 1):
            yield token.start[0], re.sub(r"`[^`]*`", " ", token.string), False
        elif token.type == tokenize.OP and token.string == "=" and help_begins:
            help_begins = 1
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            statement_begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def _markdown(text: str) -> Iterator[tuple[int, str, bool]]:
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            # What is quoted is somebody else's sentence; what is code is checked where it stands.
            yield number, re.sub(r"`[^`]*`|“[^”]*”|\([^() ]*\.md[^()]*\)", " ", line), False


@cache
def _parts(name: str) -> list[str]:
    return [part.lower() for part in re.findall(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z0-9]+|[A-Z]+", name)]


def main(paths: list[str]) -> int:
    names = [
        str(path.relative_to(ROOT))
        for given in paths
        or ["src", "tests", "docs", "benchmarks", "tools", "examples", "README.md", "ARCHITECTURE.md"]
        for path in ([ROOT / given] if (ROOT / given).is_file() else sorted((ROOT / given).rglob("*")))
        if path.suffix in (".py", ".md") and str(path.relative_to(ROOT)) not in OWN_FILES
    ]
    lines = [line for name in names for line in complaints(name, (ROOT / name).read_text(encoding="utf-8"))]
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
