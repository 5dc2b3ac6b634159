"""What every benchmark shares: runs as whole processes, medians and ranges, and the machine in two numbers."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

RUNS = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """One figure over several runs."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    def text(self, unit: str, digits: int = 2) -> str:
        low, high = min(self.values), max(self.values)
        return f"{self.median:.{digits}f} {unit} ({low:.{digits}f} to {high:.{digits}f})"

    def over(self, other: "Figures") -> "Figures":
        """Run by run, so that a machine whose speed drifts drifts under both."""
        return Figures(tuple(mine / theirs for mine, theirs in zip(self.values, other.values, strict=True)))


@dataclass(frozen=True, slots=True)
class Process:
    """A whole process: seconds on the wall and on processors, and the most memory it held."""

    seconds: float
    megabytes: float
    cpu_seconds: float


def machine() -> str:
    with Path("/proc/meminfo").open() as lines:
        kilobytes = int(next(lines).split()[1])
    return f"{os.cpu_count()} cores, {round(kilobytes / 2**20)} GB of memory"


def run_process(words: Sequence[str], ok: Sequence[int] = (0,)) -> Process:
    started = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in ok:
        raise RuntimeError(f"{' '.join(words)}: exit code {child.returncode}")
    return Process(time.perf_counter() - started, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
