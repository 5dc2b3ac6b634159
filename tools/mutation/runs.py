"""Runs of tests in forked processes: one that records which test executes which line, and one for each mutant.

The parent imports what the tests import from other projects, and nothing of rackspan. A child then imports rackspan
afresh, one module of it from the mutant's text, and runs the tests that execute the mutant's lines until one fails.
The Python processes that a test starts have the same fault and are recorded too (child/sitecustomize.py).
Nothing is written into the work tree.
"""

import faulthandler
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
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest
from hypothesis import Phase, settings

from tools.mutation.child import sitecustomize as child
from tools.mutation.coverage_map import FIXTURE, TestMap
from tools.mutation.mutants import ROOT, Mutant

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # Threads do not survive a fork.

MEMORY_MAX_BYTES: Final = 8 << 30
"""Address space of a child: a mutant whose loop grows a list ends with MemoryError instead of taking the machine."""

TIME_FACTOR: Final = 10
CPU_LEAST_SECONDS: Final = 20
ELAPSED_LEAST_SECONDS: Final = 60
TEST_LEAST_SECONDS: Final = 15
"""A mutant whose tests take ten times as long, and at least so long, counts as killed: it loops, or waits for ever."""

_OF_EACH_CHILD: Final = frozenset({"conftest", "__main__", "_pytest", "coverage"})


class Outcome(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    NOT_COVERED = "no test executes it"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What became of a mutant, and the test that failed or did not end, if there is one."""

    outcome: Outcome
    killer: str = ""


def record(folders: Sequence[str], marks: str, sources: Sequence[str], *, may_fail: bool = False) -> TestMap:
    """Run the tests of the folders once, and record what they execute below the `sources`.

    Raises RuntimeError when one does not pass: nothing can be learnt from mutants then. With `may_fail` the tests that
    fail are left out instead.
    """
    with tempfile.TemporaryDirectory() as scratch:
        result = Path(scratch, "map")
        status = _in_child(lambda: _record(folders, marks, sources, result), cpu_seconds=None, elapsed_seconds=7200)
        # Of pytest: 1 some tests failed, 5 none was selected. With any other number nothing was run.
        if status not in ((0, 1, 5) if may_fail else (0,)) or not result.exists():
            raise RuntimeError(
                f"the tests of {', '.join(folders)} fail without a mutant (status {status}); repair them"
            )
        loaded: TestMap = pickle.loads(result.read_bytes())  # noqa: S301 - written by our own child
    import_foreign(loaded)
    return loaded


def is_foreign(name: str) -> bool:
    """Whether a module is of another project: a child imports those of this project with its fault, and pytest as its own."""
    top = name.partition(".")[0]
    return top not in _OF_EACH_CHILD and not any((folder / top).is_dir() for folder in (ROOT, ROOT / "src"))


def import_foreign(recorded: TestMap) -> None:
    """Import what the tests import from other projects, so that no child has to."""
    for name in recorded.foreign_modules:
        with suppress(Exception):
            importlib.import_module(name)


def judge(mutant: Mutant, tests: Sequence[str], seconds: Mapping[str, float]) -> Judgement:
    """Run the tests, in order, against the mutant; `seconds` is how long each takes without it."""
    if not tests:
        return Judgement(Outcome.NOT_COVERED)
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        fault = Path(scratch, "fault")
        fault.write_text(f"{ROOT / mutant.path}\n{mutant.module_text}", encoding="utf-8")
        status, last = _try(tests, seconds, fault)
        if status == 0 and not Path(f"{fault}.loaded").exists():
            raise RuntimeError(f"the tests did not import the mutant of {mutant.path}; report this")
    return Judgement(Outcome.SURVIVED) if status == 0 else Judgement(Outcome.KILLED, last)


def failing(tests: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Those of the tests that fail without a fault: they fail now and then, or under load."""
    failed, remaining = list[str](), list(tests)
    while remaining:
        status, last = _try(remaining, seconds, None)
        if status == 0 or last not in remaining:
            return failed
        failed.append(last)
        remaining = remaining[remaining.index(last) + 1 :]
    return failed


def _try(tests: Sequence[str], seconds: Mapping[str, float], fault: Path | None) -> tuple[int, str]:
    """The status of pytest for the tests, with the fault, and the last of them that was begun."""
    together = sum(seconds.get(test, 0.0) for test in tests)
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        begun = Path(scratch, "begun")
        status = _in_child(
            lambda: _run(tests, seconds, fault, begun),
            CPU_LEAST_SECONDS + int(TIME_FACTOR * together),
            ELAPSED_LEAST_SECONDS + TIME_FACTOR * together,
        )
        return status, begun.read_text(encoding="utf-8") if begun.exists() else ""


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
            with suppress(ProcessLookupError):  # What its tests started and did not end.
                os.killpg(pid, signal.SIGKILL)
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
    """Runs the chosen tests in their order. One that takes far longer than without the fault ends the process."""

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float], begun: Path) -> None:
        self._rank = {test: rank for rank, test in enumerate(tests)}
        self._seconds = seconds
        self._begun = begun

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._rank), key=lambda item: self._rank[item.nodeid]
        )

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._begun.write_text(nodeid, encoding="utf-8")
        limit = TEST_LEAST_SECONDS + TIME_FACTOR * self._seconds.get(nodeid, 0.0)
        faulthandler.dump_traceback_later(limit, exit=True, file=2)


