"""A skipped test of Java, Kafka, Spark, the browser or promtool fails where RACKSPAN_NO_SKIPS is set; the longest files start first."""

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest

TESTS = """
import pytest

from tests import conftest

@pytest.mark.kafka
def test_in_the_body():
    pytest.skip("NOT TESTED: no Java")

@pytest.mark.browser
@pytest.mark.skipif(True, reason="no Chromium")
def test_by_a_mark():
    pass

@pytest.mark.promtool
@pytest.mark.skipif(True, reason="no promtool")
def test_of_rules():
    pass

@pytest.fixture
def gateway():
    pytest.skip("NOT TESTED: no Spark")

@pytest.mark.spark
def test_in_a_fixture(gateway):
    pass

@pytest.mark.java
@pytest.mark.xfail(reason="known")
def test_expected_to_fail():
    assert False

def test_of_python_alone():
    pytest.skip("as root")
"""


@pytest.fixture(autouse=True)
def hooks(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the tests, without their fixtures."""
    hooks = Path(conftest.__file__).read_text(encoding="utf-8").replace("pytest_plugins = ", "_ = ")
    pytester.makeconftest(hooks)
    monkeypatch.syspath_prepend(Path(__file__).parents[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("no_skips", "outcomes"), [("1", {"failed": 1, "errors": 3, "skipped": 1}), ("", {"skipped": 5})]
)
def test_what_must_run_fails_when_it_is_skipped(
    no_skips: str, outcomes: dict[str, int], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(TESTS)
    monkeypatch.setenv("RACKSPAN_NO_SKIPS", no_skips)
    ran = pytester.runpytest("-p", "no:rackspan", "-W", "ignore")
    ran.assert_outcomes(xfailed=1, **outcomes)


@pytest.mark.slow
def test_the_last_lines_have_what_was_not_judged_and_why(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(TESTS)
    monkeypatch.delenv("RACKSPAN_NO_SKIPS", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    ran = pytester.runpytest_subprocess("-q", "-p", "no:rackspan", "-W", "ignore")
    assert sorted(ran.outlines[-4:]) == [
        f"NOT JUDGED: 1 test: {reason}"
        for reason in ("NOT TESTED: no Java", "NOT TESTED: no Spark", "no Chromium", "no promtool")
    ]


def test_the_files_that_start_first_are_there_and_start_first() -> None:
    tests = Path(__file__).parent
    assert [name for name in conftest.LONGEST_FILES if not (tests / name).is_file()] == []
    other, second, first = ("test_conftest.py", *conftest.LONGEST_FILES[1::-1])
    items: Any = [
        SimpleNamespace(path=tests / name, iter_markers=tuple) for name in (other, second, other, first, second)
    ]
    conftest.pytest_collection_modifyitems(items)
    assert [item.path for item in items] == [tests / name for name in (first, second, second, other, other)]


def test_files_that_share_a_cluster_or_a_spark_are_found_by_what_their_tests_request() -> None:
    assert conftest.shared_by("tests/compat/test_rack_loss.py") == "kafka"
    assert conftest.shared_by("tests/apply/test_live.py") == "kafka"
    assert conftest.shared_by("tests/compat/test_kafka_source_rows.py") == "spark"
    assert conftest.shared_by("tests/pipeline/test_follow.py") == "spark"
    assert conftest.shared_by("tests/cli/test_rights.py") is None


def test_files_without_a_test_that_is_selected_are_not_imported(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makepyfile(
        test_of_kafka="import pytest\n@pytest.mark.kafka\ndef test_a(): pass\ndef test_b(): pass",
        test_of_python="raise AssertionError",
        test_of_soak="import pytest\nfrom tests.depth import one_in\n@pytest.mark.parametrize('n', one_in(2, (1, 2)))\ndef test_c(n): pass",
    )
    pytester.runpytest("-m", "kafka and not rest", "-p", "no:rackspan", "-W", "ignore").assert_outcomes(passed=1)
    pytester.makepyfile(test_of_python="def test_d(): pass")
    pytester.runpytest("-m", "soak", "-p", "no:rackspan", "-W", "ignore").assert_outcomes(passed=1)
    pytester.runpytest("-m", "soak or not kafka", "-p", "no:rackspan", "-W", "ignore").assert_outcomes(passed=4)


def test_a_mark_that_its_file_does_not_name_is_refused(pytester: pytest.Pytester) -> None:
    """Such a test would be left out without a word."""
    pytester.makepyfile(marks="import pytest\nkafka = pytest.mark.kafka")
    pytester.makepyfile(test_of_kafka="import marks\n@marks.kafka\ndef test_a(): pass")
    pytester.syspathinsert()
    ran = pytester.runpytest("-p", "no:rackspan", "-W", "ignore")
    ran.stderr.fnmatch_lines("*test_of_kafka.py::test_a has the mark kafka, which its file does not name*")
    pytester.makepyfile(test_of_kafka="import pytest\n@getattr(pytest.mark, 'kafka')\ndef test_a(): pass")
    pytester.runpytest("-m", "kafka", "-p", "no:rackspan", "-W", "ignore").assert_outcomes(passed=1)


def test_the_marks_are_those_that_are_declared() -> None:
    declared = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    markers = declared["tool"]["pytest"]["ini_options"]["markers"]
    assert {line.partition(":")[0] for line in markers} == conftest.MARKS
