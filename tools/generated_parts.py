"""Rewrites the generated parts of docs/command-line.md and docs/settings.md: python -m tools.generated_parts.

A part stands between `<!-- begin NAME: … -->` and `<!-- end NAME -->`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rackspan.cli.exit_codes import MEANINGS
from rackspan.cli.options.settings_table import BOOTSTRAP_SERVER, IN_FILE, OF_CLUSTERS

DOCS: Final = Path(__file__).parents[1] / "docs"
PAGES: Final = (DOCS / "command-line.md", DOCS / "settings.md")


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


def _settings() -> Iterator[str]:
    yield "| key | example | flag | |"
    yield "|---|---|---|---|"
    for setting in IN_FILE:
        meaning = f"{setting.meaning} {setting.note}".strip()
        yield f"| `{setting.key}` | `{setting.example}` | `--{setting.key}` | {meaning} |"


def _settings_of_clusters() -> Iterator[str]:
    yield "| key | example | |"
    yield "|---|---|---|"
    for setting in OF_CLUSTERS:
        meaning = "required" if setting is BOOTSTRAP_SERVER else "as above"
        yield f"| `{setting.key}` | `{setting.example}` | {meaning} |"


PARTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "exit codes": _exit_codes,
    "settings": _settings,
    "settings of clusters": _settings_of_clusters,
}


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(document(path.read_text(encoding="utf-8")), encoding="utf-8")