def _run(tests: Sequence[str], seconds: Mapping[str, float], fault: Path | None, begun: Path) -> int:
    if fault is not None:
        os.environ[child.FAULT] = str(fault)
        _lead_children()
        child.plant(str(fault))
    files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
    return _pytest(["-x", "-o", "timeout=0", *files], _Chosen(tests, seconds, begun))


def _lead_children() -> None:
    """Let the Python processes that a test starts import child/sitecustomize.py."""
    paths = [str(Path(child.__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)


class _Recorder(_Shallow):
    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    def _switch(self, context: str) -> None:
        self._coverage.switch_context(context)
        os.environ[child.CONTEXT] = context

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        began = time.monotonic()
        self._switch(f"{FIXTURE}{item.nodeid}")
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - began
            self._switch("")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self._switch(item.nodeid)
        try:
            return (yield)
        finally:
            self._switch(f"{FIXTURE}{item.nodeid}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self.failed.add(report.nodeid)


def _record(folders: Collection[str], marks: str, sources: Sequence[str], result: Path) -> int:
    from coverage import Coverage, CoverageData

    data_of_children = result.with_name("children")
    data_of_children.mkdir()
    below = [str(ROOT / source) for source in sources]
    os.environ |= {child.LINES: str(data_of_children), child.SOURCES: os.pathsep.join(below), child.CONTEXT: ""}
    _lead_children()
    coverage = Coverage(data_file=None, source=below, config_file=False, messages=False)
    coverage.start()
    recorder = _Recorder(coverage)
    status = _pytest(["-m", marks, *folders], recorder)
    coverage.stop()
    lines: dict[str, dict[int, set[str]]] = {}
    of_children = [CoverageData(str(file)) for file in data_of_children.iterdir()]
    for data in of_children:
        with suppress(Exception):  # Of a process that was killed while it wrote.
            data.read()
    for data in (coverage.get_data(), *of_children):
        for file in data.measured_files():
            of_file = lines.setdefault(str(Path(file).relative_to(ROOT)), {})
            for line, contexts in data.contexts_by_lineno(file).items():
                of_file.setdefault(line, set()).update(contexts)
    seconds = {test: spent for test, spent in recorder.seconds.items() if test not in recorder.failed}
    foreign = [name for name in sys.modules if is_foreign(name)]
    result.write_bytes(pickle.dumps(TestMap(lines, seconds, foreign, sorted(recorder.failed))))
    return status
