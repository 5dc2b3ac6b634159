"""What README.md shows of `rackspan audit` is what the how-to page shows, whose commands a test runs."""

import re
from pathlib import Path

from rackspan.kafka_process import TESTED_VERSIONS
from tests.reference.pages import text

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_audit_on_the_first_screen_is_that_of_the_page() -> None:
    (shown,) = re.findall(
        r"\$ export RACKSPAN_BOOTSTRAP_SERVER=kafka:9092\n\$ rackspan audit\n(.*?)```", README, re.DOTALL
    )
    left = iter(text("how-to/first-audit.md").splitlines())
    assert [line for line in shown.splitlines() if line != "…" and line not in left] == []


def test_ones_own_cluster_stands_before_the_demo() -> None:
    assert README.index("$ pip install .") < README.index("$ rackspan audit\n") < README.index("$ make demo")


def test_the_install_line_does_not_name_a_package_that_is_not_published() -> None:
    assert re.findall(r"pip install [\"']?rackspan", README) == []


def test_it_is_short_and_names_the_releases_of_kafka_that_are_tested() -> None:
    assert len(README.splitlines()) <= 80
    assert [version for version in TESTED_VERSIONS if version not in README] == []


def test_no_page_installs_a_package_that_is_not_published() -> None:
    deployed = [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    pages = [*(ROOT / "docs").rglob("*.md"), *deployed]
    named = {
        page.name for page in pages if re.search(r"pip install (?:-[^\n ]* )*[\"']?rackspan\b", page.read_text("utf-8"))
    }
    assert named == set()
