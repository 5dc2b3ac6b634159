"""How long a command takes to start, in starts of an empty Python: the program's help, and the audit of a small file."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from benchmarks._measure import Figures, machine, run_process, with_bytecode

TURNS: Final = 15
PARTITIONS: Final = 34
LIMITS: Final = {"rackspan --help": 14, "rackspan audit": 32}
"""Times an empty Python, at most."""


def small_snapshot() -> dict[str, object]:
    """Six brokers in three racks, and one topic."""
    brokers = [{"id": broker, "rack": f"r{(broker - 1) % 3 + 1}"} for broker in range(1, 7)]
    partitions = [
        {"partition": number, "leader": first, "replicas": (replicas := [first, first + 1, first + 2]), "isr": replicas}
        for number in range(PARTITIONS)
        for first in [number % 4 + 1]
    ]
    topic = {"name": "orders", "config": {"min.insync.replicas": "2"}, "partitions": partitions}
    return {"version": 1, "brokers": brokers, "topics": [topic]}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snapshot.json"
        file.write_text(json.dumps(small_snapshot()))
        environment = with_bytecode(folder)
        rackspan = (sys.executable, "-m", "rackspan")
        runs = {
            "an empty Python": (sys.executable, "-c", "pass"),
            "rackspan --help": (*rackspan, "--help"),
            "rackspan audit": (*rackspan, "audit", "--snapshot", str(file)),
        }
        for words in runs.values():
            run_process(words, (0, 1, 2), environment)
        turns = [[run_process(words, (0, 1, 2), environment) for words in runs.values()] for _ in range(TURNS)]
    print(f"\nStarts, {TURNS} turns, {machine()}; the audit reads a file of {PARTITIONS} partitions")
    columns = [list(column) for column in zip(*turns, strict=True)]
    empty = Figures(tuple(process.cpu_seconds for process in columns[0]))
    for name, column in zip(runs, columns, strict=True):
        elapsed = Figures(tuple(process.seconds for process in column))
        ratio = Figures(tuple(process.cpu_seconds for process in column)).over(empty)
        limit = f", at most {LIMITS[name]}" if name in LIMITS else ""
        print(f"  {name:16} {elapsed.text('s', 3)}; processor time {ratio.text('times', 1)}{limit}")
