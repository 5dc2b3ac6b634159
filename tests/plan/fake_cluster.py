"""A cluster in memory that reassigns as KRaft does: merged replica lists, its own order after a cancel, brokers that lag.

Its rules are from ReplicationControlManager and PartitionReassignmentReplicas of Apache Kafka 4, not from our own code.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.events import Event, RunStarted, RunState, replay
from rackspan.plan.execution.observed import InFlight, ObservationRequest, ObservedCluster
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.reassign import ReassignmentPlan

Replicas = tuple[int, ...]

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


class Killed(BaseException):
    """SIGKILL, as far as memory can have it."""


@dataclass
class FakeCluster:
    """`rng` decides when copies are done, and when the observed broker lags the last changes; it never lags twice."""

    replicas: dict[TopicPartition, Replicas]
    rng: Random
    brokers: set[int]
    configs: dict[ConfigKey, str] = field(default_factory=dict)
    in_flight: dict[TopicPartition, InFlight] = field(default_factory=dict)
    leaderless: set[TopicPartition] = field(default_factory=set)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    cluster_id: str = "the-cluster"
    topic_ids: dict[str, str | None] = field(default_factory=dict)
    copied: int = 0
    _before: dict[TopicPartition, Replicas] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.topic_ids = self.topic_ids or {topic: f"id-of-{topic}" for topic, _ in self.replicas}

    def observe(self, request: ObservationRequest) -> ObservedCluster:
        self._copy_some()
        lagging = self.rng.random() < 0.3
        shown = {**self.replicas, **self._before} if lagging else self.replicas
        self._before.clear()
        return ObservedCluster(
            cluster_id=self.cluster_id,
            brokers=frozenset(self.brokers),
            topic_ids={topic: one for topic, one in self.topic_ids.items() if topic in request.topics},
            replicas={
                topic_partition: one for topic_partition, one in shown.items() if topic_partition[0] in request.topics
            },
            leaderless=frozenset(one for one in self.leaderless if one.topic in request.topics),
            isr={
                topic_partition: tuple(one for one in listed if one in self.brokers)
                for topic_partition, listed in self.replicas.items()
                if topic_partition[0] in request.topics and topic_partition not in self.in_flight
            },
            leaders={one: leader for one, leader in self._leaders().items() if one[0] in request.topics},
            in_flight=dict(self.in_flight),
            configs={config: self.configs.get(config) for config in request.configs if self._is_there(config)},
        )

    def set_configs(self, values: Mapping[ConfigKey, str | None]) -> None:
        for config, value in values.items():
            assert self._is_there(config), config
            if value is None:
                self.configs.pop(config, None)
            else:
                self.configs[config] = value

    def start_moves(self, targets: Mapping[TopicPartition, Replicas]) -> None:
        for topic_partition, target in targets.items():
            if topic_partition in self.in_flight:
                assert self.in_flight[topic_partition].target == target, "another reassignment of it is under way"
                continue
            now = self.replicas[topic_partition]
            adding = tuple(broker for broker in target if broker not in now)
            removing = tuple(broker for broker in now if broker not in target)
            self.copied += len(adding)
            moving = InFlight((*target, *removing), adding, removing)
            if adding or (removing and not self._can_end(topic_partition, moving)):
                self._become(topic_partition, (*target, *removing))
                self.in_flight[topic_partition] = moving
            else:
                self._become(topic_partition, target)

    def cancel_moves(self, partitions: tuple[TopicPartition, ...]) -> None:
        for topic_partition in partitions:
            moving = self.in_flight.pop(topic_partition, None)
            if moving is not None:
                self._become(topic_partition, tuple(one for one in moving.replicas if one not in moving.adding))

    def elect_leaders(self, partitions: tuple[TopicPartition, ...]) -> None:
        for topic_partition in partitions:
            if self.replicas[topic_partition][0] in self.brokers:
                self.leaders[topic_partition] = self.replicas[topic_partition][0]

    def _leaders(self) -> dict[TopicPartition, int]:
        """A leader leads as long as it is a replica and alive; then the first that is alive does."""
        for topic_partition, listed in self.replicas.items():
            alive = [broker for broker in listed if broker in self.brokers]
            if self.leaders.get(topic_partition) not in alive:
                self.leaders[topic_partition] = alive[0] if alive else -1
        return self.leaders

    def finish_all(self) -> None:
        for topic_partition in list(self.in_flight):
            self._finish(topic_partition)
        self._before.clear()

    def _copy_some(self) -> None:
        for topic_partition, moving in list(self.in_flight.items()):
            if self._can_end(topic_partition, moving) and self.rng.random() < 0.5:
                self._finish(topic_partition)

    def _can_end(self, topic_partition: TopicPartition, moving: InFlight) -> bool:
        """A reassignment ends when every replica of its target is in sync (maybeCompleteReassignment)."""
        return topic_partition not in self.leaderless and set(moving.target) <= self.brokers

    def _finish(self, topic_partition: TopicPartition) -> None:
        self._become(topic_partition, self.in_flight.pop(topic_partition).target)

    def _become(self, topic_partition: TopicPartition, replicas: Replicas) -> None:
        self._before[topic_partition] = self.replicas[topic_partition]
        self.replicas[topic_partition] = replicas

    def _is_there(self, config: ConfigKey) -> bool:
        if config.holder is Holder.BROKER:
            return int(config.name) in self.brokers
        return config.name in self.topic_ids


class Memory:
    """A journal without a disk. Events outlive a kill."""

    def __init__(self, plan: ReassignmentPlan, bytes_per_second: int | None = None) -> None:
        self.events: list[Event] = [RunStarted(plan, bytes_per_second)]

    @property
    def state(self) -> RunState:
        return replay(self.events)

    def append(self, event: Event) -> None:
        self.events.append(event)
