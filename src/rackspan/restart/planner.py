"""Every chosen broker stopped and started in the fewest batches, each safe when its turn comes.

Constraints: no batch does what `stopping.py` forbids, in the state that was read with the brokers of earlier batches up and in
sync; a batch has at most `max_batch` brokers, of one rack if requested. Goals, in order: what is down already first, the fewest
batches; then controllers last, the active controller last of all; the least leadership moved first. Replicas that lag on
brokers that are up get back in sync by themselves: batches that have to wait for that come late, and name it.
Method: rollout.py; greedy orders, then CP-SAT if the lower bound is not met and the plan is small. Bound: `lower_bound` of
search.py, in every plan. Test: tests/restart/test_planner.py, against every order of sets of brokers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rackspan.audit import ClusterMembers, PartitionBatch, RackPolicy, snapshot_batch
from rackspan.errors import UsageError
from rackspan.model import (
    NO_BROKER,
    NO_RACK,
    Bools,
    ClusterSnapshot,
    Int32s,
    Int64s,
    PartitionColumns,
    any_in_row,
    shown,
)
from rackspan.model.partitions import listed_in
from rackspan.reassign.optimizer.replica_lists import compacted
from rackspan.restart.blocked import BlockedBroker, blocked_brokers
from rackspan.restart.forecast import Forecast, forecasts
from rackspan.restart.gain import NAMED, ForcingPartitions, ReassignmentGain, forcing_partitions, reassigned
from rackspan.restart.rollout import Fleet, fleet_of, rolled_out
from rackspan.restart.safe import marked, unknown_controllers, unknown_minimums, unknown_racks
from rackspan.restart.search import LowerBound
from rackspan.restart.stopping import InSyncRows, StopPolicy, in_sync_rows, marks
from rackspan.text import noun_and_ids


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """What to restart: `brokers`, None for all but those `left_over`; `by_rack`: one rack at a time; `max_batch`: brokers in a batch at most."""

    brokers: frozenset[int] | None = None
    by_rack: bool = False
    max_batch: int | None = None

    def __post_init__(self) -> None:
        if self.max_batch is not None and self.max_batch < 1:
            raise UsageError(f"a batch of {self.max_batch} brokers restarts nothing; allow at least 1")


@dataclass(frozen=True, slots=True)
class RestartBatch:
    """Brokers that may stop together, and the load that is expected meanwhile.

    `waits_for`: partitions that lack a replica in sync on a broker that is up, without which the batch may not stop; the first of them.
    """

    brokers: tuple[int, ...]
    reason: str
    forecast: Forecast
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class RestartPlan:
    """Batches in order, with the proof of how few they can be from the state that was read.

    `down`: chosen brokers that are fenced, or whose controller is dead; they come first. `batches_if_up`: how many batches are
    enough once these are up, None if nothing is down, or if one of them
    may not stop again then. `blocked`: chosen brokers that can never be stopped safely. `forcing`: partitions that forbid to stop a whole rack, where
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
    down: tuple[int, ...] = ()
    batches_if_up: int | None = None


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
    chosen = members.listed - left_over(snapshot, policy) if request.brokers is None else request.brokers
    wanted = marked(members, chosen)[:-1]
    batch = snapshot_batch(all_up(snapshot, policy, chosen), policy).judged
    rows = in_sync_rows(batch, stop)
    ids, racks = members.rack_map.broker_ids, members.rack_map.rack_codes
    fleet = fleet_of(members, snapshot, rows, wanted, request.max_batch or int(np.count_nonzero(wanted)))
    batch = replace(batch, members=_revived(members, batch.members, ids[fleet.up.alive]))
    rolled = rolled_out(fleet, racks, by_rack=request.by_rack)
    down = np.flatnonzero(fleet.harmless | fleet.others_down)
    read = snapshot_batch(snapshot, policy).judged.rows
    ordered = _ordered(fleet, batch, rolled.first, rolled.rest, _lagging(read, ids, rows))
    batches = [brokers for brokers, _ in ordered]
    return RestartPlan(
        snapshot=snapshot,
        request=request,
        stop=stop,
        batches=tuple(_batches(batch, rows, fleet, ordered)),
        lower_bound=rolled.bound or LowerBound(0, ""),
        blocked=blocked_brokers(batch, rows, policy, np.flatnonzero(fleet.blocked), fleet.up.fenced),
        without_margin=len(np.unique(rows.row[rows.margin_refused & _of_chosen(rows, wanted)])),
        forcing=forcing_partitions(batch, rows, np.flatnonzero(wanted & ~fleet.blocked), batches),
        partial=(
            *snapshot.unread,
            *unknown_minimums(snapshot, batch, rows.take(_of_chosen(rows, wanted))),
            *unknown_racks(batch.members, rows.take(_of_chosen(rows, wanted)), by_rack=request.by_rack),
            *unknown_controllers(batch.members),
        ),
        down=tuple(ids[down].tolist()),
        batches_if_up=_batches_if_up(fleet, racks, request) if len(down) else None,
    )


