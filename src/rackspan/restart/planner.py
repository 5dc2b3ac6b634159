"""Every chosen broker stopped and started in the fewest batches, each safe with everything else up.

Constraints: no batch does what `stopping.py` forbids; a batch has at most `max_batch` brokers, of one rack if requested.
Goals, in order: the fewest batches; brokers that are down already first, controllers last, the active controller last of
all; the least leadership moved first. Method: greedy orders, then CP-SAT if the lower bound is not met and the plan is small.
Bound: `lower_bound` of search.py, in every plan. Test: tests/restart/test_planner.py, against every set of brokers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rackspan.audit import ClusterMembers, PartitionBatch, RackPolicy, snapshot_batch
from rackspan.errors import UsageError
from rackspan.model import NO_BROKER, NO_RACK, Bools, ClusterSnapshot, Int32s, Int64s, shown
from rackspan.reassign.optimizer.replica_lists import compacted
from rackspan.restart.blocked import BlockedBroker, blocked_brokers
from rackspan.restart.forecast import Forecast, forecasts
from rackspan.restart.gain import ForcingPartitions, ReassignmentGain, forcing_partitions, reassigned
from rackspan.restart.safe import marked, unknown_controllers, unknown_minimums, voters_left
from rackspan.restart.search import (
    Conflicts,
    LowerBound,
    chosen_conflicts,
    dense_bound,
    greedy_batches,
    is_small,
    lower_bound,
    searched_batches,
)
from rackspan.restart.stopping import InSyncRows, StopPolicy, in_sync_rows
from rackspan.text import noun_and_ids


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """What to restart: `brokers`, None for all; `by_rack`: one rack at a time; `max_batch`: brokers in a batch at most."""

    brokers: frozenset[int] | None = None
    by_rack: bool = False
    max_batch: int | None = None

    def __post_init__(self) -> None:
        if self.max_batch is not None and self.max_batch < 1:
            raise UsageError(f"a batch of {self.max_batch} brokers restarts nothing; allow at least 1")


@dataclass(frozen=True, slots=True)
class RestartBatch:
    """Brokers that may stop together, and the load that is expected meanwhile."""

    brokers: tuple[int, ...]
    reason: str
    forecast: Forecast


@dataclass(frozen=True)
class RestartPlan:
    """Batches in order, with the proof of how few they can be.

    `blocked`: chosen brokers that can never be stopped safely. `forcing`: partitions that forbid to stop a whole rack, where
    there are more batches than racks. `without_margin`: partitions whose replication factor allows no such margin. `partial`: what could not be read; a plan with such a gap proves nothing.
    """

    snapshot: ClusterSnapshot
    request: RestartRequest
    stop: StopPolicy
    batches: tuple[RestartBatch, ...]
    lower_bound: LowerBound
    blocked: tuple[BlockedBroker, ...]
    forcing: ForcingPartitions | None
    without_margin: int
    partial: tuple[str, ...]


def plan_restart(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = RackPolicy(),
    stop: StopPolicy = StopPolicy(),
    request: RestartRequest = RestartRequest(),
) -> RestartPlan:
    """Plan the restart of the chosen brokers. Errors: UsageError for a broker that the cluster does not list."""
    found = _plan(snapshot, policy, stop, request)
    changed = None if found.forcing is None else reassigned(snapshot, policy, found.forcing)
    if found.forcing is None or changed is None:
        return found
    command, moves, afterwards = changed
    then = _plan(afterwards, policy, stop, request)
    if len(then.batches) >= len(found.batches) or len(then.blocked) > len(found.blocked):
        return found
    gain = ReassignmentGain(command, moves, len(then.batches))
    return replace(found, forcing=replace(found.forcing, gain=gain))


def _plan(snapshot: ClusterSnapshot, policy: RackPolicy, stop: StopPolicy, request: RestartRequest) -> RestartPlan:
    members = ClusterMembers(snapshot.brokers, snapshot.controllers, policy)
    every = frozenset(int(broker.id) for broker in snapshot.brokers)
    chosen = every if request.brokers is None else request.brokers
    wanted = marked(members, chosen)[:-1]
    batch = snapshot_batch(all_up(snapshot, policy, chosen), policy)
    rows = in_sync_rows(batch, stop)
    indices = np.flatnonzero(wanted)
    conflicts = _conflicts(batch.members, rows, indices, request)
    blocked = conflicts.blocked
    searched, bound = _fewest(conflicts.without(blocked), batch.members.rack_map.rack_codes[indices[~blocked]], request)
    free = indices[~blocked]
    ordered = _ordered(snapshot, batch, [free[np.flatnonzero(mask)] for mask in searched])
    return RestartPlan(
        snapshot=snapshot,
        request=request,
        stop=stop,
        batches=tuple(_batches(batch, rows, ordered)),
        lower_bound=bound,
        blocked=blocked_brokers(batch, rows, policy, indices[blocked]),
        without_margin=len(np.unique(rows.row[rows.margin_refused & _of_chosen(rows, wanted)])),
        forcing=forcing_partitions(batch, rows, free, ordered),
        partial=(
            *snapshot.unread,
            *unknown_minimums(snapshot, batch, rows.take(_of_chosen(rows, wanted))),
            *unknown_controllers(batch.members),
        ),
    )


def all_up(snapshot: ClusterSnapshot, policy: RackPolicy, chosen: frozenset[int]) -> ClusterSnapshot:
    """The cluster with the chosen brokers up and every replica on a broker that is up in sync, as `watch` waits for it."""
    brokers = tuple(replace(broker, fenced=broker.fenced and broker.id not in chosen) for broker in snapshot.brokers)
    controllers = tuple(
        replace(controller, alive=True) if int(controller.id) in chosen and controller.alive is False else controller
        for controller in snapshot.controllers
    )
    members = ClusterMembers(brokers, controllers, policy)
    old = snapshot.partitions
    up = members.usable[members.rack_map.broker_index(old.replicas)]
    isr = compacted(np.where(up, old.replicas, np.int32(NO_BROKER)))
    leads = members.usable[members.rack_map.broker_index(old.leader)]
    first = isr[:, 0] if isr.shape[1] else np.full(len(old), NO_BROKER, dtype=np.int32)
    return replace(
        snapshot,
        brokers=brokers,
        controllers=controllers,
        partitions=replace(old, isr=isr, leader=np.where(leads, old.leader, first)),
    )


def _of_chosen(rows: InSyncRows, wanted: Bools) -> Bools:
    return np.asarray((np.append(wanted, False)[rows.brokers] & rows.in_sync).any(axis=1))


def _conflicts(members: ClusterMembers, rows: InSyncRows, indices: Int64s, request: RestartRequest) -> Conflicts:
    ids = members.rack_map.broker_ids
    alive = members.voter_racks.keys() - members.dead_voters
    voter = np.isin(ids[indices], list(alive))
    quorum = voters_left(members, ())
    voters_most = len(indices) if quorum is None else max(quorum.left - quorum.majority, 0)
    most = len(indices) if request.max_batch is None else request.max_batch
    if quorum is not None and not quorum.holds:
        most = 0
    return chosen_conflicts(rows, indices, len(ids), voter, voters_most, most)


def _fewest(conflicts: Conflicts, racks: Int32s, request: RestartRequest) -> tuple[list[Bools], LowerBound]:
    if not request.by_rack:
        return _searched(conflicts, racks)
    found: list[Bools] = []
    total, reasons = 0, []
    for rack in np.unique(racks).tolist():
        inside = racks == rack
        batches, bound = _searched(conflicts.without(~inside), racks[inside])
        for batch in batches:
            whole = np.zeros(len(racks), dtype=np.bool_)
            whole[np.flatnonzero(inside)[batch]] = True
            found.append(whole)
        total += bound.batches
        reasons.append(bound.batches)
    return found, LowerBound(
        total, f"{'+'.join(map(str, reasons))} for the racks, one at a time" if reasons else "no broker"
    )


def _searched(conflicts: Conflicts, racks: Int32s) -> tuple[list[Bools], LowerBound]:
    """The fewest batches that are found, and the best bound that is proven."""
    bound = lower_bound(conflicts)
    best = greedy_batches(conflicts, racks, bound.batches) if conflicts.size else []
    if len(best) > bound.batches:
        bound = max(bound, dense_bound(conflicts), key=lambda one: one.batches)
    while len(best) > bound.batches and is_small(conflicts, len(best) - 1):
        fewer, none_exist = searched_batches(conflicts, len(best) - 1)
        if none_exist:
            bound = LowerBound(len(best), f"a search found that {len(best) - 1} batches are impossible")
        elif fewer is None:
            break
        else:
            best = fewer
    return best, bound


def _ordered(snapshot: ClusterSnapshot, batch: PartitionBatch, batches: Sequence[Int64s]) -> list[Int64s]:
    """In the order of a roll-out: the brokers of each batch as indices."""
    ids = batch.members.rack_map.broker_ids
    led = np.bincount(batch.leader_index[batch.leader_index >= 0], minlength=len(ids))
    down = {int(broker.id) for broker in snapshot.brokers if broker.fenced}
    voters = batch.members.voter_racks.keys()
    active = {int(controller.id) for controller in snapshot.controllers if controller.active}

    def rank(brokers: Int64s) -> tuple[bool, bool, bool, int, list[int]]:
        held = set(ids[brokers].tolist())
        # Without the brokers that are down no other batch may be safe.
        return not held & down, bool(held & active), bool(held & voters), int(led[brokers].sum()), sorted(held)

    return sorted(batches, key=rank)


def _batches(batch: PartitionBatch, rows: InSyncRows, ordered: Sequence[Int64s]) -> list[RestartBatch]:
    members = batch.members
    ids, codes = members.rack_map.broker_ids, members.rack_map.rack_codes
    found = []
    for brokers, forecast in zip(ordered, forecasts(batch, rows, ordered), strict=True):
        held = tuple(sorted(ids[brokers].tolist()))
        racks = np.unique(codes[brokers])
        where = f"{len(racks)} racks"
        if len(racks) == 1:
            where = "no rack" if racks[0] == NO_RACK else f"rack {shown(members.rack_map.racks[racks[0]])}"
        voters = [broker for broker in held if broker in members.voter_racks]
        active = [
            int(controller.id) for controller in members.controllers if controller.active and int(controller.id) in held
        ]
        reason = f"{where}, {noun_and_ids('controller', voters)}" if voters else where
        found.append(RestartBatch(held, f"{reason}, controller {active[0]} is active" if active else reason, forecast))
    return found
