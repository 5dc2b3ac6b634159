"""The `rack-alternated` placer (KIP-36): leaders round-robin over a list in which racks alternate, followers on the next racks.

Begin with `RackAlternatedReplicaPlacer`, then `assign_replicas`, which is Kafka's AdminUtils on arrays.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from random import Random
from typing import Final, TypeAlias

import numpy as np

from rackspan.errors import (
    InvalidPartitions,
    InvalidReplicationFactor,
    PartialRacks,
    ReplicaPlacementException,
)
from rackspan.model import INT32_MAX, BrokerId, Int64s, RackId, TopicName
from rackspan.placement.kafka.follower_search import follower_search
from rackspan.placement.kafka.java_random import RandomGenerator, java_rng, utf16
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.rack_modes import RACK_AWARE_CONFIG, RackAwareMode, aware
from rackspan.placement.usable_brokers import UsableBroker

START_INDEX_CONFIG: Final = "replica.placer.start.index"

ROWS_AT_ONCE: Final = 32_768
"""Partitions computed together, so that the columns of one batch fit into the processor's cache."""

Followers: TypeAlias = Callable[[Int64s, Int64s], Iterator[Int64s]]
"""From leaders' list indices and shifts, both (partitions,), to the list indices of each replica in turn."""


class RackAlternatedReplicaPlacer:
    """`rack-alternated`. Fenced brokers get nothing, since AdminUtils has no fencing.

    Configs: `replica.placer.rack.aware` = enforced (default), safe or disabled; `replica.placer.start.index` fixes the
    first broker and the first shift, which are random otherwise.
    """

    def __init__(self, rng: Random | RandomGenerator) -> None:
        self._rng = java_rng(rng)
        self._mode = RackAwareMode.ENFORCED
        self._start_index: int | None = None

    def configure(self, configs: Mapping[str, str]) -> None:
        self._mode = _mode(configs.get(RACK_AWARE_CONFIG, RackAwareMode.ENFORCED))
        self._start_index = _start_index(configs.get(START_INDEX_CONFIG))

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        # Kafka passes AdminUtils its brokers sorted by id.
        live = sorted((broker for broker in brokers if not broker.fenced), key=lambda broker: broker.id)
        refuse_impossible(len(live), num_partitions, num_replicas)
        if not aware(live, self._mode):
            live = [UsableBroker(broker.id, None, broker.fenced) for broker in live]
        return assign_replicas(live, num_partitions, num_replicas, self._rng, self._start_index, start_partition)

    def close(self) -> None:
        pass


def assign_replicas(
    brokers: Sequence[UsableBroker],
    num_partitions: int,
    num_replicas: int,
    rng: RandomGenerator | None,
    start_index: int | None = None,
    start_partition: int = 0,
) -> TopicAssignment:
    """Place partitions `start_partition` and on, as AdminUtils.assignReplicasToBrokers does.

    Constraints: a broker holds a partition once; if replicas are no more than racks, no two share a rack, else every
        rack holds one.
    Goals: equal leaders when partitions are a multiple of brokers; equal replicas too where racks are equally large.
    Method: partition p is led by index (p + start) mod n of the list; its followers are searched from the index after it,
        shifted by one more number of racks in each round of n partitions. Everything but the search is closed form over
        all partitions, and the search for a follower reads at most `num_replicas` entries (see follower_search.py).
    Bound: O(partitions * replicas^2) element operations, O(brokers * replicas) tables.
    Source: KIP-36, Proposed Changes; brokers without racks are placed in the order given, as before it.
    Test: tests/placement/test_vectors.py, against assignments recorded from Kafka.

    Draws two numbers, start and shift, unless `start_index` fixes both. Errors: InvalidPartitions,
    InvalidReplicationFactor, PartialRacks, in Kafka's words and in Kafka's order.
    """
    refuse_impossible(len(brokers), num_partitions, num_replicas)
    by_rack = _aware(brokers)
    order = rack_alternated(brokers) if by_rack else [broker.id for broker in brokers]
    start, shift = _start_and_shift(len(brokers), rng, start_index)
    partitions = np.arange(start_partition, start_partition + num_partitions, dtype=np.int64)
    rounds = _rounds(partitions, len(order))
    followers = _by_rack(brokers, order, num_replicas) if by_rack else _without_racks(len(order), num_replicas)
    replicas = np.empty((num_partitions, num_replicas), dtype=np.int32)
    ids = np.array(order, dtype=np.int32)
    for begin in range(0, num_partitions, ROWS_AT_ONCE):
        batch = slice(begin, begin + ROWS_AT_ONCE)
        leaders = _modulo(partitions[batch] + start, len(order))
        for column, indices in enumerate(followers(leaders, shift + rounds[batch])):
            replicas[batch, column] = ids[indices]
    return TopicAssignment(replicas)


