"""Pages name the tests that hold what they promise: each of these exists, and every failure in the tables of the gateway has one."""

import re
from collections.abc import Iterator

import pytest

from tests.reference.pages import codes, rows, text
from tests.reference.test_links import PAGES, ROOT
from tools.kips_page import exists

_NAMED = re.compile(r"(?P<path>tests/(?!a/)[\w/]+\.(?:py|txt)|test_\w+\.py|…(?=::))(?:::(?P<test>[\w:]+))?")
"""`tests/a/test_b.py` is how the pages write where any test is."""


def named_tests(page: str) -> Iterator[list[str]]:
    """What each name on a page may stand for: "…" is the file named before, and a file without its folder is any of that name."""
    before: list[str] = []
    for code in codes(re.sub(r"```.*?```", "", page, flags=re.DOTALL)):
        name = _NAMED.fullmatch(code)
        if name is None:
            continue
        if name["path"].startswith("test_"):
            before = [str(found.relative_to(ROOT)) for found in ROOT.glob(f"tests/**/{name['path']}")]
        elif name["path"] != "…":
            before = [name["path"]]
        yield [path if name["test"] is None else f"{path}::{name['test']}" for path in before] or [code]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_every_test_that_a_page_names_exists(page: str) -> None:
    missing = [names for names in named_tests((ROOT / page).read_text("utf-8")) if not any(map(exists, names))]
    assert missing == []


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("`tests/reference/test_named_tests.py::test_every_test_that_a_page_names_exists`", True),
        ("`tests/reference/test_named_tests.py` and `…::test_every_test_that_a_page_names_exists`", True),
        ("`test_named_tests.py::test_every_test_that_a_page_names_exists`", True),
        ("`tests/scenarios/rack_outage_runbook.txt`", True),
        ("`tests/reference/test_named_tests.py::test_every_test`", False),
        ("`tests/reference/test_named_tests.py` and `…::test_every_test`", False),
        ("`test_named_tests.py::test_every_test`", False),
        ("`tests/scenarios/rack_outage.txt`", False),
        ("`test_that_is_gone.py`", False),
    ],
)
def test_a_name_is_found_where_it_stands_for_a_test(page: str, found: bool) -> None:
    assert [any(map(exists, names)) for names in named_tests(page)][-1:] == [found]


def test_every_failure_around_the_gateway_names_the_test_of_what_it_promises() -> None:
    """A row that says Kafka's own behaviour alone has the test that shows it."""
    tables = [row for row in rows(text("gateway-failures.md").partition("\n## The cluster\n")[2]) if len(row) == 3]
    promises = {row[0]: " ".join(row) for row in tables if row[0] != "what fails"}
    assert len(promises) > 30
    assert [failure for failure, row in promises.items() if not list(named_tests(row))] == []
