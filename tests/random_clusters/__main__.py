"""`python -m tests.random_clusters --first 0 --count 1000 --judge remedies --out FOLDER`: faults by kind, each with its smallest cluster."""

import argparse
from pathlib import Path

from tests.random_clusters.judged import JUDGES
from tests.random_clusters.trials import trial, write_kinds

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--first", type=int, default=0)
parser.add_argument("--count", type=int, default=100)
parser.add_argument("--judge", choices=[*JUDGES], action="append")
parser.add_argument("--state", default="", help="with this state of states.py for certain, and no other")
parser.add_argument("--out", type=Path, required=True)
given = parser.parse_args()
for name in given.judge or JUDGES:
    seeds = range(given.first, given.first + given.count)
    counts = write_kinds(trial(name, seeds, given.state), given.out, given.state)
    print(f"{name}: {given.count} clusters, {counts.total()} faults of {len(counts)} kinds", flush=True)
    for words, count in counts.most_common():
        print(f"  {count} {words}", flush=True)
