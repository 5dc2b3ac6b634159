"""Every link from one page to a file or a heading of another leads there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]


def test_every_relative_link_leads_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL))
        if not target.startswith(("http:", "https:", "mailto:")) and not leads_somewhere(page, target)
    ]
    assert broken == []


def leads_somewhere(page: Path, target: str) -> bool:
    path, _, heading = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    return file.exists() and (not heading or heading in headings(file))


def headings(file: Path) -> set[str]:
    """As GitHub makes anchors of them."""
    return {
        re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
        for line in file.read_text("utf-8").splitlines()
        if line.startswith("#")
    }
