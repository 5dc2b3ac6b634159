"""The packages that are judged by mutants, and the tests that judge each: those of ARCHITECTURE.md's table."""

import pickle
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from tools.mutation import runs
from tools.mutation.coverage_map import FIXTURE, TestMap
from tools.mutation.mutants import ROOT

PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    "kafka_bytes": ("tests/kafka_bytes",),
    "flow": ("tests/flow",),
    "model": ("tests/model",),
    "audit": ("tests/audit", "tests/scenarios"),
    "placement": ("tests/placement",),
    "acks": ("tests/acks", "tests/gateway/core/acknowledgement", "tests/scenarios"),
    "reassign": ("tests/reassign", "tests/scenarios"),
    "restart": ("tests/restart", "tests/scenarios"),
    "streams": ("tests/streams",),
    "consumers": ("tests/consumers",),
    "plan": ("tests/plan", "tests/apply", "tests/scenarios"),
    "clients": ("tests/clients", "tests/scenarios"),
    "traffic": ("tests/traffic", "tests/scenarios"),
    "advice": ("tests/advice", "tests/scenarios"),
    "cluster/core": ("tests/cluster/core", "tests/simulation"),
    "cluster/handlers": ("tests/cluster", "tests/conformance"),
    "cluster/net": ("tests/cluster", "tests/conformance"),
    "cluster/host": ("tests/cluster", "tests/conformance"),
    "sources": ("tests/sources",),
    "apply": ("tests/apply",),
    "client": ("tests/client", "tests/sources"),
    "cli": ("tests/cli", "tests/scenarios", "tests/how_to", "tests/reference"),
    "gateway": ("tests/gateway", "tests/scenarios"),
    "producers": ("tests/producers",),
    "assignor": ("tests/assignor",),
    "testing": ("tests/testing",),
    "kafka_process": ("tests/kafka_process",),
    "kafka_source": ("tests/kafka_source", "tests/scenarios"),
    "pipeline": ("tests/pipeline", "tests/scenarios"),
}
"""The folders of tests by the package below src/rackspan. No other test counts for the package."""

ALONE: Final = "(java or kafka or spark or browser or package)"
FAST: Final = f"not {ALONE} and not rest and not soak"
"""What `make test` runs in Python alone: what runs for every mutant."""

SLOW: Final = f"{ALONE} and not package and not rest and not soak"
"""What `make test` runs with Java, Kafka, Spark or a browser: only for a line that no other test executes."""

RECORDED: Final = ROOT / ".mutation"


def modules_of(package: str, root: Path = ROOT) -> list[str]:
    """The package's modules as paths below `root`, in order."""
    folder = root / "src" / "rackspan" / package
    alone = folder.with_suffix(".py")
    return sorted(str(path.relative_to(root)) for path in ([alone] if alone.exists() else folder.rglob("*.py")))


@dataclass(frozen=True, slots=True)
class Recording:
    """What a package's tests execute, and the digests of the files of tests and of the modules at that time."""

    tests: TestMap
    digests: Mapping[str, str]


def recording(package: str, marks: str = FAST, *, again: bool = False) -> TestMap:
    """The lines that the package's tests execute, kept in .mutation/.

    Only those files of tests are run again that have changed, or whose tests execute a module that has changed; all of
    them with `again`, which is for a changed helper of tests.
    """
    file = _file(package, marks)
    known = Recording(TestMap({}, {}, ()), {})
    if file.exists() and not again:
        known = pickle.loads(file.read_bytes())  # noqa: S301 - written below
    folders = PACKAGES[package]
    together = [other for other in PACKAGES if PACKAGES[other] == folders]
    modules = [module for other in together for module in modules_of(other)]
    test_files = sorted(
        path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("test_*.py")
    )
    today = {path: _digest(path) for path in (*test_files, *modules)}
    changed = {path for path in today if known.digests.get(path) != today[path]}
    stale = sorted(changed.intersection(test_files) | _test_files(known.tests, changed))
    stale = [path for path in stale if path in today]
    tests = _without(known.tests, {*stale, *(set(known.digests) - set(today))}, changed)
    if stale:
        # Of a module that is no folder, coverage.py takes the folder that it is in.
        sources = sorted({str(Path(module).parent) for module in modules})
        # All of a folder at once takes a tenth of the collecting of its files one by one.
        run = runs.record(stale if known.digests else folders, marks, sources, may_fail=True)
        for test in run.failed:
            print(f"{test}: left out, it does not pass without a fault or is skipped", flush=True)
        tests = _merged(tests, run)
    else:
        runs.import_foreign(tests)
    RECORDED.mkdir(exist_ok=True)
    file.write_bytes(pickle.dumps(Recording(tests, today)))
    return tests


def has_recording(package: str) -> bool:
    """Whether the package's tests with Java have been recorded."""
    return _file(package, SLOW).exists()


def _file(package: str, marks: str) -> Path:
    """Packages that are judged by the same tests are recorded together."""
    return RECORDED / f"{'+'.join(PACKAGES[package]).replace('/', '-')}-{'fast' if marks == FAST else 'slow'}.pickle"


def _digest(path: str) -> str:
    return sha256((ROOT / path).read_bytes()).hexdigest()


def _test_files(tests: TestMap, modules: Collection[str]) -> set[str]:
    contexts = {context for path in modules for line in tests.lines.get(path, {}).values() for context in line}
    return {context.removeprefix(FIXTURE).partition("::")[0] for context in contexts} - {""}


def _without(tests: TestMap, files: Collection[str], modules: Collection[str]) -> TestMap:
    """The map without the tests of the files and without the lines of the modules."""

    def kept(context: str) -> bool:
        return context.removeprefix(FIXTURE).partition("::")[0] not in files

    lines = {
        path: {line: {context for context in contexts if kept(context)} for line, contexts in by_line.items()}
        for path, by_line in tests.lines.items()
        if path not in modules
    }
    seconds = {test: spent for test, spent in tests.seconds.items() if kept(test)}
    return TestMap(lines, seconds, tests.foreign_modules, [test for test in tests.failed if kept(test)])


def _merged(first: TestMap, second: TestMap) -> TestMap:
    lines = {path: {line: set(contexts) for line, contexts in by_line.items()} for path, by_line in first.lines.items()}
    for path, by_line in second.lines.items():
        for line, contexts in by_line.items():
            lines.setdefault(path, {}).setdefault(line, set()).update(contexts)
    foreign = list(dict.fromkeys((*first.foreign_modules, *second.foreign_modules)))
    return TestMap(lines, {**first.seconds, **second.seconds}, foreign, [*first.failed, *second.failed])
