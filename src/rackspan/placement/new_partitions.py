"""The proposals of `rackspan place create` and `place extend`: new partitions of a topic on a cluster that has others.

Brokers of which only some have a rack are refused for every placer, as Kafka's tools do and its brokers do not (KIP-36,
Proposed Changes: "an exception will be thrown").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import numpy as np

from rackspan.errors import UsageError
from rackspan.model import NO_BROKER, TOPIC_NAME_RULE, ClusterSnapshot, PartitionColumns, TopicName
from rackspan.placement.balanced.settings import CONFIGS as BALANCED_CONFIGS
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.kafka.java_random import RandomGenerator
from rackspan.placement.kafka.rack_alternated import START_INDEX_CONFIG, index_of_leader
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.rack_modes import RACK_AWARE_CONFIG, RackAwareMode, aware
from rackspan.placement.registry import Installed, installed_placers, placer_named
from rackspan.placement.replica_counts import ReplicaCounts, replica_counts
from rackspan.placement.spec_format import DEFAULT_PLACER, PARTITIONS_MAX
from rackspan.placement.usable_brokers import UsableBroker, usable
from rackspan.text import count_noun, nearest

_CONFIGS: Final[Mapping[str, tuple[str, ...]]] = {
    "balanced": BALANCED_CONFIGS,
    "rack-alternated": (RACK_AWARE_CONFIG, START_INDEX_CONFIG),
    "striped": (),
}
"""What rackspan's own placers read. Brokers give a placer all of theirs; an operator means each of these."""


@dataclass(frozen=True, slots=True)
class PlacerChoice:
    """The placer to use and its settings. `configs` take precedence over the load configs that rackspan computes."""

    name: str = DEFAULT_PLACER
    configs: Mapping[str, str] = field(default_factory=dict)
    ignore_racks: bool = False
    exclusion: Exclusion = field(default_factory=Exclusion)

    def check_configs(self) -> None:
        """Errors: UsageError for a config that a placer of rackspan's own does not read; others may have any."""
        known = _CONFIGS.get(self.name)
        for key in self.configs:
            if known is not None and key not in known:
                there_are = f"it has {', '.join(known)}" if known else "it has none"
                raise UsageError(f"--placer-config {key}: the placer {self.name} has no such config; {there_are}")


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """The proposed partitions of `topic` from `start_partition` on. `brokers` were offered; `before` is their load, and
    `topic_before` that of the topic alone."""

    topic: TopicName
    start_partition: int
    assignment: TopicAssignment
    brokers: tuple[UsableBroker, ...]
    before: ReplicaCounts
    topic_before: ReplicaCounts
    by_rack: bool

    @property
    def total(self) -> int:
        """How many partitions the topic then has."""
        return self.start_partition + len(self.assignment)

    @property
    def on_fenced(self) -> list[int]:
        """The fenced brokers that get replicas: `balanced` and `striped` let them follow, and none lead (KRaft)."""
        fenced = [int(broker.id) for broker in self.brokers if broker.fenced]
        return sorted(set(fenced) & set(np.unique(self.assignment.replicas).tolist()))


def new_topic(
    snapshot: ClusterSnapshot,
    topic: str,
    partitions: int,
    replication_factor: int,
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
    installed: Installed = installed_placers,
) -> Proposal:
    """Place a topic that does not exist.

    Errors: UsageError for a name that exists or is invalid, and for an unknown placer; ReplicaPlacementException.
    """
    refuse_name(snapshot, topic)
    _refuse_too_many(partitions)
    return _proposed(snapshot, TopicName(topic), 0, partitions, replication_factor, choice, rng, installed)


def more_partitions(
    snapshot: ClusterSnapshot,
    topic: str,
    total: int,
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
    installed: Installed = installed_placers,
) -> Proposal:
    """Place the partitions a topic lacks up to `total`, with as many replicas as its partition 0 has.

    As with kafka-topics --alter --partitions, `total` is the new number, and existing partitions stay. `rack-alternated`
    begins where AdminUtils.addPartitions does, unless a config sets another start. A topic that has as many gets none.
    Errors: as `new_topic`, and UsageError for a topic that does not exist or is being reassigned.
    """
    rows = _rows(snapshot, topic)
    first = _replicas_of_first(rows, topic)
    existing, factor = shape_of(snapshot, topic)
    _refuse_too_many(total)
    if total < existing:
        raise UsageError(
            f"topic '{topic}' has {count_noun(existing, 'partition')}, and Kafka removes none; "
            f"name a number above {existing}"
        )
    offered = choice.exclusion.offered(usable(snapshot.brokers))
    start = {START_INDEX_CONFIG: str(index_of_leader(_live(offered), first[0]))}
    of_topic = topic_replica_counts(snapshot, topic).topic_configs
    chosen = replace(choice, configs={**start, **of_topic, **choice.configs})
    return _proposed(snapshot, TopicName(topic), existing, total - existing, factor, chosen, rng, installed)


