"""Which partition a record without a key goes to: one led in the producer's rack, as far as the bound on skew allows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, TypeAlias

from rackspan.errors import UsageError

BATCH_BYTES: Final = 16_384
"""Bytes that go to a partition before the next one is chosen. Kafka's batch.size: a choice a record would make small batches."""

LeaderRacks: TypeAlias = Mapping[int, str | None]
"""The rack of the leader of each partition that has one."""


@dataclass(slots=True)
class _Topic:
    """A topic's bytes by partition, since its leaders' racks changed last. `partition` gets the next `left_bytes`."""

    racks: LeaderRacks = field(default_factory=dict)
    sent_bytes: dict[int, int] = field(default_factory=dict)
    partition: int | None = None
    left_bytes: int = 0


class InRackPartitioner:
    """Spreads one producer's records without a key over partitions whose leader is in its rack.

    Constraint: no partition gets more than `skew_max` times its even share of this producer's bytes, but for one batch and
    one record. 1 is an even spread over all partitions, infinity Kafka's own rule. None is the number of racks that have leaders: if each rack has as many,
    every record stays in the rack. Goal: bytes to leaders in the rack; among those the partition with the fewest bytes.
    """

    def __init__(
        self, client_rack: str, rng: Random, *, skew_max: float | None = None, batch_bytes: int = BATCH_BYTES
    ) -> None:
        """Errors: UsageError."""
        if not client_rack:
            raise UsageError("client_rack is empty; give the rack of this producer, as brokers name it in broker.rack")
        if skew_max is not None and not skew_max >= 1:
            raise UsageError(
                f"skew_max is {skew_max}, and no partition can get less than an even share; give 1 or more"
            )
        self.client_rack = client_rack
        self._rng = rng
        self._skew_max = skew_max
        self._batch_bytes = batch_bytes
        self._topics: dict[str, _Topic] = {}

    def partition(self, topic: str, size_bytes: int, leader_racks: Callable[[], LeaderRacks]) -> int | None:
        """The partition of a record, None if no leader is in the rack: the client's own partitioner decides.

        `leader_racks` is called once a batch.
        """
        state = self._topics.setdefault(topic, _Topic())
        if state.left_bytes <= 0:
            self._choose(state, leader_racks())
        state.left_bytes -= size_bytes
        if state.partition is not None:
            state.sent_bytes[state.partition] = state.sent_bytes.get(state.partition, 0) + size_bytes
        return state.partition

    def _choose(self, state: _Topic, racks: LeaderRacks) -> None:
        if racks != state.racks:
            # A new partition would otherwise get every record until it has as many bytes as the others.
            state.racks, state.sent_bytes = dict(racks), {}
        state.left_bytes = self._batch_bytes
        near = [partition for partition, rack in racks.items() if rack == self.client_rack]
        if not near:
            state.partition = None
            return
        sent = state.sent_bytes
        skew_max = self._skew_max or len(frozenset(racks.values()) - {None})
        even_bytes = sum(sent.values()) / len(racks)
        most_bytes = skew_max * even_bytes if even_bytes else 0.0  # Infinity times 0 is no number.
        # Of all partitions the one with the fewest bytes is within the bound.
        candidates = [partition for partition in near if sent.get(partition, 0) <= most_bytes] or list(racks)
        fewest = min(sent.get(partition, 0) for partition in candidates)
        # Producers that start together would all begin with the same partition.
        least = [partition for partition in candidates if sent.get(partition, 0) == fewest]
        state.partition = self._rng.choice(least)
