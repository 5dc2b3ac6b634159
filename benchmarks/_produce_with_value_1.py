"""What min.insync.racks costs a produce where its value is 1: nothing that differs from the same run twice.

Three brokers of the core, each with a topic of one replica and acks=all: two run as they are, one with racks struck
from its rules. They take turns, and only ratios within a turn are compared: what else the machine does weighs on all.
"""

import gc
import time
from collections.abc import Collection
from statistics import median
from typing import Final

from benchmarks._measure import Figures
from rackspan.acks import ProduceVerdict, RackBits, Thresholds
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore, BrokerRules
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.messages import Produce, Respond
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.world import World

TURNS: Final = 41
BLOCKS: Final = 30
BLOCK: Final = 100


class ReplicasAlone(BrokerRules):
    """The same three checks with Kafka's own rule, without racks."""

    def before_append(self, isr: Collection[BrokerId], _racks: RackBits, required: Thresholds) -> ProduceVerdict:
        return ProduceVerdict.ACCEPT if _enough(isr, required) else ProduceVerdict.NOT_ENOUGH_REPLICAS

    def watermark_may_advance(self, isr: Collection[BrokerId], _racks: RackBits, required: Thresholds) -> bool:
        return _enough(isr, required)

    def before_acknowledgement(
        self, isr: Collection[BrokerId], _racks: RackBits, required: Thresholds
    ) -> ProduceVerdict:
        return ProduceVerdict.ACCEPT if _enough(isr, required) else ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def _enough(isr: Collection[BrokerId], required: Thresholds) -> bool:
    return len(isr) >= required.min_insync_replicas


class Producing:
    """One broker that leads one partition."""

    def __init__(self, rules: BrokerRules) -> None:
        world = World({1: "r1"}, broker_rules=rules)
        world.run(500)
        self._partition: TopicPartition = world.create("orders", [1])
        world.settle()
        self._broker: BrokerCore = world.broker(1)
        self._now = world.now

    def run(self) -> float:
        """Seconds of a block of produces."""
        broker, partition, now = self._broker, self._partition, self._now
        # Of this process's own time: on a busy machine elapsed time measures the other processes too.
        begun = time.process_time()
        for correlation_id in range(BLOCK):
            effects = broker.on_message(now, CLIENT, Produce(correlation_id, partition, (RecordBatch(0, 0, -1),)))
            assert any(isinstance(effect, Respond) for effect in effects)
        return time.process_time() - begun


def main() -> None:
    _turn(0)
    gc.disable()
    turns = [_turn(turn) for turn in range(TURNS)]
    gc.enable()
    first, again, without = (Figures(tuple(values)) for values in zip(*turns, strict=True))
    identical, ours = first.over(again), first.over(without)
    apart = _apart(identical)
    verdict = "inside" if 1 / apart <= ours.median <= apart else "OUTSIDE"
    print(f"\none produce with acks=all and min.insync.racks=1, in the core, {TURNS} turns of {BLOCKS} x {BLOCK}")
    print(f"  as it is                      {first.text('us')}")
    print(f"  with racks struck out         {without.text('us')}")
    print(
        f"  as it is, over itself         {identical.median:.3f} (three quarters of the turns within {apart:.3f} times)"
    )
    print(f"  as it is, over racks struck   {ours.median:.3f}: {verdict} what identical runs differ by")


def _turn(turn: int) -> tuple[float, ...]:
    """Microseconds of one produce, of each: the median block.

    New brokers each time, made in another order, as where they lie in memory counts for a hundredth. Blocks are short and
    go round, so that whatever slows the machine for longer slows all three.
    """
    rules = (BrokerRules(), BrokerRules(), ReplicasAlone())
    places = {(turn + step) % 3: Producing(rules[(turn + step) % 3]) for step in range(3)}
    samples: list[list[float]] = [[], [], []]
    for block in range(BLOCKS):
        for step in range(len(places)):
            index = (block + step) % len(places)
            samples[index].append(places[index].run() / BLOCK * 1e6)
    gc.collect()
    return tuple(median(blocks) for blocks in samples)


def _apart(identical: Figures) -> float:
    """By what three quarters of the turns differ at most. Which of two that are alike comes first means nothing."""
    times = sorted(max(ratio, 1 / ratio) for ratio in identical.values)
    return times[len(times) * 3 // 4]


if __name__ == "__main__":
    main()
