"""The share of small faults that the tests of a package report.

python -m tools.mutation [PACKAGE ...] [--sample N | --all] [--seed S] [--least PERCENT]
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Final

from tools.mutation import runs
from tools.mutation.accepted import ACCEPTED, Accepted, read_accepted
from tools.mutation.mutants import ROOT, ModuleFaults, Mutant
from tools.mutation.packages import FAST, PACKAGES, modules_of
from tools.mutation.runs import Outcome

REPORTS: Final = ROOT / ".mutation"


def sample(package: str, count: int | None, seed: int, only: str = "") -> tuple[int, Iterator[Mutant]]:
    """How many faults the package's modules have, and `count` of their mutants drawn by the seed; all for None."""
    modules = [ModuleFaults(path) for path in modules_of(package) if only in path]
    places = [(module, index) for module in modules for index in range(len(module))]
    if count is not None:
        Random(f"{seed} {package}").shuffle(places)
    return len(places), _first(places, count)


def _first(places: Sequence[tuple[ModuleFaults, int]], count: int | None) -> Iterator[Mutant]:
    given = 0
    for module, index in places:
        if given == count:
            return
        mutant = module[index]
        if mutant is not None:
            given += 1
            yield mutant


def run_package(package: str, arguments: argparse.Namespace, accepted: Sequence[Accepted]) -> bool:
    """Try the package's mutants, print its score and survivors, and say whether the score is enough."""
    reasons = {one.key: one.reason for one in accepted}
    tests = runs.record(PACKAGES[package], FAST, f"src/rackspan/{package}")
    faults, mutants = sample(package, None if arguments.all else arguments.sample, arguments.seed, arguments.only)
    outcomes: Counter[str] = Counter()
    survivors: list[tuple[Mutant, Outcome]] = []
    for mutant in mutants:
        covering = tests.covering(mutant)
        outcome = runs.judge(mutant, covering, sum(tests.seconds[test] for test in covering))
        if outcome is not Outcome.KILLED and mutant.key in reasons:
            outcomes["accepted"] += 1
            continue
        outcomes["killed" if outcome is Outcome.KILLED else "survived"] += 1
        if outcome is not Outcome.KILLED:
            survivors.append((mutant, outcome))
            print(f"{mutant}\n  {outcome.value}; {len(covering)} tests", flush=True)
    tried = outcomes["killed"] + outcomes["survived"]
    percent = 100 * outcomes["killed"] / tried if tried else 100.0
    print(
        f"{package}: {percent:.1f} % killed ({outcomes['killed']} of {tried}, of {faults:,} faults;"
        f" {outcomes['accepted']} accepted), seed {arguments.seed}",
        flush=True,
    )
    _report(package, percent, tried, survivors)
    return percent >= float(arguments.least)


def _report(package: str, percent: float, tried: int, survivors: Sequence[tuple[Mutant, Outcome]]) -> None:
    REPORTS.mkdir(exist_ok=True)
    document = {
        "package": package,
        "killed_percent": round(percent, 1),
        "tried": tried,
        "survivors": [{"mutant": str(mutant), "outcome": outcome.value} for mutant, outcome in survivors],
    }
    name = package.replace("/", "-")
    Path(REPORTS, f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Exit 0 when every package reaches `--least`, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(PACKAGES)}; all by default")
    parser.add_argument("--sample", type=int, default=100, help="mutants of each package (100)")
    parser.add_argument("--all", action="store_true", help="every mutant; hours")
    parser.add_argument("--seed", type=int, default=1, help="draws the sample (1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only modules whose path contains it")
    parser.add_argument("--least", type=float, default=90.0, metavar="PERCENT", help="fail below it (90)")
    arguments = parser.parse_args(words)
    if unknown := [package for package in arguments.packages if package not in PACKAGES]:
        parser.error(f"no such package: {', '.join(unknown)}; one of {', '.join(PACKAGES)}")
    accepted = read_accepted(ACCEPTED)
    enough = [run_package(one, arguments, accepted) for one in arguments.packages or PACKAGES]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
