"""The balanced placer alone: how it spreads, beside what Kafka's placers do with the same clusters, and how it grows.

Kafka's columns are facts measured once (tests/placement/scenarios_of_load.py says how), the load-aware one is computed by
tests/placement/load_aware.py; speed beside Kafka's classes, in turns, is in place.py.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from rackspan.placement.balanced.placer import BalancedReplicaPlacer
from tests.placement.load_aware import load_aware
from tests.placement.scenarios_of_load import SEVERAL_PHASES, SINGLE_PHASE, MinMax, Scenario, cluster, min_max, placed

RUNS: Final = 7

GROWTH: Final[Sequence[tuple[str, Sequence[int]]]] = (
    ("3 racks (334, 333, 333)", (334, 333, 333)),
    ("6 racks (167 or 166)", (167, 167, 167, 167, 166, 166)),
    ("racks of 600, 300 and 100", (600, 300, 100)),
    ("2 racks, fewer than replicas", (500, 500)),
    ("1 rack", (1000,)),
)
PARTITIONS: Final = (10_000, 100_000, 1_000_000)
REPLICATION_FACTOR: Final = 3


def main() -> None:
    print("Leaders / replicas per broker, [min, max]")
    print(f"{'':40}{'striped':>24}{'AdminUtils':>24}{'load-aware':>24}{'balanced':>24}{'with level=cluster':>24}")
    for scenario in (*SINGLE_PHASE, *SEVERAL_PHASES):
        print(_row(scenario))
    print(
        f"\nSeconds to place on 1,000 brokers, replication factor {REPLICATION_FACTOR}, {RUNS} runs after one to warm up"
    )
    for name, racks in GROWTH:
        for partitions in PARTITIONS:
            print(f"  {name:32}{partitions:>10,} partitions  {_spread(_seconds(racks, partitions))}")


def _row(scenario: Scenario) -> str:
    ours = [min_max(scenario, placed(scenario, level=level)) for level in ("topic", "cluster")]
    peer = load_aware(scenario.phases, scenario.replication_factor)
    columns = (scenario.striped, scenario.admin_utils, peer, *ours)
    return f"{scenario.name:40}" + "".join(f"{_shown(one):>24}" for one in columns)


def _shown(figures: tuple[MinMax, MinMax] | None) -> str:
    return " / ".join(f"{least},{most}" for least, most in figures) if figures else "cannot be run"


def _seconds(racks: Sequence[int], partitions: int) -> list[float]:
    placer, brokers = BalancedReplicaPlacer(Random(17)), cluster(racks)
    placer.place(0, partitions, REPLICATION_FACTOR, brokers)
    return [_once(lambda: placer.place(0, partitions, REPLICATION_FACTOR, brokers)) for _ in range(RUNS)]


def _once(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def _spread(figures: Sequence[float]) -> str:
    return f"{statistics.median(figures):.4f} ({min(figures):.4f} to {max(figures):.4f})"
