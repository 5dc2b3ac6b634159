"""Clusters as a topic after topic is made on them, and what Kafka's placers and a load-aware one did with the same.

Kafka's columns were measured with the published classes of 4.0.0 (fixed seeds). "Load-aware" is what load_aware.py computes:
a greedy placer that sees all loads and then reorders the leaders of everything that stands, at no cost, as well as possible.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Final

import numpy as np

from rackspan.model import BrokerId, RackId
from rackspan.model.partitions import Int32s, Int64s
from rackspan.placement import UsableBroker
from rackspan.placement.balanced.placer import BalancedReplicaPlacer

MinMax = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Phase:
    """`topics` topics of `partitions` partitions made one after the other on `brokers`."""

    brokers: tuple[UsableBroker, ...]
    topics: int
    partitions: int


@dataclass(frozen=True, slots=True)
class Scenario:
    """`striped`, `admin_utils`, `load_aware`: (leaders, replicas) as [min, max] per broker; None: cannot be run."""

    name: str
    phases: tuple[Phase, ...]
    replication_factor: int
    striped: tuple[MinMax, MinMax]
    admin_utils: tuple[MinMax, MinMax] | None
    load_aware: tuple[MinMax, MinMax]

    def __str__(self) -> str:
        return self.name


def cluster(sizes: Sequence[int]) -> tuple[UsableBroker, ...]:
    """Racks r0, r1, … of these sizes, ids dealt to racks in turn as operators number them."""
    in_turn = [rack for layer in range(max(sizes)) for rack, size in enumerate(sizes) if layer < size]
    return tuple(UsableBroker(BrokerId(one), RackId(f"r{rack}"), False) for one, rack in enumerate(in_turn))


def _one(sizes: Sequence[int], topics: int, partitions: int) -> tuple[Phase, ...]:
    return (Phase(cluster(sizes), topics, partitions),)


def _grown(*racks: str) -> tuple[Phase, ...]:
    more = tuple(UsableBroker(BrokerId(9 + one), RackId(rack), False) for one, rack in enumerate(racks))
    return Phase(THREE_BY_THREE, 100, 12), Phase(THREE_BY_THREE + more, 100, 12)


def _fenced(*broker_ids: int) -> tuple[Phase, ...]:
    away = tuple(replace(broker, fenced=broker.id in broker_ids) for broker in THREE_BY_THREE)
    return tuple(Phase(brokers, 50, 12) for brokers in (THREE_BY_THREE, away, THREE_BY_THREE))


THREE_BY_THREE: Final = cluster([3, 3, 3])

# fmt: off
SINGLE_PHASE: Final = (
    Scenario("4/4/4 RF3 1x1200", _one([4, 4, 4], 1, 1200), 3, ((100, 100), (300, 300)), ((100, 100), (300, 300)), ((100, 100), (300, 300))),
    Scenario("4/4/4 RF3 1200x1", _one([4, 4, 4], 1200, 1), 3, ((83, 118), (276, 321)), ((84, 108), (272, 337)), ((100, 100), (300, 300))),
    Scenario("4/4/4 RF2 1x1200", _one([4, 4, 4], 1, 1200), 2, ((92, 110), (200, 200)), ((100, 100), (200, 200)), ((100, 100), (200, 200))),
    Scenario("10/10/1 RF3 1x2100", _one([10, 10, 1], 1, 2100), 3, ((62, 700), (202, 2100)), ((100, 100), (205, 2100)), ((100, 100), (210, 2100))),
    Scenario("10/10/1 RF2 1x2100", _one([10, 10, 1], 1, 2100), 2, ((51, 700), (133, 1400)), ((100, 100), (155, 245)), ((100, 100), (200, 200))),
    Scenario("5/4/3 RF2 1x1200", _one([5, 4, 3], 1, 1200), 2, ((70, 148), (147, 274)), ((100, 100), (163, 246)), ((100, 100), (200, 200))),
    Scenario("5/4/3 RF3 1x1200", _one([5, 4, 3], 1, 1200), 3, ((75, 148), (238, 400)), ((100, 100), (163, 546)), ((100, 100), (240, 400))),
    Scenario("4/3/2/1 RF3 1x1200", _one([4, 3, 2, 1], 1, 1200), 3, ((72, 298), (223, 888)), ((120, 120), (200, 640)), ((120, 120), (300, 400))),
    Scenario("4/3/2/1 RF2 100x12", _one([4, 3, 2, 1], 100, 12), 2, ((72, 301), (147, 603)), ((116, 127), (186, 298)), ((120, 120), (240, 240))),
    Scenario("5/4/4 RF3 1x1300", _one([5, 4, 4], 1, 1300), 3, ((79, 114), (253, 332)), ((100, 100), (100, 325)), ((100, 100), (260, 325))),
    Scenario("34/33/33 RF3 1x10000", _one([34, 33, 33], 1, 10000), 3, ((64, 133), (289, 309)), ((100, 100), (100, 304)), ((100, 100), (294, 304))),
    Scenario("8/4 RF3 1x1200", _one([8, 4], 1, 1200), 3, ((55, 174), (208, 468)), ((100, 100), (172, 519)), ((100, 100), (300, 300))),
    Scenario("20x5 RF3 1x10000", _one([20] * 5, 1, 10000), 3, ((100, 100), (300, 300)), ((100, 100), (300, 300)), ((100, 100), (300, 300))),
)
SEVERAL_PHASES: Final = (
    Scenario("3/3/3, +1 broker per rack", _grown("r0", "r1", "r2"), 3, ((100, 242), (300, 700)), ((100, 238), (300, 718)), ((200, 200), (600, 600))),
    Scenario("3/3/3, +3 brokers in one rack", _grown("r0", "r0", "r0"), 3, ((64, 301), (200, 800)), ((100, 238), (146, 966)), ((200, 200), (400, 800))),
    Scenario("3/3/3, + a rack of 3", _grown("r3", "r3", "r3"), 3, ((96, 250), (300, 700)), ((100, 238), (300, 718)), ((200, 200), (400, 667))),
    Scenario("3/3/3, + a rack of 1", _grown("r3"), 3, ((206, 286), (687, 905)), ((120, 261), (416, 767)), ((240, 240), (720, 720))),
    Scenario("broker fenced for 50 of 150 topics", _fenced(4), 3, ((130, 247), (400, 700)), None, ((200, 200), (600, 600))),
    # The load-aware placer gives the spread over racks up here; ours may not.
    Scenario("rack fenced for 50 of 150 topics", _fenced(1, 4, 7), 3, ((123, 285), (600, 600)), None, ((200, 200), (400, 700))),
)
# fmt: on


@cache
def placed(scenario: Scenario, first_goal: str = "leaders", level: str = "topic") -> tuple[Int32s, ...]:
    """The assignments of `balanced`, one array a phase; its configs hold the load before each topic."""
    placer = BalancedReplicaPlacer(Random(1))
    leaders, replicas = (np.zeros(128, dtype=np.int64) for _ in range(2))
    phases: list[Int32s] = []
    for phase in scenario.phases:
        rows: list[Int32s] = []
        for _ in range(phase.topics):
            placer.configure(
                {
                    "replica.placer.balanced.leaders": _pairs(phase, leaders),
                    "replica.placer.balanced.replicas": _pairs(phase, replicas),
                    "replica.placer.balanced.first.goal": first_goal,
                    "replica.placer.balanced.level": level,
                }
            )
            rows.append(placer.place(0, phase.partitions, scenario.replication_factor, phase.brokers).replicas)
            leaders += np.bincount(rows[-1][:, 0], minlength=len(leaders))
            replicas += np.bincount(rows[-1].reshape(-1), minlength=len(replicas))
        phases.append(np.concatenate(rows))
    return tuple(phases)


def min_max(scenario: Scenario, rows: Sequence[Int32s]) -> tuple[MinMax, MinMax]:
    """Leaders and replicas per broker of the last phase, least and most."""
    together = np.concatenate(rows)
    ids = [broker.id for broker in scenario.phases[-1].brokers]
    leaders = np.bincount(together[:, 0], minlength=max(ids) + 1)[ids]
    replicas = np.bincount(together.reshape(-1), minlength=max(ids) + 1)[ids]
    return (int(leaders.min()), int(leaders.max())), (int(replicas.min()), int(replicas.max()))


def _pairs(phase: Phase, counts: Int64s) -> str:
    return ",".join(f"{broker.id}:{counts[broker.id]}" for broker in phase.brokers)