def shape_of(snapshot: ClusterSnapshot, topic: str) -> tuple[int, int]:
    """How many partitions a topic has, and how many replicas its partition 0. Errors: UsageError, as more_partitions."""
    rows = _rows(snapshot, topic)
    return int(rows.partition.max()) + 1, len(_replicas_of_first(rows, topic))


def brokers_for_placer(brokers: tuple[UsableBroker, ...], ignore_racks: bool) -> tuple[tuple[UsableBroker, ...], bool]:
    """The brokers to pass to a placer, and whether it places by rack. Errors: PartialRacks, as from Kafka's tools."""
    if aware(brokers, RackAwareMode.DISABLED if ignore_racks else RackAwareMode.ENFORCED):
        return brokers, True
    return tuple(UsableBroker(broker.id, None, broker.fenced) for broker in brokers), False


def _proposed(
    snapshot: ClusterSnapshot,
    topic: TopicName,
    start_partition: int,
    partitions: int,
    replication_factor: int,
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
    installed: Installed,
) -> Proposal:
    every = usable(snapshot.brokers)
    brokers, by_rack = brokers_for_placer(choice.exclusion.offered(every), choice.ignore_racks)
    choice.exclusion.refuse_cost(every, replication_factor, by_rack)
    before, topic_before = replica_counts(snapshot), topic_replica_counts(snapshot, topic)
    if start_partition and not partitions:
        none = TopicAssignment(np.empty((0, replication_factor), dtype=np.int32))
        return Proposal(topic, start_partition, none, brokers, before, topic_before, by_rack)
    placer = placer_named(choice.name, {**before.configs, **choice.configs}, rng, installed)
    try:
        assignment = placer.place(start_partition, partitions, replication_factor, brokers)
    finally:
        placer.close()
    return Proposal(topic, start_partition, assignment, brokers, before, topic_before, by_rack)


def topic_replica_counts(snapshot: ClusterSnapshot, topic: str) -> ReplicaCounts:
    """The counts of one topic; all are zero for one that does not exist."""
    return replica_counts(replace(snapshot, partitions=_rows_of(snapshot, topic)))


def refuse_name(snapshot: ClusterSnapshot, topic: str) -> None:
    """Errors: UsageError where a topic cannot be created under this name."""
    if not TOPIC_NAME_RULE.fullmatch(topic):
        raise UsageError(
            f"topic {topic!r}: Kafka allows 1 to 249 letters, digits, '.', '_' and '-'; choose another name"
        )
    for other in snapshot.topics:
        if other.name == topic:
            raise UsageError(
                f"topic '{topic}' already exists; give it more partitions with rackspan place extend, or choose another name"
            )
        # Metric names replace '.' by '_', so Kafka refuses two such topics.
        if other.name.replace(".", "_") == topic.replace(".", "_"):
            raise UsageError(f"topic '{topic}' collides with existing topic '{other.name}'; choose another name")


def _refuse_too_many(partitions: int) -> None:
    if partitions > PARTITIONS_MAX:
        raise UsageError(f"{partitions} partitions: at most {PARTITIONS_MAX} are placed at a time; request fewer")


def _rows(snapshot: ClusterSnapshot, topic: str) -> PartitionColumns:
    rows = _rows_of(snapshot, topic)
    if len(rows) == 0:
        names = [str(other.name) for other in snapshot.topics]
        if topic in names:
            raise UsageError(f"topic '{topic}' has no partitions: it is being created or deleted; look again")
        alike = nearest(topic, names)
        raise UsageError(f"topic '{topic}' does not exist as expected{alike}; create it with rackspan place create")
    return rows


def _rows_of(snapshot: ClusterSnapshot, topic: str) -> PartitionColumns:
    codes = [code for code, other in enumerate(snapshot.topics) if other.name == topic]
    return snapshot.partitions.take(np.isin(snapshot.partitions.topic, codes))


def _replicas_of_first(rows: PartitionColumns, topic: str) -> tuple[int, ...]:
    moving = (rows.adding_replicas != NO_BROKER).any(axis=1) | (rows.removing_replicas != NO_BROKER).any(axis=1)
    if moving.any():
        # Kafka counts the replicas being removed too, and accepts no assignment with another number of replicas.
        raise UsageError(
            f"topic '{topic}': partition {rows.partition[moving.argmax()]} is being reassigned; run again when it is done"
        )
    if rows.partition[0] != 0:
        raise UsageError(
            f"topic '{topic}': partition 0 is missing, whose replicas say how many new ones get; look again"
        )
    return rows.row(0).replicas


def _live(brokers: tuple[UsableBroker, ...]) -> list[UsableBroker]:
    return [broker for broker in brokers if not broker.fenced]
