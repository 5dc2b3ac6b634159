"""What every benchmark shares: runs as whole processes, medians and ranges, and the machine in two numbers."""

import os
import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
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
    """A whole process: elapsed seconds, processor seconds, and the most memory it held."""

    seconds: float
    megabytes: float
    cpu_seconds: float


def machine() -> str:
    with Path("/proc/meminfo").open() as lines:
        kilobytes = int(next(lines).split()[1])
    return f"{os.cpu_count()} cores, {round(kilobytes / 2**20)} GB of memory"


def with_bytecode(folder: str) -> dict[str, str]:
    """An environment in which Python keeps what it has compiled, in `folder`: a start is no compilation, as where installed."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return others | {"PYTHONPYCACHEPREFIX": folder}


def run_process(
    words: Sequence[str], ok: Sequence[int] = (0,), environment: Mapping[str, str] | None = None
) -> Process:
    started = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in ok:
        raise RuntimeError(f"{' '.join(words)}: exit code {child.returncode}")
    return Process(time.perf_counter() - started, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime)


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def processor_seconds(without: Collection[int] = ()) -> float:
    """What this process, its children and theirs have used so far: what a run costs, however many share the machine.

    Processes `without`, by id, and their children are left out. From Linux's /proc; of children that ended, only those waited for are counted.
    """
    fields = {pid: stat for pid in _pids() if (stat := _stat(pid))}
    ours = {os.getpid()}
    # A child may have a lower id than its parent, once ids have gone round.
    while more := {pid for pid, stat in fields.items() if int(stat[1]) in ours and pid not in without} - ours:
        ours |= more
    ticks = sum(sum(map(int, fields[pid][11:15])) for pid in ours if pid in fields)
    return ticks / os.sysconf("SC_CLK_TCK")


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold anything; none where the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
