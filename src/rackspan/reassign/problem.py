"""The input of the optimizer: which brokers may hold, and which may receive, replicas, and the target factor of each partition."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rackspan.audit import PartitionBatch, RackPolicy, snapshot_batch
from rackspan.errors import UsageError
from rackspan.model import Bools, ClusterSnapshot, Int32s, Int64s, PartitionColumns, RackMap, UnrackedPolicy, rack_map
from rackspan.reassign.rack_shares import RackShares, rack_shares
from rackspan.reassign.request import ReassignmentRequest, chosen_topics

PLANNED_FACTOR_MAX = 1_000
"""The largest replication factor that is planned for: far beyond any cluster, and a bound on the tables."""


@dataclass(frozen=True, eq=False)
class ReassignmentProblem:
    """P partitions among the B brokers that stay.

    `rack_map`: the brokers that may hold replicas afterwards, all registered ones without those that leave. `can_receive`
    (B,): those of them that are not fenced. `replica_index` (P, width): index into `rack_map`, −1 for padding, for brokers
    that are gone or leave, and for replicas already on their way out. `current_factor`, `target_factor` (P,).
    `own_rack` (P,): rack code that a replaced replica leaves and should come back to, −1 for none. `chosen` (P,): what
    the request is about and may be changed. `left_alone` (P,): whose placement the policy leaves as it is. `diskless`
    (P,): whose records are not on brokers, so that nothing is planned for them. `leaderless` (P,): from which nothing can be copied.
    `led_besides` (B,): preferred leaders of partitions that are not among these P; None for none.
    """

    rack_map: RackMap
    can_receive: Bools
    rows: PartitionColumns
    replica_index: Int32s
    current_factor: Int64s
    target_factor: Int64s
    own_rack: Int32s
    chosen: Bools
    moving: Bools
    left_alone: Bools
    diskless: Bools
    leaderless: Bools
    led_besides: Int64s | None = None

    def take(self, rows: Int64s) -> "ReassignmentProblem":
        """The problem of these partitions only."""
        return replace(
            self,
            rows=self.rows.take(rows),
            replica_index=self.replica_index[rows],
            current_factor=self.current_factor[rows],
            target_factor=self.target_factor[rows],
            own_rack=self.own_rack[rows],
            chosen=self.chosen[rows],
            moving=self.moving[rows],
            left_alone=self.left_alone[rows],
            diskless=self.diskless[rows],
            leaderless=self.leaderless[rows],
        )

    @cached_property
    def replica_racks(self) -> Int32s:
        """Rack code of each replica that may stay. Shape as `replica_index`."""
        return self.rack_map.codes_at(self.replica_index)

    @cached_property
    def shares(self) -> RackShares:
        largest = max(int(self.target_factor.max(initial=1)), int(self.current_factor.max(initial=1)))
        return rack_shares(self.rack_map.sizes, min(largest, PLANNED_FACTOR_MAX))

    @cached_property
    def loads(self) -> Int64s:
        """Replicas on each broker that stays, the unchosen partitions' too. Shape (B,)."""
        held = self.replica_index[self.replica_index >= 0]
        return np.bincount(held, minlength=len(self.rack_map.broker_ids))


def reassignment_problem(
    snapshot: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest
) -> ReassignmentProblem:
    """The part of a snapshot that a request plans on. Errors: UsageError for brokers to drain that hold nothing."""
    batch = snapshot_batch(snapshot, policy)
    _refuse_unknown(batch, request)
    rack_map = _remaining_racks(snapshot, policy, request)
    staying = np.where(batch.staying, snapshot.partitions.replicas, -1).astype(np.int32)
    if not staying.shape[1]:
        # A cluster without partitions gets one column of padding, so that no code downstream has to check for one.
        staying = np.full((len(staying), 1), -1, dtype=np.int32)
    moving = np.asarray(
        (snapshot.partitions.adding_replicas >= 0).any(axis=1)
        | (snapshot.partitions.removing_replicas >= 0).any(axis=1)
    )
    in_topics = chosen_topics(snapshot.topics, request.topics)[snapshot.partitions.topic]
    chosen = np.asarray(in_topics & ~moving & ~batch.required.diskless)
    target_factor = batch.replication_factor.copy()
    if request.replication_factor is not None:
        target_factor[chosen] = request.replication_factor
    usable = {int(broker.id) for broker in snapshot.brokers if not broker.fenced} - policy.excluded_of(snapshot.brokers)
    return ReassignmentProblem(
        rack_map=rack_map,
        can_receive=np.array([broker in usable for broker in rack_map.broker_ids.tolist()], dtype=np.bool_),
        rows=snapshot.partitions,
        replica_index=rack_map.broker_index(staying),
        current_factor=batch.replication_factor,
        target_factor=target_factor,
        own_rack=_own_rack(batch, rack_map, request),
        chosen=chosen,
        moving=np.asarray(in_topics & moving),
        left_alone=batch.required.left_alone & ~batch.required.diskless,
        diskless=batch.required.diskless,
        leaderless=batch.leaderless,
    )


def _remaining_racks(snapshot: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest) -> RackMap:
    left = [broker for broker in snapshot.brokers if broker.id not in request.leaving]
    if not left:
        raise UsageError("every broker would be drained: at least one has to hold the replicas; drain fewer")
    counted = rack_map(left, policy.unracked)
    # Where no broker counts in a rack there is nothing to spread over: one rack for all.
    return counted if counted.racks else rack_map(left, UnrackedPolicy.SHARED)


def _refuse_unknown(batch: PartitionBatch, request: ReassignmentRequest) -> None:
    registered = set(batch.members.rack_map.broker_ids.tolist())
    for broker in sorted(request.leaving - registered):
        # A broker that is gone for good is drained by its id, though the cluster no longer lists it.
        if not bool((batch.rows.replicas == broker).any()):
            raise UsageError(f"broker {broker}: the cluster does not list it, and no partition has a replica on it")


def _own_rack(batch: PartitionBatch, rack_map: RackMap, request: ReassignmentRequest) -> Int32s:
    own = np.full(len(batch.rows), -1, dtype=np.int32)
    codes = {rack: code for code, rack in enumerate(rack_map.racks)}
    for broker in sorted(request.replace):
        index = int(batch.members.rack_map.broker_index(np.array([broker], dtype=np.int32))[0])
        code = int(batch.members.rack_map.rack_codes[index]) if index >= 0 else -1
        if code >= 0:
            held = ((batch.rows.replicas == broker) & batch.staying).any(axis=1)
            own[held] = codes.get(batch.members.rack_map.racks[code], -1)
    return own
