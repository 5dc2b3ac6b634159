"""The mutation tester: which faults it makes of a module, and whether it distinguishes a reported one from an unreported one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MODULE = '''"""A till."""

from enum import Enum, auto
from typing import Final, TypeAlias

RATE: Final = 2
Prices = list[int]
Till: TypeAlias = "Prices | None"


class Coin(Enum):
    CENT = auto()


@property
def total(prices: Prices) -> int:
    """The sum."""
    if not prices:
        raise ValueError("no prices; " + "add one")
    return sum(prices) * RATE
'''


@pytest.mark.slow
def test_faults_are_made_of_constants_conditions_results_and_refusals_and_not_of_types_or_prose(tmp_path: Path) -> None:
    from tools.mutation.mutants import ModuleFaults

    (tmp_path / "till.py").write_text(MODULE, encoding="utf-8")
    mutants = [mutant for mutant in ModuleFaults("till.py", tmp_path) if mutant is not None]
    assert sorted({(mutant.before, mutant.after) for mutant in mutants}) == [
        ('RATE: Final = 2', 'RATE: Final = 3'),
        ('RATE: Final = 2', 'RATE: Final = None'),
        ('if not prices:', 'if False:'),
        ('if not prices:', 'if True:'),
        ('if not prices:', 'if prices:'),
        ('raise ValueError("no prices; " + "add one")', 'pass'),
        ('return sum(prices) * RATE', 'return None'),
        ('return sum(prices) * RATE', 'return sum(None) * RATE'),
        ('return sum(prices) * RATE', 'return sum(prices) / RATE'),
    ]  # fmt: skip
    assert {mutant.function for mutant in mutants} == {"", "total"}
    assert [mutant.after for mutant in mutants if mutant.removes] == [
        "if True:",
        "if False:",
        "pass",
        "return None",
    ]


OUTBOX = '''"""An outbox."""

log = getLogger(__name__)


async def send(self, letters: list[str], timeout_ms: int = 30) -> None:
    try:
        async with self.lock:
            self.sent[letters[0]] = timeout_ms / 1000
            self.writer.write(sorted(letters))
            await self.writer.flush()
    except OSError:
        log.warning("not sent")
        self.lost = True
    finally:
        self.writer.close()
'''


@pytest.mark.slow
def test_faults_of_meaning_are_what_is_forgotten_confused_or_in_the_wrong_order(tmp_path: Path) -> None:
    from tools.mutation.mutants import ModuleFaults

    (tmp_path / "outbox.py").write_text(OUTBOX, encoding="utf-8")
    mutants = [mutant for mutant in ModuleFaults("outbox.py", tmp_path) if mutant is not None and mutant.removes]
    write, flush = "self.writer.write(sorted(letters))", "await self.writer.flush()"
    item = "self.sent[letters[0]] = timeout_ms / 1000"
    assert {(mutant.before, mutant.after) for mutant in mutants} == {
        (write, "pass"),
        (flush, "pass"),
        ("self.writer.close()", "pass"),
        ('log.warning("not sent")', "pass"),
        (item, "pass"),
        (item, "self.sent[letters[0]] = timeout_ms"),
        ("self.lost = True", "pass"),
        ("async with self.lock:", "if True:"),
        ("except OSError:", "except ():"),
        ('log.warning("not sent") self.lost = True', "pass"),
        (write, "self.writer.write(list(letters))"),
        (f"{item} {write}", f"{write} {item}"),
        (f"{write} {flush}", f"{flush} {write}"),
        ("async def send(self, letters: list[str], timeout_ms: int = 30) -> None:",
         "async def send(self, letters: list[str], timeout_ms: int = 30000) -> None:"),
    }  # fmt: skip


VERDICTS = """
from tools.mutation import runs
from tools.mutation.mutants import ModuleFaults

tests = runs.record(["tests/flow/test_certificate.py"], "not slow", ["src/rackspan/flow"])
mutants = [mutant for mutant in ModuleFaults("src/rackspan/flow/certificate.py") if mutant is not None]
changes = {(mutant.before, mutant.after): mutant for mutant in mutants}
unchecked = changes["if cost != lower_bound:", "if False:"]
unstable = changes['order = np.argsort(head, kind="stable")', "order = np.argsort(head, kind=None)"]
for mutant, covering in ((unchecked, tests.covering(unchecked)), (unstable, tests.covering(unstable)), (unstable, [])):
    print(runs.judge(mutant, covering, tests.seconds).outcome.name)
