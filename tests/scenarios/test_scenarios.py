"""Every page beside this file: commands, ----, and what they respond. RACKSPAN_REWRITE=1 writes the responses anew."""

import os
from pathlib import Path

import pytest

from tests.scenarios.commands import run

PAGES = [
    pytest.param(page, marks=[pytest.mark.slow] if page.stem.startswith("warehouse_") else [], id=page.stem)
    for page in sorted(Path(__file__).parent.glob("*.txt"))
]
RULE = "----\n"


@pytest.mark.parametrize("page", PAGES)
def test_the_page_holds(page: Path) -> None:
    story, _, expected = page.read_text(encoding="utf-8").partition(RULE)
    returned = run(story.splitlines())
    if os.environ.get("RACKSPAN_REWRITE"):
        page.write_text(story + RULE + returned, encoding="utf-8")
        expected = returned
    assert returned == expected


def test_there_are_pages() -> None:
    assert PAGES
