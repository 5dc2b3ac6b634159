"""The `striped` placer (KRaft): leaders round-robin over racks, replicas over a rack's brokers, shuffled after each round.

Begin with `StripedReplicaPlacer`, then rack_stripes.py: the algorithm as Kafka runs it, one partition after another.
stripe_arrays.py computes the same for a million partitions at once, short_rounds.py where brokers are few and racks many.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from rackspan.errors import InvalidPartitions
from rackspan.placement.kafka.java_random import RandomGenerator, java_rng
from rackspan.placement.kafka.rack_stripes import rack_stripes
from rackspan.placement.kafka.short_rounds import place_in_short_rounds
from rackspan.placement.kafka.stripe_arrays import place_in_stripes
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.usable_brokers import UsableBroker, refuse_factor

FEW_PARTITIONS: Final = 64
"""Up to this number Kafka's own loop is faster than setting up arrays."""
FEW_ROUNDS: Final = 400
"""The same where rounds are short: arrays hold the rounds, and take a step for each partition of one."""


class StripedReplicaPlacer:
    """`striped`: the same assignments as Kafka's class of this name, random number for random number, given the same rng.

    Constraints: a broker holds a partition once; leaders are not fenced.
    Goals, in order: replicas of one partition spread over racks; leaders over racks; within a rack live brokers before
        fenced ones; all of it different after every round of as many partitions as there are live brokers.
    Method: see rack_stripes.py. The start partition and existing replicas are ignored, as in Kafka. Brokers without a
        rack count as one more rack.
    Bound: O(partitions * replicas) draws and element operations.
    Source: KIP-660 names it the default; behaviour of StripedReplicaPlacer of Kafka 4.0.
    Tests: tests/placement/kafka/test_striped.py, and test_vectors.py against assignments recorded from Kafka.
    """

    def __init__(self, rng: Random | RandomGenerator) -> None:
        self._rng = java_rng(rng)

    def configure(self, configs: Mapping[str, str]) -> None:
        pass

    def place(
        self,
        start_partition: int,  # noqa: ARG002 - Kafka ignores it too
        num_partitions: int,
        num_replicas: int,
        brokers: Sequence[UsableBroker],
    ) -> TopicAssignment:
        # The draws come before the checks, as in Kafka: a refused topic still moves the rng.
        stripes = rack_stripes(brokers, self._rng)
        refuse_factor(brokers, num_replicas)
        if num_partitions < 0:
            raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
        restarting = stripes.lists_restart_after_shuffle
        if num_partitions <= (FEW_PARTITIONS if restarting else FEW_ROUNDS * stripes.live_brokers):
            return TopicAssignment.of([stripes.next_partition(num_replicas) for _ in range(num_partitions)])
        place = place_in_stripes if restarting else place_in_short_rounds
        return TopicAssignment(place(stripes, num_partitions, num_replicas))

    def close(self) -> None:
        pass
