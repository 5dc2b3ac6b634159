"""The `balanced` placer: replicas spread over racks as evenly as possible, then leaders and replicas level over brokers."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

import numpy as np

from rackspan.errors import InvalidReplicationFactor
from rackspan.model.partitions import Int32s, Int64s
from rackspan.placement.balanced.broker_quotas import broker_quotas
from rackspan.placement.balanced.broker_table import BrokerTable, broker_table
from rackspan.placement.balanced.leader_choice import choose_leaders
from rackspan.placement.balanced.one_per_rack import Indices, distribute_one_per_rack
from rackspan.placement.balanced.settings import BalancedSettings, balanced_settings
from rackspan.placement.balanced.several_per_rack import distribute_several_per_rack
from rackspan.placement.balanced.strides import scattered, shuffled
from rackspan.placement.kafka.java_random import RandomGenerator, java_rng
from rackspan.placement.kafka.rack_alternated import refuse_impossible
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.rack_modes import aware
from rackspan.placement.usable_brokers import UsableBroker

ATTEMPTS_MAX: Final = 8
"""How often replica sets are drawn while their leaders miss the quotas; the last ones are used in any case."""


ROWS_AT_ONCE: Final = 32_768
"""Partitions whose rows are filled together: few enough to fit into the processor's cache."""


class BalancedReplicaPlacer:
    """`balanced`: the default placer of `rackspan place`.

    Constraints: a broker holds a partition once; every partition is spread over racks as evenly as rack sizes allow
        (`model.racks.even_spread`); leaders are not fenced. The spread comes before liveness: a fenced broker holds a follower
        where the spread needs it, and inside a rack comes after all live ones (`spread.before.liveness`).
    Goals, in order: 1. the topic's leaders per broker at floor or ceil of their level; 2. its replicas per broker at the
        water-fill bound; 3. all leaders per broker level, those that configs report included; 4. all replicas likewise,
        given which brokers lead; 5. many distinct replica sets, so that a lost broker's replicas are copied from many others.
        With `level=cluster` (the default where `new` names brokers): 3, 4, 5.
    Method: quotas by water-filling (broker_quotas.py), distributed exactly in array passes.
    Bound: O(partitions × replicas). Both goals are met exactly where replicas are no more than racks (proof in
        one_per_rack.py). With more replicas than racks the second is; the first is reached by exchanges, for which no
        proof exists: of 10,000 random small clusters under load two needed a second draw, and none missed the goal.
    Source: KIP-660's three motives: new brokers, brokers that leave, brokers near their limit.
    Tests: tests/placement/balanced, test_placer.py against the least possible maxima, test_motives.py for KIP-660.

    Partition ids do not matter, so neither does the start partition. Equal rng and configs give equal assignments.
    """

    def __init__(self, rng: Random | RandomGenerator) -> None:
        self._rng = java_rng(rng)
        self._settings = BalancedSettings()

    def configure(self, configs: Mapping[str, str]) -> None:
        self._settings = balanced_settings(configs)

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        del start_partition  # part of the interface, see above
        refuse_impossible(len(brokers), num_partitions, num_replicas)
        if all(broker.fenced for broker in brokers):
            raise InvalidReplicationFactor("All brokers are currently fenced.")
        table = broker_table(
            self._candidates(num_replicas, brokers), aware(brokers, self._settings.rack_aware), self._settings
        )
        columns = self._columns(table, num_partitions, num_replicas)
        return TopicAssignment(_mixed(table.ids, columns, scattered(num_partitions, self._rng)))

    def close(self) -> None:
        pass

    def _candidates(self, num_replicas: int, brokers: Sequence[UsableBroker]) -> Sequence[UsableBroker]:
        live = [broker for broker in brokers if not broker.fenced]
        return live if not self._settings.spread_first and len(live) >= num_replicas else brokers

    def _columns(self, table: BrokerTable, partitions: int, replicas: int) -> Indices:
        """Broker indices, (RF, P), leaders in row 0, equal columns side by side."""
        quotas = broker_quotas(
            table, partitions, replicas, shuffled(len(table), self._rng), self._settings.leaders_first
        )
        if replicas <= len(table.rack_sizes):
            return distribute_one_per_rack(table, quotas, replicas, self._rng)
        for _ in range(ATTEMPTS_MAX):
            columns = distribute_several_per_rack(table, quotas.replicas, replicas, self._rng)
            columns, reached = choose_leaders(table, columns, quotas.leaders)
            if reached:
                break
        return columns


def _mixed(ids: Int32s, columns: Indices, order: Int64s) -> Int32s:
    """Rows of partitions in `order`, so that equal ones are apart: `ids` of the brokers at these indices.

    Column by column, which gathers three times as fast, and a part at a time, so that its rows are still in the cache.
    """
    replicas = np.empty(columns.shape[::-1], dtype=np.int32)
    for begin in range(0, len(order), ROWS_AT_ONCE):
        part = order[begin : begin + ROWS_AT_ONCE]
        for position, column in enumerate(columns):
            # Every index is valid; without "clip", NumPy takes twice as long to check that.
            replicas[begin : begin + ROWS_AT_ONCE, position] = ids.take(column.take(part, mode="clip"), mode="clip")
    return replicas
