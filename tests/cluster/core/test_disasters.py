"""Seeded disasters over the whole core: what was acknowledged stays, logs agree, one leader an epoch.

Only the first look at what the core promises: the judges walk logs and know nothing of the code under test.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from random import Random

import pytest

from rackspan.acks import ProduceVerdict
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerRules
from rackspan.cluster.core.broker.replica_state import FollowerState
from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.messages import Effect, LeadershipChanged, ProduceResponse, Respond
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.world import World


@dataclass
class Producer:
    """Idempotent, one batch in flight a partition, retries for ever. `acked` is (partition, sequence) to (offset, epoch)."""

    world: World
    partitions: list[TopicPartition]
    judge: "Judge"
    acked: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    sequence: dict[TopicPartition, int] = field(default_factory=lambda: defaultdict(int))
    waiting: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    def turn(self) -> None:
        for partition in self.partitions:
            correlation_id, since = self.waiting.get(partition, (0, 0))
            result = self.world.results.get(correlation_id)
            if correlation_id and result is None and self.world.now - since < 400:
                continue
            if isinstance(result, ProduceResponse) and result.error is ErrorCode.NONE:
                self.acked[partition, self.sequence[partition]] = result.base_offset
                self.sequence[partition] += 1
            self.send(partition)

    def send(self, partition: TopicPartition) -> None:
        # The judge needs the correlation id before the response comes, and that may be at once.
        self.judge.pending_responses[self.world.next_correlation_id] = partition
        sequence = self.sequence[partition]
        leader = self.believed_leader(partition)
        batch = RecordBatch(0, 0, -1, b"", 7, 0, sequence)
        correlation_id = self.world.produce(leader, partition, batch, timeout_ms=300)
        self.waiting[partition] = (correlation_id, self.world.now)

    def believed_leader(self, partition: TopicPartition) -> int:
        """As any broker says, which may be stale."""
        brokers = [broker for broker in self.world.brokers if broker.image.partition(partition)]
        if not brokers:
            return -3
        state = self.world.rng.choice(brokers).image.partition(partition)
        return -3 if state is None else state.leader


@dataclass
class Judge:
    """Checks every acknowledgement and every new leadership: `required_racks` racks hold an acknowledged record."""

    world: World
    required_racks: int
    leaders: dict[tuple[TopicPartition, int], NodeId] = field(default_factory=dict)
    pending_responses: dict[int, TopicPartition] = field(default_factory=dict)

    def check(self, source: NodeId, effect: Effect) -> None:
        if isinstance(effect, LeadershipChanged) and effect.leads:
            known = self.leaders.setdefault((effect.partition, effect.leader_epoch), source)
            assert known == source, f"two leaders in epoch {effect.leader_epoch}"
        if isinstance(effect, Respond) and isinstance(effect.response, ProduceResponse):
            self.acknowledged(source, effect)

    def acknowledged(self, source: NodeId, effect: Respond) -> None:
        assert isinstance(effect.response, ProduceResponse)
        if effect.response.error is not ErrorCode.NONE:
            return
        partition = self.pending_responses[effect.correlation_id]
        offset = effect.response.base_offset
        leader = self.world.broker(source).leaders[partition]
        expected = entry(leader.log.batches, offset)
        racks = {
            self.world.rack_of[broker]
            for broker in leader.isr.committed
            if entry(self.world.disks[broker].logs[partition].batches, offset) == expected
        }
        assert expected is not None
        assert len(racks) >= self.required_racks, f"acknowledged by racks {racks}"


def entry(batches: tuple[RecordBatch, ...], offset: int) -> tuple[int, int] | None:
    """(leader epoch, sequence) of what stands at an offset."""
    return next(((one.leader_epoch, one.base_sequence) for one in batches if one.base_offset == offset), None)


def run_disaster(seed: int, rules: BrokerRules | None = None) -> World:
    rng = Random(seed)
    shape: dict[int, str | None] = {1: "a", 2: "b", 3: rng.choice(["a", "b", "c"]), 4: rng.choice(["b", "c"])}
    racks = len(set(shape.values()))
    required_racks = rng.randint(1, racks)
    settings = ClusterSettings(
        session_timeout_ms=rng.randint(300, 900),
        heartbeat_interval_ms=60,
        tick_interval_ms=20,
        replica_lag_time_max_ms=rng.randint(80, 300),
        fetch_max_wait_ms=rng.randint(40, 120),
        fetch_retry_ms=200,
        metadata_max_wait_ms=100,
        metadata_retry_ms=250,
        alter_partition_retry_ms=150,
        registration_retry_ms=100,
        min_insync_racks=required_racks,
        min_insync_replicas=rng.randint(1, 2),
    )
    world = World(shape, settings, seed, rules or BrokerRules())
    world.run(600)
    first = world.create("t", [1, 2, 3, 4], [3, 4, 1, 2])
    partitions = [first, TopicPartition("t", 1)]
    judge = Judge(world, required_racks)
    producer = Producer(world, partitions, judge)
    world.on_effect = judge.check
    disasters(world, rng, producer)
    heal_and_judge(world, producer, partitions)
    return world


def disasters(world: World, rng: Random, producer: Producer) -> None:
    down: dict[int, int] = {}
    end = world.now + 3_000
    while world.now < end:
        world.run(rng.randint(1, 15))
        producer.turn()
        if rng.random() < 0.06:
            fault(world, rng, down)
        for broker in [broker for broker, until in down.items() if until <= world.now]:
            del down[broker]
            world.start(broker)
    for broker in down:
        world.start(broker)


def fault(world: World, rng: Random, down: dict[int, int]) -> None:
    broker = rng.choice(sorted(world.racks))
    kind = rng.choice(["kill", "freeze", "isolate", "half", "heal", "rack", "controller"])
    until = world.now + rng.randint(30, 900)
    rack = [one for one in sorted(world.racks) if world.rack_of[one] == world.rack_of[broker]]
    if kind == "kill" and broker in world.nodes and broker not in world.frozen:
        world.kill(broker)
        down[broker] = until
    elif kind == "freeze":
        world.freeze(broker, until)
    elif kind == "rack":
        for one in rack:
            world.freeze(one, until)
    elif kind == "isolate":
        world.isolate(broker)
    elif kind == "half":
        world.cut.add((broker, rng.choice(sorted(world.racks))))
    elif kind == "controller":
        world.cut.add((CONTROLLER, broker))
    elif kind == "heal":
        world.heal()


def heal_and_judge(world: World, producer: Producer, partitions: list[TopicPartition]) -> None:
    world.heal()
    world.settle()
    world.run(1_000)
    for partition in partitions:
        logs = [disk.logs[partition] for disk in world.disks.values()]
        shown = [[(one.base_offset, one.leader_epoch, one.base_sequence) for one in log.batches] for log in logs]
        assert all(one == shown[0] for one in shown), f"logs of {partition} differ: {shown}"
        sequences = [sequence for _, _, sequence in shown[0]]
        assert sequences == sorted(set(sequences)), "a batch stands twice"
        for (acked, sequence), offset in producer.acked.items():
            if acked == partition:
                assert entry(logs[0].batches, offset) is not None
                assert sequences[offset] == sequence, f"acknowledged {sequence} is lost"


@pytest.mark.parametrize("seed", range(25))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    run_disaster(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(25, 1_000))
def test_nothing_acknowledged_is_lost_in_a_thousand_disasters(seed: int) -> None:
    run_disaster(seed)


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = run_disaster(3), run_disaster(3)
    assert (first.events_done, first.controller.image) == (second.events_done, second.controller.image)


class ProposalAsWritten(BrokerRules):
    """The check before the append, and no other."""

    def watermark_may_advance(self, *_arguments: object) -> bool:
        return True

    def before_acknowledgement(self, *_arguments: object) -> ProduceVerdict:
        return ProduceVerdict.ACCEPT


class IgnoresTheSlowest(BrokerRules):
    def watermark(
        self, end_offset: int, maximal_isr: Collection[BrokerId], followers: Mapping[BrokerId, FollowerState]
    ) -> int:
        return max(one.end_offset for one in followers.values())


class AcknowledgesDuplicatesAtOnce(BrokerRules):
    def duplicate_waits(self) -> bool:
        return False


@pytest.mark.parametrize("mistake", [ProposalAsWritten, IgnoresTheSlowest, AcknowledgesDuplicatesAtOnce])
def test_a_planted_mistake_is_found_within_ten_disasters(mistake: type[BrokerRules]) -> None:
    """About half of all seeds find each; a judge that finds none of ten is broken."""
    assert any(fails(seed, mistake()) for seed in range(10))


def fails(seed: int, rules: BrokerRules) -> bool:
    try:
        run_disaster(seed, rules)
    except AssertionError:
        return True
    return False
