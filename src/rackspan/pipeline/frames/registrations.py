"""The brokers and controllers of each snapshot, sent to the executors with the functions that use them; equal ones once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit import RackPolicy
from rackspan.audit.batch import ClusterMembers
from rackspan.model.partitions import Int32s
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.landing.read import read_registrations
from rackspan.pipeline.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Registrations:
    """The distinct members of a run's clusters. `of_snapshot` (S,): the index in `distinct` for each snapshot."""

    distinct: Sequence[ClusterMembers]
    of_snapshot: Int32s

    def of(self, snapshot: int) -> ClusterMembers:
        return self.distinct[int(self.of_snapshot[snapshot])]


def registrations(warehouse: Warehouse, stored: Sequence[StoredSnapshot], policy: RackPolicy) -> Registrations:
    """Read the distinct registrations on the driver: as many as cluster members have changed, however many the snapshots.

    A function that refers to them carries them to its workers, as Spark Connect, which has no broadcast variables, requires.
    Errors: InvalidWarehouse; UsageError where the policy refuses a cluster.
    """
    by_hash = read_registrations(warehouse, stored)
    places = {members: place for place, members in enumerate(by_hash)}
    distinct = tuple(ClusterMembers(brokers, controllers, policy) for brokers, controllers in by_hash.values())
    return Registrations(distinct, np.array([places[one.members] for one in stored], dtype=np.int32))
