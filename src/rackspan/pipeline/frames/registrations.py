"""The brokers and controllers of each snapshot, sent to the executors with the functions that use them; equal ones once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit import ClusterMembers, ClusterPolicies, RackPolicy
from rackspan.model.partitions import Int32s
from rackspan.pipeline.landing.markers import StoredSnapshot
from rackspan.pipeline.landing.read import read_registrations
from rackspan.pipeline.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Registrations:
    """The distinct members of a run's clusters, each with the policy that it is judged by.

    `of_snapshot` (S,): the index in `distinct` for each snapshot.
    """

    distinct: Sequence[ClusterMembers]
    of_snapshot: Int32s

    def of(self, snapshot: int) -> ClusterMembers:
        return self.distinct[int(self.of_snapshot[snapshot])]

    @property
    def policies(self) -> "Policies":
        """The policy of each snapshot."""
        found: list[RackPolicy] = []
        for one in self.distinct:
            if one.policy not in found:
                found.append(one.policy)
        place = np.array([found.index(one.policy) for one in self.distinct], dtype=np.int32)
        return Policies(tuple(found), place[self.of_snapshot])


@dataclass(frozen=True, slots=True)
class Policies:
    """The distinct policies of a run. `of_snapshot` (S,): the index in `distinct` for each snapshot."""

    distinct: Sequence[RackPolicy]
    of_snapshot: Int32s


def registrations(warehouse: Warehouse, stored: Sequence[StoredSnapshot], policies: ClusterPolicies) -> Registrations:
    """Read the distinct registrations on the driver: as many as cluster members have changed, however many the snapshots.

    A function that refers to them carries them to its workers, as Spark Connect, which has no broadcast variables, requires.
    Errors: InvalidWarehouse; UsageError where the policy refuses a cluster.
    """
    by_hash = read_registrations(warehouse, stored)
    # Two clusters may have equal members, as two of a laptop have, and policies of their own.
    policy_of = {one.cluster_id: policies.of_cluster(one.cluster_id) for one in stored}
    places: dict[tuple[str, int], int] = {}
    distinct: list[ClusterMembers] = []
    of_snapshot = []
    for one in stored:
        policy = policy_of[one.cluster_id]
        # By identity: a policy holds dicts, and is not hashable.
        key = one.members, id(policy)
        if key not in places:
            places[key] = len(distinct)
            distinct.append(ClusterMembers(*by_hash[one.members], policy))
        of_snapshot.append(places[key])
    return Registrations(tuple(distinct), np.array(of_snapshot, dtype=np.int32))