def left_over(snapshot: ClusterSnapshot, policy: RackPolicy) -> frozenset[int]:
    """Fenced brokers that hold no replica: perhaps registrations of what is no broker any more, which nothing can restart.

    None if not everything was read. A dead voter's process is no such one.
    """
    members = ClusterMembers(snapshot.brokers, snapshot.controllers, policy)
    if snapshot.partial:
        return frozenset()
    return members.listed - members.alive - members.dead_voters - {*np.unique(snapshot.partitions.replicas).tolist()}


def left_over_lines(snapshot: ClusterSnapshot, policy: RackPolicy) -> Iterator[str]:
    """A warning for each of `left_over`, which a plan for all brokers leaves out."""
    for broker in sorted(left_over(snapshot, policy)):
        yield (
            f"broker {broker} is fenced and holds no replica, so that it may be a registration that was left behind: "
            "it is left out; name it with --brokers to restart it"
        )


def _batches_if_up(fleet: Fleet, racks: Int32s, request: RestartRequest) -> int | None:
    """The batches of the same brokers if all of them were up; None if one might not stop then."""
    started = replace(fleet.up, chosen=fleet.chosen & ~fleet.blocked)
    if started.blocked.any():
        return None
    return len(rolled_out(started, racks, by_rack=request.by_rack).rest)


def _revived(read: ClusterMembers, up: ClusterMembers, alive: Int32s) -> ClusterMembers:
    """The members with all that is restarted up. `alive`: brokers with a controller that is alive then."""
    living = frozenset(alive.tolist())
    controllers = tuple(
        replace(controller, alive=True) if controller.alive is False and int(controller.id) in living else controller
        for controller in read.controllers
    )
    return replace(up, controllers=controllers)


def all_up(snapshot: ClusterSnapshot, policy: RackPolicy, chosen: frozenset[int]) -> ClusterSnapshot:
    """The cluster with the chosen brokers up and every replica on a broker that is up in sync, as `watch` waits for it.

    A replica in a failed log directory is left out: it is not in sync before that is repaired. One on a broker that is up and
    not listed stays in the ISR, and leads if it does now.
    """
    brokers = tuple(replace(broker, fenced=broker.fenced and broker.id not in chosen) for broker in snapshot.brokers)
    batch = snapshot_batch(replace(snapshot, brokers=brokers), policy)
    members, old = batch.members, snapshot.partitions
    up = members.usable[batch.replica_index] & ~batch.on_failed_log_dir
    unlisted = listed_in(old.replicas, np.where(batch.isr_unlisted, old.isr, np.int32(NO_BROKER)))
    isr = compacted(np.where(up | unlisted, old.replicas, np.int32(NO_BROKER)))
    able = compacted(np.where(up, old.replicas, np.int32(NO_BROKER)))
    leads = members.usable[batch.leader_index] | (any_in_row(batch.isr_hidden) & ~any_in_row(up))
    first = able[:, 0] if able.shape[1] else np.full(len(old), NO_BROKER, dtype=np.int32)
    return replace(
        snapshot,
        brokers=brokers,
        partitions=replace(old, isr=isr, leader=np.where(leads, old.leader, first)),
    )


