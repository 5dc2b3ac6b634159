"""Shared set-up: how deep the generated tests go, and what is skipped, loudly, where a part cannot be had.

RACKSPAN_NO_SKIPS=1, which CI sets, fails a test that is skipped for lack of Java, Kafka, Spark, Chromium or promtool.
"""

import gc
import logging
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Generator, Iterable
from functools import cache, partial
from itertools import chain, combinations
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark.expression import Expression
from hypothesis import HealthCheck, settings

from tests import spark_classes
from tests.depth import DEPTH

pytest_plugins = ["pytester", "tests.kafka_fixtures", "tests.secured_fixtures", "tests.json_schemas"]

# Outside soak the examples are the same every time, so that a red run is repeatable.
settings.register_profile("check", max_examples=10, derandomize=True, deadline=None)
settings.register_profile("test", max_examples=30, derandomize=True, deadline=None)
settings.register_profile(
    "soak", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile(DEPTH)
spark_classes.load()
# A shell starts its background jobs with Ctrl-C ignored, and what they start inherits that. Tests of Ctrl-C are to run there too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Clients that a test leaves behind log for as long as the process runs; caplog gets what loggers do not propagate, too.
for library in ("kafka", "aiokafka"):
    logging.getLogger(library).setLevel(logging.CRITICAL + 1)


def pytest_report_header() -> str:
    seeds = "random" if DEPTH == "soak" else "the same every run; make soak for 1,000 random ones"
    return f"rackspan depth: {DEPTH}, {settings().max_examples:,} examples a property, {seeds}"


# The large counts take as long as they take.
if DEPTH == "soak":
    os.environ.setdefault("PYTEST_TIMEOUT", "0")

# pytest imports readline, which sets it for every process that a test starts, behind os.environ: messages would be wrapped.
os.unsetenv("COLUMNS")

# Ten thousand collected tests are a million objects. Python's collector would walk them again and again, a tenth of the run.
gc.set_threshold(50_000, 20, 20)


# By their time on two cores, those that start Java and those that do not: begun last, one of them would run on alone.
LONGEST_FILES = (
    "pipeline/spark/test_standalone.py",
    "compat/test_reassign_apply.py",
    "conformance/test_conformance.py",
    "demo/test_run.py",
    "pipeline/delta/test_power_cut.py",
    "pipeline/test_killed.py",
    "pipeline/hours/test_killed.py",
    "pipeline/test_check.py",
    "pipeline/hours/test_hours.py",
    "pipeline/hours/test_again.py",
    "pipeline/test_object_store.py",
    "cli/test_restart_watch.py",
    "pipeline/test_incremental.py",
    "pipeline/test_maintain.py",
    "pipeline/hours/test_durability.py",
    "pipeline/test_notebook.py",
    "simulation/test_worlds.py",
    "test_mutation.py",
    "pipeline/hours/test_rows.py",
)
_RANK = {str(Path(__file__).parent / name): rank for rank, name in enumerate(LONGEST_FILES)}


@pytest.hookimpl(tryfirst=True)  # Before pytest deselects tests by their marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first; --dist loadfile with --no-loadscope-reorder hands files out in this order."""
    for item in items:
        for mark in {mark.name for mark in item.iter_markers()} & MARKS - possible_marks(item.path):
            raise pytest.UsageError(
                f"{item.nodeid} has the mark {mark}, which its file does not name; name it there, or -m {mark} leaves the file out"
            )
    items.sort(key=lambda item: _RANK.get(str(item.path), len(_RANK)))


NEEDS_MORE_THAN_PYTHON = ("java", "kafka", "spark", "browser", "promtool")
MARKS: Final = frozenset([*NEEDS_MORE_THAN_PYTHON, "package", "slow", "rest", "soak"])
"""Those that pyproject.toml declares."""

MARKS_OF_FUNCTIONS: Final = frozenset(["soak"])
"""Marks that functions such as tests.depth.one_in set, in files that do not name them."""


@cache
def possible_marks(file: Path) -> frozenset[str]:
    """The marks that tests of a file may have: those that its text names, every one if it computes a name."""
    named = re.findall(r"\bpytest\.mark\b\.?(\w*)", file.read_text(encoding="utf-8"))
    return MARKS if "" in named else MARKS & {*named, *MARKS_OF_FUNCTIONS}


@cache
def may_select(expression: str, possible: frozenset[str]) -> bool:
    """Whether the expression of -m selects a test that has some of the possible marks, or none."""
    if not expression or not {*re.findall(r"\w+", expression)} <= {*MARKS, "and", "or", "not"}:
        return True
    compiled = Expression.compile(expression)
    subsets = chain.from_iterable(combinations(possible, count) for count in range(len(possible) + 1))
    return any(compiled.evaluate(partial(_is_one_of, subset)) for subset in subsets)


def _is_one_of(marks: tuple[str, ...], name: str, /, **_arguments: object) -> bool:
    return name in marks


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test that -m selects: else each process that runs those of Java imports 600 files for nothing."""
    is_test = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
    return (is_test and not may_select(config.option.markexpr, possible_marks(collection_path))) or None


SHARED: Final = {"spark": r"\bspark: \"?SparkSession", "kafka": r"\b(kafka|kafka3|secured_kafka): KafkaCluster"}
"""What the tests of a process start once and keep, by the parameter that requests it."""


@cache
def shared_by(file: str) -> str | None:
    """Which of `SHARED` the tests of a file request: of the two Spark, whose files take less time than those of the cluster."""
    text = Path(__file__).parent.parent.joinpath(file).read_text(encoding="utf-8")
    return next((name for name, parameter in SHARED.items() if re.search(parameter, text)), None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """For --dist loadfile: files whose tests share a cluster, or a Spark, run one after another in one process.

    Else each process starts six brokers of its own, which take a tenth of a core each process until the run ends.
    """
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    scheduling = LoadFileScheduling(config, log)
    file_of = scheduling._split_scope
    scheduling._split_scope = lambda test: shared_by(file_of(test)) or file_of(test)
    return scheduling


def pytest_collection_finish() -> None:
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    gc.unfreeze()  # Extension modules report what is alive at the end as leaked.
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        for reason, count in not_judged(reporter.stats.get("skipped", ())).items():
            # Behind the last line of pytest itself.
            sys.stdout.write(f"NOT JUDGED: {count} {'test' if count == 1 else 'tests'}: {reason}\n")


def not_judged(skipped: Iterable[pytest.TestReport]) -> dict[str, int]:
    """How many tests were skipped for lack of a program, by the reason."""
    lacking = [report for report in skipped if any(name in report.keywords for name in NEEDS_MORE_THAN_PYTHON)]
    reasons = (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr) for report in lacking)
    return Counter(reason.removeprefix("Skipped: ") for reason in reasons)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: two processes more than there are cores, since part of the time of the fast tests is waiting."""
    return 2 + (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    needed = [mark for mark in NEEDS_MORE_THAN_PYTHON if item.get_closest_marker(mark)]
    if report.skipped and needed and os.environ.get("RACKSPAN_NO_SKIPS") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but RACKSPAN_NO_SKIPS is set and {', '.join(needed)} must run: {report.longrepr}"
    return report
