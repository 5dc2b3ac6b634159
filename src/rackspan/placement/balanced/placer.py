"""rackspan's own placement: racks as even as can be, leaders and replicas as level as that allows, loads included.

Begin with `BalancedReplicaPlacer`. balanced_settings.py says what can be configured, rack_quotas.py how much each broker
gets; one_a_rack.py and several_a_rack.py deal it out.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

import numpy as np

from rackspan.errors import InvalidReplicationFactor
from rackspan.model.partitions import Int32s, Int64s
from rackspan.placement.balanced.broker_quotas import quotas
from rackspan.placement.balanced.broker_table import Fleet, fleet_of
from rackspan.placement.balanced.leader_choice import leader_in_front
from rackspan.placement.balanced.one_per_rack import deal_one_a_rack
from rackspan.placement.balanced.settings import BalancedSettings, balanced_settings
from rackspan.placement.balanced.several_per_rack import deal_several_a_rack
from rackspan.placement.balanced.strides import scattered, shuffled
from rackspan.placement.kafka.java_random import RandomGenerator, java_rng
from rackspan.placement.kafka.rack_alternated import refuse_impossible
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.rack_modes import aware
from rackspan.placement.usable_brokers import UsableBroker

DEALS_MAX: Final = 8
"""How often replica sets are dealt when their leaders cannot be as wanted; the last deal stands."""


class BalancedReplicaPlacer:
    """`balanced`: what `rackspan place` uses unless told otherwise.

    Constraints: a broker holds a partition once; every partition is spread over racks as evenly as rack sizes allow
        (`model.racks.even_spread`); leaders are not fenced. Racks keep this order before liveness: a fenced broker holds
        a follower where the spread needs it, and inside a rack comes after all live ones (`spread.before.liveness`).
    Goals, in order: leaders per broker at floor or ceil of their level, replicas per broker at the water-fill bound,
        both with the load that configs report; many distinct replica sets, so that a lost broker is caught up from many.
    Method: quotas by water-filling (rack_quotas.py), dealt exactly in array passes.
    Bound: O(partitions × replicas). Both goals are met exactly where replicas are no more than racks (proof in
        one_a_rack.py). With more replicas than racks the second is; the first is reached by exchanges that cannot be
        shown to suffice always: of 10,000 random small clusters under load two were dealt anew, and none was missed.
    Source: KIP-660's three motives: new brokers, brokers that leave, brokers near their limit.

    Partition ids do not matter, so neither does the start partition. Same rng and configs, same answer.
    """

    def __init__(self, rng: Random | RandomGenerator) -> None:
        self._rng = java_rng(rng)
        self._settings = BalancedSettings()

    def configure(self, configs: Mapping[str, str]) -> None:
        self._settings = balanced_settings(configs)

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        del start_partition  # the contract's, see above
        refuse_impossible(len(brokers), num_partitions, num_replicas)
        if all(broker.fenced for broker in brokers):
            raise InvalidReplicationFactor("All brokers are currently fenced.")
        fleet = fleet_of(
            self._offered(num_replicas, brokers), aware(brokers, self._settings.rack_aware), self._settings
        )
        columns = self._columns(fleet, num_partitions, num_replicas)
        return TopicAssignment(_mixed(fleet.ids[columns], scattered(num_partitions, self._rng)))

    def close(self) -> None:
        pass

    def _offered(self, num_replicas: int, brokers: Sequence[UsableBroker]) -> Sequence[UsableBroker]:
        live = [broker for broker in brokers if not broker.fenced]
        return live if not self._settings.spread_first and len(live) >= num_replicas else brokers

    def _columns(self, fleet: Fleet, partitions: int, replicas: int) -> Int32s:
        """Broker indices, (RF, P), leaders in row 0, like columns side by side."""
        shares = quotas(fleet, partitions, replicas, shuffled(len(fleet), self._rng), self._settings.leaders_first)
        if replicas <= len(fleet.rack_sizes):
            return deal_one_a_rack(fleet, shares, replicas, self._rng)
        for _ in range(DEALS_MAX):
            columns = deal_several_a_rack(fleet, shares.replicas, replicas, self._rng)
            columns, reached = leader_in_front(fleet, columns, shares.leaders)
            if reached:
                break
        return columns


def _mixed(columns: Int32s, order: Int64s) -> Int32s:
    """Rows of partitions, like ones no longer side by side. Column by column, which gathers three times as fast."""
    replicas = np.empty(columns.shape[::-1], dtype=np.int32)
    for position, column in enumerate(columns):
        replicas[:, position] = column[order]
    return replicas