"""


@pytest.mark.soak
def test_a_mutant_that_a_test_reports_is_distinguished_from_one_that_none_reports() -> None:
    """On a real module: the tests of flow report a certificate without its check, and not another kind of sort."""
    ran = subprocess.run([sys.executable, "-c", VERDICTS], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["KILLED", "SURVIVED", "NOT_COVERED"]


def test_a_fault_reaches_the_python_processes_that_a_test_starts(tmp_path: Path) -> None:
    from tools.mutation.child import sitecustomize as child

    fault = tmp_path / "fault"
    fault.write_text(f"{ROOT / 'src/rackspan/errors.py'}\nplanted = 7\n", encoding="utf-8")
    program = (
        "import importlib.util as u; print(u.find_spec('rackspan.errors').loader.get_code('rackspan.errors').co_names)"
    )
    environment = os.environ | {child.FAULT: str(fault), "PYTHONPATH": str(Path(child.__file__).parent)}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout == "('planted',)\n"
    assert (tmp_path / "fault.loaded").exists()


@pytest.mark.slow
def test_a_fault_reaches_a_plugin_whose_asserts_another_pytest_rewrites(tmp_path: Path) -> None:
    from tools.mutation.child import sitecustomize as child

    plugin = ROOT / "src/rackspan/testing/plugin.py"
    text = plugin.read_text(encoding="utf-8").replace('"rackspan_cluster_scope"', '"planted_scope"')
    (tmp_path / "fault").write_text(f"{plugin}\n{text}", encoding="utf-8")
    (tmp_path / "test_it.py").write_text("def test_it(pytestconfig):\n    pytestconfig.getini('planted_scope')\n")
    environment = os.environ | {child.FAULT: str(tmp_path / "fault"), "PYTHONPATH": str(Path(child.__file__).parent)}
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)]
    assert subprocess.run(words, env=environment, capture_output=True, cwd=tmp_path).returncode == 0


NOTHING_RUN = """
from tools.mutation import runs

print(len(runs.record(["tests/test_text.py"], "java", ["src/rackspan/flow"], may_fail=True).seconds))
runs.record(["tests/no_such_file.py"], "not slow", ["src/rackspan/flow"], may_fail=True)
"""


def test_only_modules_of_other_projects_are_imported_before_a_fault_is_planted() -> None:
    """One of benchmarks imports rackspan: whatever was imported by then is no mutant."""
    from tools.mutation.runs import is_foreign

    own = ("rackspan.model", "tests.depth", "tools.tidy", "benchmarks._in_process", "examples.custom_placer")
    assert [name for name in (*own, "numpy.linalg", "testpath") if is_foreign(name)] == ["numpy.linalg", "testpath"]


@pytest.mark.soak
def test_a_recording_that_ran_no_test_for_another_reason_than_their_marks_is_an_error() -> None:
    """A plug-in that could not be imported left all rows of a page untried, and the page passed."""
    ran = subprocess.run([sys.executable, "-c", NOTHING_RUN], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("0\n", 1)
    assert "RuntimeError: the tests of tests/no_such_file.py fail without a mutant (status 4)" in ran.stderr


def occurrences(text: str, path: str) -> list[range]:
    """The lines (1-based) of the file that are this text, joined by spaces as `Mutant.before` is."""
    lines = [line.strip() for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]
    return [
        range(first + 1, last + 1)
        for first in range(len(lines))
        if lines[first] and text.startswith(lines[first])
        for last in range(first + 1, len(lines) + 1)
        if " ".join(lines[first:last]) == text
    ]


def test_a_line_that_python_does_not_execute_is_judged_by_the_tests_of_its_statement() -> None:
    """A row of a constant, whose loop is what is executed."""
    from tools.mutation.coverage_map import TestMap
    from tools.mutation.mutants import ModuleFaults

    path = "src/rackspan/client/config/keys.py"
    lines = (ROOT / path).read_text().splitlines()
    row = next(number for number, line in enumerate(lines, 1) if '"ssl.keystore.key", "tls.key_pem"' in line)
    loop = max(number for number, line in enumerate(lines[:row], 1) if line.startswith("    for "))
    test = "tests/client/config/test_keys.py::test_it"
    faults = ModuleFaults(path)
    mutant = next(faults[at] for at, fault in enumerate(faults.faults) if fault.first_line == row)
    assert mutant is not None
    for line, covering in ((loop, [test]), (loop - 1, [])):
        assert TestMap({path: {line: [test]}}, {test: 1.0}, ()).covering(mutant) == covering


def test_the_lines_of_accepted_survivors_are_lines_of_today() -> None:
    from tools.mutation.accepted import ACCEPTED, read_accepted

    assert [one for one in read_accepted(ACCEPTED) if not occurrences(one.before, one.path)] == []


@pytest.mark.soak
def test_accepted_survivors_have_reasons_and_are_mutants_of_today() -> None:
    """An entry whose line has changed accepts nothing any more and has to go."""
    from tools.mutation.accepted import ACCEPTED, read_accepted
    from tools.mutation.mutants import ModuleFaults

    accepted = read_accepted(ACCEPTED)
    today: set[tuple[str, str, str]] = set()
    for path in {one.path for one in accepted}:
        faults = ModuleFaults(path)
        named = [lines for one in accepted if one.path == path for lines in occurrences(one.before, path)]
        for number, fault in enumerate(faults.faults):
            # A mutant takes 20 ms to make: only those of lines that an entry names, or of the head above them.
            if any(fault.first_line <= lines[-1] and lines[0] <= fault.last_line + 1 for lines in named):
                mutant = faults[number]
                today |= {mutant.key} if mutant is not None else set()
    assert [one for one in accepted if one.key not in today] == []


def test_an_accepted_survivor_without_a_reason_is_refused(tmp_path: Path) -> None:
    from tools.mutation.accepted import read_accepted

    file = tmp_path / "accepted.txt"
    file.write_text("# What this is.\n\na.py\n- x = 1\n+ x = 2\nboth are enough\n", encoding="utf-8")
    assert [one.reason for one in read_accepted(file)] == ["both are enough"]
    file.write_text("a.py\n- x = 1\n+ x = 2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a reason"):
        read_accepted(file)
