"""Random topics and small clusters of every kind, and their placement by the balanced placer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from hypothesis import strategies as st

from rackspan.model import BrokerId, RackId
from rackspan.model.partitions import Int32s
from rackspan.placement import UsableBroker, checked
from rackspan.placement.balanced.placer import BalancedReplicaPlacer

LEADERS = "replica.placer.balanced.leaders"
REPLICAS = "replica.placer.balanced.replicas"
WEIGHTS = "replica.placer.balanced.weights"
DRAINING = "replica.placer.balanced.draining"
NEAR_CAPACITY = "replica.placer.balanced.near.capacity"
NEW = "replica.placer.balanced.new"
PREFERENCE = "replica.placer.balanced.new.preference"
SPREAD_FIRST = "replica.placer.balanced.spread.before.liveness"
FIRST_GOAL = "replica.placer.balanced.first.goal"
LEVEL = "replica.placer.balanced.level"
TOPIC_LEADERS = "replica.placer.balanced.topic.leaders"
TOPIC_REPLICAS = "replica.placer.balanced.topic.replicas"


@dataclass(frozen=True)
class Task:
    """The input of a placer. `loads`: leaders and further replicas that each broker has already."""

    brokers: tuple[UsableBroker, ...]
    partitions: int
    replication_factor: int
    loads: tuple[tuple[int, int], ...]
    seed: int

    @property
    def leaders(self) -> list[int]:
        return [leaders for leaders, _ in self.loads]

    @property
    def replicas(self) -> list[int]:
        return [leaders + others for leaders, others in self.loads]

    @property
    def configs(self) -> dict[str, str]:
        ids = [broker.id for broker in self.brokers]
        return {LEADERS: pairs(ids, self.leaders), REPLICAS: pairs(ids, self.replicas)}


@st.composite
def tasks(draw: st.DrawFn, loaded: bool = False, fenced: bool = False, most_brokers: int = 9) -> Task:
    racks = draw(st.integers(1, 4))
    rack_of = draw(st.lists(st.integers(0, racks - 1), min_size=1, max_size=most_brokers))
    ids = draw(st.permutations([3 * one + 1 for one in range(len(rack_of))]))
    brokers = tuple(
        UsableBroker(BrokerId(one), RackId(f"r{rack}"), fenced and draw(st.integers(0, 2)) == 0)
        for one, rack in zip(ids, rack_of, strict=True)
    )
    load = st.tuples(st.integers(0, 12), st.integers(0, 24)) if loaded else st.just((0, 0))
    return Task(
        brokers=brokers,
        partitions=draw(st.integers(1, 40)),
        replication_factor=draw(st.integers(1, min(5, len(brokers)))),
        loads=tuple(draw(load) for _ in brokers),
        seed=draw(st.integers(0, 2**32)),
    )


def pairs(ids: Sequence[int], values: Sequence[object]) -> str:
    return ",".join(f"{one}:{value}" for one, value in zip(ids, values, strict=True))


def place(task: Task, configs: Mapping[str, str] | None = None) -> Int32s:
    placer = BalancedReplicaPlacer(Random(task.seed))
    placer.configure(task.configs if configs is None else configs)
    assignment = placer.place(0, task.partitions, task.replication_factor, task.brokers)
    placer.close()
    return checked(assignment, 0, task.partitions, task.replication_factor, task.brokers).replicas


def per_broker(task: Task, column: Int32s) -> list[int]:
    """How often each broker of the task, in its order, is in a column or matrix."""
    counts = np.bincount(column.reshape(-1), minlength=40)
    return [int(counts[broker.id]) for broker in task.brokers]
