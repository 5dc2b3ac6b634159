"""Sections, tables and code blocks of a page of docs/."""

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def text(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(name: str, heading: str) -> str:
    """What stands below `## heading`, up to the next heading of that level."""
    _, found, after = text(name).partition(f"\n## {heading}\n")
    assert found, f"{name} has no section {heading!r}"
    return after.partition("\n## ")[0]


def rows(part: str) -> Iterator[list[str]]:
    """The rows of every table, without their headers."""
    for line in part.splitlines():
        if line.startswith("| "):
            yield [cell.strip().replace("\\|", "|") for cell in line.strip("| ").split(" | ")]


def codes(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)
