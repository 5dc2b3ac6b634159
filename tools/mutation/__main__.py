"""The share of small faults that the tests of a package report.

    python -m tools.mutation [PACKAGE ...] [--sample N | --all] [--seed S] [--least PERCENT]

Half of a sample are faults of meaning, such as a close that is forgotten, the others are those of operators. Each is
judged by the tests that execute its line, the most specific first, until one fails or waits for ever. Tests that need
Java, Kafka, Spark or a browser judge, with --java, the lines that no other test executes. A seed always draws the same
faults of the same code. Faults that change nothing are named in accepted.txt with the reason.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from pathlib import Path
from random import Random
from typing import Final

from tools.mutation import runs
from tools.mutation.accepted import ACCEPTED, Accepted, read_accepted
from tools.mutation.mutants import ModuleFaults, Mutant
from tools.mutation.packages import PACKAGES, RECORDED, SLOW, has_recording, modules_of, recording
from tools.mutation.runs import Judgement, Outcome

REPORTS: Final = RECORDED


def sample(package: str, count: int | None, seed: int, only: str = "") -> tuple[int, Iterator[Mutant]]:
    """How many faults the package's modules have, and `count` of their mutants drawn by the seed; all for None.

    Every other one is a fault of meaning, which would else be a third of them (meanings.py).
    """
    modules = [ModuleFaults(path) for path in modules_of(package) if only in path]
    places = [(module, index) for module in modules for index in range(len(module))]
    if count is None:
        return len(places), _first(places, None)
    Random(f"{seed} {package}").shuffle(places)
    of_meaning = [place for place in places if place[0].faults[place[1]].removes]
    of_operators = [place for place in places if not place[0].faults[place[1]].removes]
    mixed = [place for pair in zip_longest(of_meaning, of_operators) for place in pair if place is not None]
    return len(places), _first(mixed, count)


def _first(places: Sequence[tuple[ModuleFaults, int]], count: int | None) -> Iterator[Mutant]:
    given = 0
    for module, index in places:
        if given == count:
            return
        mutant = module[index]
        if mutant is not None:
            given += 1
            yield mutant


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant, what became of it, and the tests that were run, of those that execute its lines."""

    mutant: Mutant
    judgement: Judgement
    tests: int
    covering: int

    def __str__(self) -> str:
        return f"{self.mutant}\n  {self.judgement.outcome.value}; {self.tests} of {self.covering} tests"


def run_package(package: str, arguments: argparse.Namespace, accepted: Sequence[Accepted]) -> bool:
    """Try the package's mutants, print its score and survivors, and say whether the score is enough."""
    reasons = {one.key for one in accepted}
    tests = recording(package, again=arguments.record)
    with_java = recording(package, SLOW) if arguments.java or has_recording(package) else None
    began, budget = time.monotonic(), float(arguments.budget)
    faults, drawn = sample(package, None if arguments.all else arguments.sample, arguments.seed, arguments.only)
    counted: Counter[str] = Counter()
    killed: list[Trial] = []
    survivors: list[Trial] = []
    for number, mutant in enumerate(drawn):
        if not arguments.first <= number < arguments.until:
            continue
        chosen = tests.covering(mutant)
        judging, limit = tests, budget
        if not chosen and with_java is not None and (chosen := with_java.covering(mutant)):
            judging, limit = with_java, 10 * budget
            if not arguments.java:
                counted["java"] += 1
                continue
        within = _within(chosen, judging.seconds, limit)
        trial = Trial(mutant, runs.judge(mutant, within, judging.seconds), len(within), len(chosen))
        if trial.judgement.outcome is Outcome.KILLED:
            killed.append(trial)
        elif mutant.key in reasons:
            counted["accepted"] += 1
        else:
            survivors.append(trial)
            print(trial, flush=True)
    unsteady = set(runs.failing(sorted({one.judgement.killer for one in killed} & set(tests.seconds)), tests.seconds))
    for trial in killed:
        if trial.judgement.killer in unsteady:
            survivors.append(trial)
            print(f"{trial.mutant}\n  not counted: {trial.judgement.killer} fails without it too", flush=True)
    tried = len(killed) + len([one for one in survivors if one not in killed])
    percent = 100 * (tried - len(survivors)) / tried if tried else 100.0
    java = f"; {counted['java']} not tried: only tests with Java execute them" if counted["java"] else ""
    print(
        f"{package}: {percent:.1f} % killed ({tried - len(survivors)} of {tried}, of {faults:,} faults;"
        f" {counted['accepted']} accepted{java}), seed {arguments.seed}, {time.monotonic() - began:.0f} s",
        flush=True,
    )
    _report(package, percent, tried, survivors)
    return percent >= float(arguments.least)


def _within(tests: Sequence[str], seconds: Mapping[str, float], budget: float) -> list[str]:
    """As many of the tests, from the first, as take `budget` seconds together, and the first in any case."""
    ends = accumulate(seconds[test] for test in tests)
    return [test for number, (test, end) in enumerate(zip(tests, ends, strict=True)) if end <= budget or not number]


def _report(package: str, percent: float, tried: int, survivors: Sequence[Trial]) -> None:
    REPORTS.mkdir(exist_ok=True)
    document = {
        "package": package,
        "killed_percent": round(percent, 1),
        "tried": tried,
        "survivors": [{"mutant": str(one.mutant), "outcome": one.judgement.outcome.value} for one in survivors],
    }
    name = package.replace("/", "-")
    Path(REPORTS, f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")


def main(words: Sequence[str]) -> int:
    """Exit 0 when every package reaches `--least`, else 1."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=f"of {', '.join(PACKAGES)}; all by default")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each package (60)")
    parser.add_argument("--all", action="store_true", help="every mutant; hours")
    parser.add_argument("--seed", type=int, default=1, help="draws the sample (1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only modules whose path contains it")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="begin with the sample's Nth mutant (0)")
    parser.add_argument(
        "--until", type=int, default=sys.maxsize, metavar="N", help="end before the sample's Nth mutant"
    )
    parser.add_argument("--budget", type=float, default=60.0, metavar="SECONDS", help="of tests for one mutant (60)")
    parser.add_argument("--record", action="store_true", help="record what tests execute again, after a helper changed")
    parser.add_argument("--java", action="store_true", help="also by tests with Java, Kafka, Spark or a browser")
    parser.add_argument("--least", type=float, default=90.0, metavar="PERCENT", help="fail below it (90)")
    arguments = parser.parse_args(words)
    if unknown := [package for package in arguments.packages if package not in PACKAGES]:
        parser.error(f"no such package: {', '.join(unknown)}; one of {', '.join(PACKAGES)}")
    accepted = read_accepted(ACCEPTED)
    enough = [run_package(one, arguments, accepted) for one in arguments.packages or PACKAGES]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
