"""Rewrites the generated parts of docs/command-line.md: python tools/command_line.py.

A part stands between `<!-- begin NAME: … -->` and `<!-- end NAME -->`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rackspan.cli.exit_codes import MEANINGS

PAGE: Final = Path(__file__).parents[1] / "docs" / "command-line.md"


def document(page: str) -> str:
    """The page with every generated part as it has to be. Errors: KeyError for a part that nothing generates."""

    def part(match: re.Match[str]) -> str:
        return "\n".join((match[1], *PARTS[match[2]](), match[3]))

    return re.sub(r"(<!-- begin ([a-z ]+):[^\n]*-->)\n.*?(<!-- end \2 -->)", part, page, flags=re.DOTALL)


def _exit_codes() -> Iterator[str]:
    yield "| command | 0 when | 2 when | 1 on errors, and when |"
    yield "|---|---|---|---|"
    for words, meaning in MEANINGS.items():
        yield f"| `{words}` | {meaning.done} | {meaning.to_act_on or '–'} | {meaning.impossible or '–'} |"


PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {"exit codes": _exit_codes}


if __name__ == "__main__":
    PAGE.write_text(document(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
