"""docs/spark.md names files and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "spark.md"


def test_what_the_page_about_spark_names_exists() -> None:
    """The steps that users start by name are all there."""
    page = PAGE.read_text(encoding="utf-8")
    for name in ("rackspan-kafka", "--master", "--remote", "pipeline follow"):
        assert f"`{name}`" in page
    named = re.findall(r"`((?:src|tests)/[^`]+)`", page)
    assert len(named) >= 14
    for name in named:
        path, _, test = name.partition("::")
        assert (ROOT / path).is_file(), name
        assert not test or f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), name
