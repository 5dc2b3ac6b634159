"""A reassignment placed from scratch, as kafka-reassign-partitions --generate proposes one (KIP-36, Proposed Changes).

It ignores where replicas are now, so nearly all of them move: `reassign` plans the least movement instead. This exists for
scripts that use Kafka's own tool.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np

from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot, Partition
from rackspan.placement.kafka.java_random import RandomGenerator
from rackspan.placement.new_partitions import PlacerChoice, brokers_for_placer
from rackspan.placement.registry import Installed, installed_placers, placer_named
from rackspan.placement.replica_counts import ReplicaCounts, replica_counts
from rackspan.placement.usable_brokers import UsableBroker, usable

GENERATE_PLACER: Final = "rack-alternated"
"""AdminUtils, which Kafka's tool used up to 4.0."""


@dataclass(frozen=True, slots=True)
class GeneratedPartition:
    """One partition: its current replicas, and the proposed ones, preferred leader first."""

    topic: str
    partition: int
    current: tuple[int, ...]
    proposed: tuple[int, ...]


def generate(
    snapshot: ClusterSnapshot,
    topics: Sequence[str],
    broker_list: Sequence[int],
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
    installed: Installed = installed_placers,
) -> list[GeneratedPartition]:
    """Place each of `topics` anew on the brokers of `broker_list` that are alive and not excluded, in the order of the list.

    Constraints and goals are the placer's; its replication factor is that of a topic's first partition, as in Kafka.
    A placer that has load configs is given those of all other topics and of what is proposed already.
    Source: ReassignPartitionsCommand.generateAssignment of Apache Kafka 4.
    Errors: UsageError in Kafka's words for a topic that does not exist, ReplicaPlacementException (PartialRacks, …).
    """
    _refuse_unknown(snapshot, topics)
    listed = tuple(broker for broker in usable(snapshot.brokers) if broker.id in set(broker_list) and not broker.fenced)
    brokers, by_rack = brokers_for_placer(choice.exclusion.offered(listed), choice.ignore_racks)
    for topic in topics:
        choice.exclusion.refuse_cost(listed, len(_partitions(snapshot, topic)[0].replicas), by_rack)
    held = replica_counts(_without(snapshot, topics))
    generated: list[GeneratedPartition] = []
    for topic in topics:
        placed, held = _placed(topic, _partitions(snapshot, topic), brokers, held, choice, rng, installed)
        generated += placed
    return generated


def unknown_brokers(snapshot: ClusterSnapshot, broker_list: Sequence[int]) -> list[int]:
    """The brokers of the list that are not alive in the cluster. Kafka's tool ignores them without a message."""
    alive = {int(broker.id) for broker in snapshot.brokers if not broker.fenced}
    return [broker for broker in broker_list if broker not in alive]


def _placed(
    topic: str,
    partitions: Sequence[Partition],
    brokers: Sequence[UsableBroker],
    held: ReplicaCounts,
    choice: PlacerChoice,
    rng: Random | RandomGenerator,
    installed: Installed,
) -> tuple[list[GeneratedPartition], ReplicaCounts]:
    placer = placer_named(choice.name, {**held.on(brokers).configs, **choice.configs}, rng, installed)
    try:
        assignment = placer.place(0, len(partitions), len(partitions[0].replicas), brokers)
    finally:
        placer.close()
    generated = [
        GeneratedPartition(topic, partition.partition, partition.replicas, tuple(row))
        for partition, row in zip(partitions, assignment.replicas.tolist(), strict=True)
    ]
    return generated, held.plus(assignment)


def _refuse_unknown(snapshot: ClusterSnapshot, topics: Sequence[str]) -> None:
    known = {topic.name for topic in snapshot.topics}
    for topic in topics:
        if topic not in known or not _partitions(snapshot, topic):
            raise UsageError(f"Topic {topic} not found.")


def _partitions(snapshot: ClusterSnapshot, topic: str) -> list[Partition]:
    code = next(code for code, named in enumerate(snapshot.topics) if named.name == topic)
    return list(snapshot.partitions.take(snapshot.partitions.topic == code))


def _without(snapshot: ClusterSnapshot, topics: Sequence[str]) -> ClusterSnapshot:
    codes = [code for code, named in enumerate(snapshot.topics) if named.name in set(topics)]
    return replace(snapshot, partitions=snapshot.partitions.take(~np.isin(snapshot.partitions.topic, codes)))
