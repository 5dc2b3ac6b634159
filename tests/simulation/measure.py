"""The figures of docs/min-insync-racks.md: python -m tests.simulation.measure WHAT [SEEDS]

    planted        mean number of seeds until each planted mistake is caught (seeds / violations, 30 violations at most)
    rare           the same for those that take more than twenty, until 8 are found
    failing        seeds that break a rule in each world that lacks an assumption
    availability   how often a clean leader is left after k - 1 racks are gone
    exhaustive     states and steps of the small worlds, to the depths of test_exhaustive.py
    soak           seeds spread over all worlds in which every rule is demanded: seeds, events, seconds, events/s

Each line ends with the machine's load (one minute), for no time is worth anything without it.
"""

import argparse
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import DEMANDED, KINDS, SHOWN_TO_FAIL
from tests.simulation.mistakes.planted import COVERED, PLANTED, Planted
from tests.simulation.runs.exhaustive import explore, start
from tests.simulation.runs.replay import explained, run
from tests.simulation.world import Outcome

ENOUGH: Final = 30
FEW: Final = 8
RARE: Final = 20
LONG: Final = 1_000


def planted(seeds: int) -> Iterator[str]:
    return _means({**PLANTED, **COVERED}, seeds, ENOUGH)


def rare(seeds: int) -> Iterator[str]:
    found = {name: one for name, one in PLANTED.items() if one.mean > RARE}
    return _means({**found, **COVERED}, seeds, FEW)


def _means(mistakes: Mapping[str, Planted], seeds: int, enough: int) -> Iterator[str]:
    for name, one in mistakes.items():
        tried, rules = _caught(one, seeds, enough)
        mean = f"{tried / rules.total():.1f}" if rules else f"more than {tried}"
        counts = ", ".join(f"{rule} {count}" for rule, count in sorted(rules.items()))
        yield f"{name} ({one.world}): {mean} seeds, {rules.total()} of {tried}; {counts}"


def _caught(one: Planted, seeds: int, enough: int) -> tuple[int, Counter[str]]:
    rules: Counter[str] = Counter()
    tried = 0
    while tried < seeds and rules.total() < enough:
        outcome = run(KINDS[one.world], tried, one.build)
        tried += 1
        if isinstance(outcome, Violation):
            rules[outcome.rule] += 1
    return tried, rules


def failing(seeds: int) -> Iterator[str]:
    for name, kind in SHOWN_TO_FAIL.items():
        outcomes = [run(kind, seed) for seed in range(seeds)]
        rules = Counter(one.rule for one in outcomes if isinstance(one, Violation))
        yield f"{name}: {rules.total()} of {seeds}; {dict(sorted(rules.items()))}"
    for name in ("lossy", "lossy-kafka-elr"):
        outcomes = [run(KINDS[name], seed) for seed in range(seeds)]
        broken = sum(isinstance(one, Violation) for one in outcomes)
        offline = sum(isinstance(one, Outcome) and one.offline for one in outcomes)
        yield f"{name}: {broken} of {seeds}; {offline} ended offline"


def availability(seeds: int) -> Iterator[str]:
    for name in ("no-elr", "kafka-elr", "clean"):
        outcomes = [one for seed in range(seeds) if isinstance(one := run(KINDS[name], seed), Outcome)]
        checked, left = sum(one.checked for one in outcomes), sum(one.available for one in outcomes)
        yield f"{name}: {left:,} of {checked:,}, {left / checked:.1%}"


def exhaustive(depth: int) -> Iterator[str]:
    for racks in ("abb", "abc"):
        for faults, deep in ((1, depth), (0, depth + 4)):
            begun = time.monotonic()
            found = explore(start(racks, faults=faults), deep)
            seconds = time.monotonic() - begun
            yield f"racks {racks}, {faults} faults, depth {deep}: {found.states:,} states, {found.steps:,} steps, {seconds:.0f} s"


def soak(seeds: int) -> Iterator[str]:
    """Seeds from 0 on, as many in each world, until there are so many; the first violation ends it."""
    each = -(-seeds // len(DEMANDED))
    begun, lengths = time.monotonic(), []
    for name in DEMANDED:
        found = [_events(name, seed) for seed in range(each)]
        lengths += found
        yield f"{name}: {each} seeds, {sum(found):,} events, the shortest {min(found):,}, no rule broken"
    seconds, events = time.monotonic() - begun, sum(lengths)
    long = sum(length >= LONG for length in lengths)
    yield (
        f"{len(lengths):,} seeds, {long:,} of them of {LONG:,} events or more, {events:,} events, 0 violations,"
        f" {seconds:,.0f} s, {events / seconds:,.0f} events/s"
    )


def _events(world: str, seed: int) -> int:
    outcome = run(KINDS[world], seed)
    if isinstance(outcome, Violation):
        raise SystemExit(str(explained(KINDS[world], seed, outcome)))
    return outcome.events


MEASURES: Final[Mapping[str, tuple[Callable[[int], Iterator[str]], int]]] = {
    "planted": (planted, 200),
    "rare": (rare, 400),
    "failing": (failing, 600),
    "availability": (availability, 400),
    "exhaustive": (exhaustive, 7),
    "soak": (soak, 2_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.measure", description="The page's figures.")
    parser.add_argument("what", choices=list(MEASURES))
    parser.add_argument("count", type=int, nargs="?", help="seeds, or for `exhaustive` the depth")
    arguments = parser.parse_args()
    measure, usual = MEASURES[arguments.what]
    for line in measure(arguments.count or usual):
        print(f"{line} [load {os.getloadavg()[0]:.1f}]", flush=True)


if __name__ == "__main__":
    main()
