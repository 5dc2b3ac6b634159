"""What no linter of the trade checks, as an ordinary test: one message a rule, saying what to do instead.

python tools/tidy.py
"""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent

LINES_MAX = 600
"""Past this a file is two things. A solver or state machine that reads as one may be named here, with its reason."""
LONG_FOR_A_REASON: dict[str, str] = {}

SYNONYMS = {
    r"\bnodes?\b": "broker (or controller)",
    r"\bavailability zones?\b": "rack",
    r"\bmigrations?\b": "reassignment",
}
"""One word, one thing, and it is Kafka's."""
SYNONYM_ROOMS = (
    "src/rackspan/model",
    "src/rackspan/audit",
    "src/rackspan/placement",
    "src/rackspan/acks",
    "src/rackspan/cli",
)

Rule = Callable[[str, str], Iterator[str]]


def too_long(name: str, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if name.endswith(".py") and lines > LINES_MAX and name not in LONG_FOR_A_REASON:
        yield f"{lines} lines: find the second thing in it, or give its reason in tools/tidy.py"


def unfinished(_name: str, text: str) -> Iterator[str]:
    for mark in ("FIX" + "ME", "TO" + "DO", "XX" + "X"):
        if re.search(rf"\b{mark}\b", text):
            yield f"{mark}: finish it, or write it down where work is planned"


def elsewhere(_name: str, text: str) -> Iterator[str]:
    """Paths of one machine, and addresses of package registries."""
    for trace in (r"(?<![\w}])/wo" + "rk/", r"pypi\.o" + "rg", r"repo1\.mav" + "en", r"files\.pythonho" + "sted"):
        for found in re.findall(trace, text):
            yield f"{found!r}: this belongs to one machine or registry; say it without the address"


def other_words(name: str, text: str) -> Iterator[str]:
    if name.startswith(SYNONYM_ROOMS):
        for pattern, word in SYNONYMS.items():
            for found in re.findall(pattern, text, flags=re.IGNORECASE):
                yield f"{found!r}: Kafka's word is {word}"


def no_front_page(name: str, text: str) -> Iterator[str]:
    if name.startswith("src/") and name.endswith("/__init__.py") and not text.startswith('"""'):
        yield "a room opens with its front page: what it decides, where to begin, what it never does"


RULES: tuple[Rule, ...] = (too_long, unfinished, elsewhere, other_words, no_front_page)


def files() -> list[str]:
    """What git tracks or would: text of our own."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    texts = (".py", ".md", ".toml", ".sh", ".txt", ".j2", ".java", "Makefile", "run")
    return [name for name in listed if name.endswith(texts) and (ROOT / name).is_file()]


def complaints() -> list[str]:
    return [
        f"{name}: {complaint}"
        for name in files()
        if name != "tools/tidy.py"
        for rule in RULES
        for complaint in rule(name, (ROOT / name).read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    found = complaints()
    sys.exit("\n".join(found))