def _of_chosen(rows: InSyncRows, wanted: Bools) -> Bools:
    return np.asarray((np.append(wanted, False)[rows.brokers] & rows.in_sync).any(axis=1))


def _lagging(read: PartitionColumns, ids: Int32s, rows: InSyncRows) -> Bools:
    """Which entries of `rows` are not in sync as the partitions were read, and are not copied by a reassignment. Shape (E, W)."""
    brokers = np.append(ids, NO_BROKER)[rows.brokers]
    in_sync = np.zeros(brokers.shape, dtype=np.bool_)
    for column in read.isr[rows.row].T:
        in_sync |= brokers == column[:, None]
    if rows.by_target.any():
        for column in read.adding_replicas[rows.row].T:
            in_sync |= (brokers == column[:, None]) & rows.by_target[:, None]
    return np.asarray(rows.in_sync & ~in_sync)


Ordered: TypeAlias = list[tuple[Int64s, Int64s]]
"""Batches as broker indices, each with the rows of partitions that it waits for."""


def _ordered(
    fleet: Fleet, batch: PartitionBatch, first: Sequence[Int64s], rest: Sequence[Int64s], lagging: Bools
) -> Ordered:
    """In the order of a roll-out: what is down, then what may stop at once, controllers last."""
    ids = batch.members.rack_map.broker_ids
    led = np.bincount(batch.leader_index[batch.leader_index >= 0], minlength=len(ids))
    voters = batch.members.voter_racks.keys()
    active = {int(controller.id) for controller in batch.members.controllers if controller.active}

    def rank(brokers: Int64s) -> tuple[bool, bool, int, list[int]]:
        held = set(ids[brokers].tolist())
        return bool(held & active), bool(held & voters), int(led[brokers].sum()), sorted(held)

    out_of_sync = any_in_row(lagging)
    rows = fleet.rows.take(out_of_sync)
    out = lagging[out_of_sync] | np.append(fleet.fenced, False)[rows.brokers]
    restarted, found = np.zeros(len(ids) + 1, dtype=np.bool_), Ordered()

    def waits_for(brokers: Int64s) -> Int64s:
        """The partitions that forbid the stop until their replicas on brokers that are up are back in sync."""
        left = rows.without(out & ~restarted[rows.brokers])
        return np.unique(rows.row[left.blocks(left.left_without(marks(len(ids), brokers)))])

    waiting = sorted(rest, key=rank)
    for brokers in first:
        found.append((brokers, waits_for(brokers)))
        restarted[brokers] = True
    while waiting:
        waits = [waits_for(brokers) for brokers in waiting] if len(rows) else [np.zeros(0, dtype=np.int64)]
        at = next((at for at, partitions in enumerate(waits) if not len(partitions)), 0)
        found.append((waiting[at], waits[at]))
        restarted[waiting.pop(at)] = True
    return found


def _batches(batch: PartitionBatch, rows: InSyncRows, fleet: Fleet, ordered: Ordered) -> list[RestartBatch]:
    members = batch.members
    ids, codes = members.rack_map.broker_ids, members.rack_map.rack_codes
    found = []
    predicted = forecasts(batch, rows, [brokers for brokers, _ in ordered], fleet.fenced)
    for (brokers, waits), forecast in zip(ordered, predicted, strict=True):
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
        reason = f"{reason}, controller {active[0]} is active" if active else reason
        names = tuple(f"{batch.topic(row)}-{batch.rows.partition[row]}" for row in waits[:NAMED].tolist())
        found.append(RestartBatch(held, reason, forecast, names))
    return found
