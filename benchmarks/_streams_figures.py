"""The figures behind docs/pictures: `python -m benchmarks._streams_figures [SECONDS [TASKSxCLIENTS ...]]`.

Writes docs/pictures/streams.json, each figure as soon as it is measured, and keeps those of other sizes, so that Kafka's
long runs can be added one by one. SECONDS, by the clock, is how long Kafka's Java may take for the runs of one problem.
Seconds in the file are processor time: ours the median of five runs, Kafka's of the later half of its runs in one JVM. Each
figure stands with the command that measured it, its commit, the day and the load of the machine. tools/pictures.py draws them.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks import streams
from benchmarks._measure import machine
from benchmarks._streams_problems import document
from rackspan.disk import replace_file
from rackspan.streams import replay, settings
from tests.compat.streams_oracle import KAFKA_VERSION, jvm_flags

FILE: Final = Path(__file__).parent.parent / "docs" / "pictures" / "streams.json"
STRATEGIES: Final = ("min_traffic", "balance_subtopology")
KAFKA_FINISHES: Final = 1_000
"""Tasks beyond which Kafka's Java is not run."""
SIZES: Final = (
    *((60, 10), (120, 15), (200, 20), (300, 30), (600, 60), (1_000, 100)),
    *((3_000, 200), (10_000, 500), (30_000, 700), (100_000, 1_000)),
)
COST_AT: Final = (600, 60)


def main(seconds: int, sizes: list[tuple[int, int]]) -> None:
    _save(
        {
            "machine": machine(),
            "kafka": KAFKA_VERSION,
            "java": " ".join(jvm_flags()),
            "cost": _cost(),
            "cost_run": _run_of(""),
        }
    )
    for tasks, clients in sizes:
        for strategy in STRATEGIES:
            row = _timed(tasks, clients, strategy, seconds)
            print(json.dumps(row), flush=True)
            _save({}, row)


def _timed(tasks: int, clients: int, strategy: str, seconds: int) -> dict[str, Any]:
    group = streams._under(document(tasks, clients), strategy)
    ours, spent = streams._ours(group)
    row = {"tasks": tasks, "clients": clients, "strategy": strategy, "rackspan_seconds": statistics.median(spent)}
    row |= _run_of(f" {seconds} {tasks}x{clients}")
    if tasks > KAFKA_FINISHES:
        return row
    before = _children_seconds()
    kafka = streams._kafka(tasks, group, seconds)
    if kafka is None:
        # By the clock it had `seconds`; on a busy machine that is less than it looks, so what it really got is kept.
        return {**row, "kafka_seconds": None, "kafka_not_within_seconds": round(_children_seconds() - before)}
    assert kafka.cost == ours["cost"], (kafka.cost, ours["cost"])
    found = {"kafka_seconds": kafka.warm, "kafka_first_run_seconds": kafka.cold, "kafka_runs": len(kafka.seconds)}
    return {**row, **found}


def _run_of(arguments: str) -> dict[str, Any]:
    """Where a figure comes from: the command, the commit, the day (UTC) and the load of the machine as it began."""
    changed = _git("status", "--porcelain", "--", "src", "benchmarks", "tests")
    commit = _git("rev-parse", "--short=10", "HEAD") + ("-dirty" if changed else "")
    return {
        "command": f"python -m benchmarks._streams_figures{arguments}",
        "commit": commit,
        "day": datetime.now(UTC).date().isoformat(),
        "load": round(os.getloadavg()[0], 1),
    }


def _git(*words: str) -> str:
    root = FILE.parent.parent.parent
    return subprocess.run(("git", *words), cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def _children_seconds() -> float:
    """Processor time of all processes that were started and have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _cost() -> dict[str, Any]:
    """Partitions across racks by strategy, of one group that comes to rest under each."""
    tasks, clients = COST_AT
    group = document(tasks, clients)
    group["config"]["num_standbys"] = 1
    replayed = replay({"a group": group}, settings([], [], []))
    return {"sources": sum(len(task["source"]) for task in group["tasks"]), **replayed["problems"][0]}


def _save(head: dict[str, Any], row: dict[str, Any] | None = None) -> None:
    kept: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"time": []}
    rows = {_key(one): one for one in kept["time"]}
    if row is not None:
        rows[_key(row)] = row
    found = {**kept, **head, "time": [rows[key] for key in sorted(rows)]}
    replace_file(FILE, json.dumps(found, indent=1) + "\n")


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["tasks"], row["clients"], row["strategy"]


def _size(text: str) -> tuple[int, int]:
    tasks, _, clients = text.partition("x")
    return int(tasks), int(clients)


if __name__ == "__main__":
    limit, *chosen = sys.argv[1:] or ["60"]
    main(int(limit), [_size(text) for text in chosen] or list(SIZES))
