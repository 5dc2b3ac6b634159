"""Where everything stands before a plan: who may hold replicas, who may receive them, what each partition wants."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rackspan.audit.batch import PartitionBatch, snapshot_batch
from rackspan.audit.policy import RackPolicy
from rackspan.errors import UsageError
from rackspan.model.partitions import Bools, Int32s, Int64s, PartitionColumns
from rackspan.model.racks import RackMap, UnrackedPolicy, rack_map
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.reassign.rack_shares import RackShares, rack_shares
from rackspan.reassign.request import ReassignmentRequest, chosen_topics

PLANNED_FACTOR_MAX = 1_000
"""The largest replication factor that is planned for: far beyond any cluster, and a bound on the tables."""


@dataclass(frozen=True, eq=False)
class Standing:
    """P partitions among the B brokers that stay.

    `homes`: the brokers that may hold replicas afterwards, all registered ones without those that leave. `receiving`
    (B,): those of them that are not fenced. `replica_index` (P, width): index into `homes`, −1 for padding, for brokers
    that are gone or leave, and for replicas already on their way out. `current_factor`, `wanted_factor` (P,).
    `own_rack` (P,): rack code that a replaced replica leaves and should come back to, −1 for none. `chosen` (P,): what
    the request is about and may be changed.
    """

    homes: RackMap
    receiving: Bools
    rows: PartitionColumns
    replica_index: Int32s
    current_factor: Int64s
    wanted_factor: Int64s
    own_rack: Int32s
    chosen: Bools
    moving: Bools

    @cached_property
    def replica_racks(self) -> Int32s:
        """Rack code of each replica that may stay. Shape as `replica_index`."""
        return self.homes.codes_at(self.replica_index)

    @cached_property
    def shares(self) -> RackShares:
        largest = max(int(self.wanted_factor.max(initial=1)), int(self.current_factor.max(initial=1)))
        return rack_shares(self.homes.sizes, min(largest, PLANNED_FACTOR_MAX))

    @cached_property
    def loads(self) -> Int64s:
        """Replicas on each broker that stays, the unchosen partitions' too. Shape (B,)."""
        held = self.replica_index[self.replica_index >= 0]
        return np.bincount(held, minlength=len(self.homes.broker_ids))


def standing(snapshot: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest) -> Standing:
    """The snapshot as this request sees it. Errors: UsageError for brokers that are nowhere to be drained from."""
    seen = snapshot_batch(snapshot, policy)
    _refuse_unknown(seen, request)
    homes = _homes(snapshot, policy, request)
    staying = np.where(seen.staying, snapshot.partitions.replicas, -1).astype(np.int32)
    if not staying.shape[1]:
        # A cluster without partitions: one column of nothing, so that nobody downstream asks whether there is one.
        staying = np.full((len(staying), 1), -1, dtype=np.int32)
    moving = np.asarray(
        (snapshot.partitions.adding_replicas >= 0).any(axis=1)
        | (snapshot.partitions.removing_replicas >= 0).any(axis=1)
    )
    in_topics = chosen_topics(snapshot.topics, request.topics)[snapshot.partitions.topic]
    chosen = np.asarray(in_topics & ~moving)
    wanted = seen.replication_factor.copy()
    if request.replication_factor is not None:
        wanted[chosen] = request.replication_factor
    usable = {broker.id for broker in snapshot.brokers if not broker.fenced}
    return Standing(
        homes=homes,
        receiving=np.array([broker in usable for broker in homes.broker_ids.tolist()], dtype=np.bool_),
        rows=snapshot.partitions,
        replica_index=homes.broker_index(staying),
        current_factor=seen.replication_factor,
        wanted_factor=wanted,
        own_rack=_own_rack(seen, homes, request),
        chosen=chosen,
        moving=np.asarray(in_topics & moving),
    )


def _homes(snapshot: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest) -> RackMap:
    left = [broker for broker in snapshot.brokers if broker.id not in request.leaving]
    if not left:
        raise UsageError("every broker would be drained: at least one has to hold the replicas; drain fewer")
    counted = rack_map(left, policy.unracked)
    # Where nobody counts in a rack there is nothing to spread over: one rack for all.
    return counted if counted.racks else rack_map(left, UnrackedPolicy.SHARED)


def _refuse_unknown(seen: PartitionBatch, request: ReassignmentRequest) -> None:
    registered = set(seen.members.rack_map.broker_ids.tolist())
    for broker in sorted(request.leaving - registered):
        # A broker that is gone for good is drained by its id, though the cluster no longer lists it.
        if not bool((seen.rows.replicas == broker).any()):
            raise UsageError(f"broker {broker}: the cluster does not list it, and no partition has a replica on it")


def _own_rack(seen: PartitionBatch, homes: RackMap, request: ReassignmentRequest) -> Int32s:
    own = np.full(len(seen.rows), -1, dtype=np.int32)
    codes = {rack: code for code, rack in enumerate(homes.racks)}
    for broker in sorted(request.replace):
        index = int(seen.members.rack_map.broker_index(np.array([broker], dtype=np.int32))[0])
        code = int(seen.members.rack_map.rack_codes[index]) if index >= 0 else -1
        if code >= 0:
            held = ((seen.rows.replicas == broker) & seen.staying).any(axis=1)
            own[held] = codes.get(seen.members.rack_map.racks[code], -1)
    return own
