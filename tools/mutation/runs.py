"""Runs of tests in forked processes: one that records which test executes which line, and one for each mutant.

The parent imports what the tests import from other projects, and nothing of rackspan. A child then imports rackspan
afresh, one module of it from the mutant's text, and runs the tests that execute the mutant's lines until one fails.
Nothing is written into the work tree.
"""

import importlib
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from hypothesis import Phase, settings

from tools.mutation.mutants import ROOT, Mutant

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Threads do not survive a fork.

MEMORY_MAX_BYTES: Final = 8 << 30
"""Address space of a child: a mutant whose loop grows a list ends with MemoryError instead of taking the machine."""

TIME_FACTOR: Final = 10
CPU_LEAST_SECONDS: Final = 20
ELAPSED_LEAST_SECONDS: Final = 45
"""A mutant whose tests take ten times as long, and at least so long, counts as killed: it loops, or waits for ever."""


class Outcome(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    NOT_COVERED = "no test executes it"


@dataclass(frozen=True, slots=True)
class TestMap:
    """Which test executes which line: `lines[path][line]` are test ids; `seconds` is the duration of each test."""

    __test__ = False

    lines: Mapping[str, Mapping[int, Sequence[str]]]
    seconds: Mapping[str, float]
    foreign_modules: Sequence[str]

    def covering(self, mutant: Mutant) -> list[str]:
        """The tests that execute a line of the mutant, the quickest first.

        A line executed on import alone, such as a table, belongs to every test of the module and of the test files that
        name it.
        """
        by_line = self.lines.get(mutant.path, {})
        tests = {test for line in range(mutant.first_line, mutant.last_line + 1) for test in by_line.get(line, ())}
        # Python keeps one line number of a table of constants.
        if "" in tests or not (tests or mutant.function):
            naming = _naming(mutant.path)
            tests = {test for tests in by_line.values() for test in tests}
            tests |= {test for test in self.seconds if naming(test.partition("::")[0])}
        if tests == {""}:
            tests = set(self.seconds)
        return sorted(tests - {""}, key=lambda test: (self.seconds.get(test, 0.0), test))


def _naming(path: str) -> Callable[[str], bool]:
    """Whether a file of tests names the module at `path`."""
    module = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cache
    def names(file: str) -> bool:
        return module in (ROOT / file).read_text(encoding="utf-8")

    return names


def record(folders: Sequence[str], marks: str, source: str, *, may_fail: bool = False) -> TestMap:
    """Run the tests of the folders once, and record what they execute below `source`.

    Raises RuntimeError when one does not pass: nothing can be learnt from mutants then. With `may_fail` the tests that
    fail are left out instead.
    """
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch, "map")
        status = _in_child(lambda: _record(folders, marks, source, result), cpu_seconds=None, elapsed_seconds=3600)
        # Of pytest: 1 some tests failed, 5 none was selected. With any other number nothing was run.
        if status not in ((0, 1, 5) if may_fail else (0,)) or not result.exists():
            raise RuntimeError(
                f"the tests of {', '.join(folders)} fail without a mutant (status {status}); repair them"
            )
        loaded: TestMap = pickle.loads(result.read_bytes())  # noqa: S301 - written by our own child
    for name in loaded.foreign_modules:
        with suppress(Exception):
            importlib.import_module(name)
    return loaded


def judge(mutant: Mutant, tests: Sequence[str], seconds: float) -> Outcome:
    """Run the tests, in order, against the mutant; `seconds` is their duration without it."""
    if not tests:
        return Outcome.NOT_COVERED
    cpu = CPU_LEAST_SECONDS + int(TIME_FACTOR * seconds)
    elapsed = ELAPSED_LEAST_SECONDS + TIME_FACTOR * seconds
    status = _in_child(lambda: _run_mutant(mutant, tests), cpu, elapsed)
    if status == _NOT_LOADED:
        raise RuntimeError(f"the tests did not import the mutant of {mutant.path}; report this")
    return Outcome.SURVIVED if status == 0 else Outcome.KILLED


_NOT_LOADED: Final = 90


def _in_child(work: Callable[[], int], cpu_seconds: int | None, elapsed_seconds: float) -> int:
    """Fork, and return the exit status of `work`; a negative number for a signal."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _child(work, cpu_seconds)
    deadline = time.monotonic() + elapsed_seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        time.sleep(0.02)


def _child(work: Callable[[], int], cpu_seconds: int | None) -> NoReturn:
    status = 1
    try:
        os.setpgid(0, 0)
        silence = os.open(os.environ.get("MUTATION_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        if cpu_seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX_BYTES, MEMORY_MAX_BYTES))
        os.chdir(ROOT)
        status = work()
    finally:
        os._exit(status)


def _pytest(arguments: Sequence[str], plugin: object) -> int:
    return int(
        pytest.main(["-q", "--no-header", "--tb=line", "--capture=sys", "--assert=plain", *arguments], plugins=[plugin])
    )


class _Shallow:
    """As many examples as RACKSPAN_DEPTH sets, without shrinking: that a test fails is enough."""

    @staticmethod
    def pytest_collection() -> None:
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutation", settings(), phases=phases, database=None, report_multiple_bugs=False)
        settings.load_profile("mutation")


class _Chosen(_Shallow):
    """Runs the chosen tests in their order, then the others of the same modules, where fixtures may be shared."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._rank = {test: rank for rank, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._rank), key=lambda item: self._rank[item.nodeid]
        )


def _run_mutant(mutant: Mutant, tests: Sequence[str]) -> int:
    loaded = _plant(mutant)
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    status = _pytest(["-x", *files], _Chosen(tests))
    return status if loaded or status else _NOT_LOADED


def _plant(mutant: Mutant) -> list[str]:
    """Import the mutant's text wherever its module is imported; the list receives the names it was imported by."""
    path, loaded = str(ROOT / mutant.path), list[str]()
    get_code = SourceFileLoader.get_code

    def mutated_code(self: SourceFileLoader, fullname: str) -> Any:
        if self.path != path:
            return get_code(self, fullname)
        loaded.append(fullname)
        return compile(mutant.module_text, path, "exec", dont_inherit=True)

    setattr(SourceFileLoader, "get_code", mutated_code)  # noqa: B010 - for this process alone, which is a fork
    return loaded


class _Recorder(_Shallow):
    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - began
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)


def _record(folders: Collection[str], marks: str, source: str, result: Path) -> int:
    from coverage import Coverage

    coverage = Coverage(data_file=None, source=[str(ROOT / source)], config_file=False, messages=False)
    coverage.start()
    recorder = _Recorder(coverage)
    status = _pytest(["-m", marks, *folders], recorder)
    coverage.stop()
    data = coverage.get_data()
    lines = {str(Path(file).relative_to(ROOT)): data.contexts_by_lineno(file) for file in data.measured_files()}
    seconds = {test: spent for test, spent in recorder.seconds.items() if test not in recorder.failed}
    own = ("rackspan", "tests", "tools", "conftest", "__main__", "_pytest", "coverage")
    foreign = [name for name in sys.modules if not name.startswith(own)]
    result.write_bytes(pickle.dumps(TestMap(lines, seconds, foreign)))
    return status