def add_partitions(
    topic: TopicName, existing: Mapping[int, Sequence[int]], total: int, brokers: Sequence[UsableBroker]
) -> TopicAssignment:
    """The partitions from len(existing) up to `total`, as AdminZkClient.createNewPartitionsAssignment places them.

    `existing` maps partitions to their replicas. Nothing is random: the start is the index of partition 0's leader among
    the brokers by id, which with racks is then an index into the alternated list, so the old order is not continued.
    Errors: InvalidPartitions, ReplicaPlacementException, and those of `assign_replicas`.
    """
    if 0 not in existing:
        raise ReplicaPlacementException(
            f"Unexpected existing replica assignment for topic '{topic}', partition id 0 is missing. Assignment: {dict(existing)}"
        )
    if total <= len(existing):
        raise InvalidPartitions(
            f"The number of partitions for a topic can only be increased. Topic {topic} currently has {len(existing)} partitions, {total} would not be an increase."
        )
    by_id = sorted(brokers, key=lambda broker: broker.id)
    start = index_of_leader(by_id, existing[0][0])
    return assign_replicas(by_id, total - len(existing), len(existing[0]), None, start, len(existing))


def rack_alternated(brokers: Sequence[UsableBroker]) -> list[BrokerId]:
    """One broker of each rack in turn: racks by name in Java's order, brokers by id, exhausted racks skipped."""
    of_rack: dict[RackId | None, list[BrokerId]] = defaultdict(list)
    for broker in sorted(brokers, key=lambda broker: broker.id):
        of_rack[broker.rack].append(broker.id)
    layers = zip_longest(*(of_rack[rack] for rack in sorted(of_rack, key=utf16)))
    return [broker for layer in layers for broker in layer if broker is not None]


def refuse_impossible(brokers: int, num_partitions: int, num_replicas: int) -> None:
    """AdminUtils' checks of the numbers, in its order and words."""
    if num_partitions <= 0:
        raise InvalidPartitions("Number of partitions must be larger than 0.")
    if num_replicas <= 0:
        raise InvalidReplicationFactor("Replication factor must be larger than 0.")
    if num_replicas > brokers:
        raise InvalidReplicationFactor(f"Replication factor: {num_replicas} larger than available brokers: {brokers}.")


def _aware(brokers: Sequence[UsableBroker]) -> bool:
    racked = sum(broker.rack is not None for broker in brokers)
    if 0 < racked < len(brokers):
        raise PartialRacks("Not all brokers have rack information for replica rack aware assignment.")
    return racked > 0


def _start_and_shift(brokers: int, rng: RandomGenerator | None, start_index: int | None) -> tuple[int, int]:
    if start_index is not None:
        return start_index, start_index
    if rng is None:
        raise TypeError("assign_replicas: give rng, or a start index that leaves nothing to draw")
    return rng.next_int(brokers), rng.next_int(brokers)


def index_of_leader(by_id: Sequence[UsableBroker], leader: int) -> int:
    """The index of the first broker whose id is not smaller than `leader`; 0 where there is none, as in Kafka."""
    return next((index for index, broker in enumerate(by_id) if broker.id >= leader), 0)


def _rounds(partitions: Int64s, brokers: int) -> Int64s:
    """How often the shift has grown: at every multiple of `brokers` from the first partition on, except at 0."""
    first = int(partitions[0])
    return np.asarray(partitions // brokers - (0 if first == 0 else (first - 1) // brokers))


def _modulo(values: Int64s, modulus: int) -> Int64s:
    """`values % modulus` by NumPy's vectorised division, four times as fast as its remainder."""
    return np.asarray(values - values // modulus * modulus)


def _without_racks(brokers: int, num_replicas: int) -> Followers:
    """Without racks no candidate is skipped, so every follower is closed form."""

    def indices(leaders: Int64s, shifts: Int64s) -> Iterator[Int64s]:
        yield leaders
        for follower in range(num_replicas - 1):
            yield _modulo(leaders + 1 + _modulo(shifts + follower, brokers - 1), brokers)

    return indices


def _by_rack(brokers: Sequence[UsableBroker], order: Sequence[BrokerId], num_replicas: int) -> Followers:
    rack_of = {broker.id: broker.rack for broker in brokers}
    code_of = {rack: code for code, rack in enumerate(sorted(set(rack_of.values()), key=utf16))}
    codes = np.array([code_of[rack_of[broker]] for broker in order], dtype=np.int32)
    search = follower_search(codes, len(code_of), num_replicas)

    def indices(leaders: Int64s, shifts: Int64s) -> Iterator[Int64s]:
        return search.indices(leaders, shifts * len(code_of), num_replicas)

    return indices


def _mode(text: str) -> RackAwareMode:
    try:
        return RackAwareMode(text)
    except ValueError:
        raise ReplicaPlacementException(
            f"{RACK_AWARE_CONFIG} is {text!r}, expected enforced, safe or disabled; fix the config"
        ) from None


def _start_index(text: str | None) -> int | None:
    if text is None or text == "":
        return None
    if not text.isascii() or not text.isdigit() or int(text) > INT32_MAX:
        raise ReplicaPlacementException(
            f"{START_INDEX_CONFIG} is {text!r}, expected a whole number of 0 to {INT32_MAX}; fix the config"
        )
    return int(text)
