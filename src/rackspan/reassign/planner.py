"""A request, planned: repair, then balance if asked, then leaders, and the account of it all."""

from dataclasses import dataclass, replace

import numpy as np

from rackspan.audit.loads import BELIEVED_BYTES_MAX, replica_bound
from rackspan.audit.policy import RackPolicy
from rackspan.model.ids import NO_BROKER
from rackspan.model.partitions import Bools, Int32s, Int64s
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.reassign.conflicts import broken_minimums, fenced_racks, too_few_brokers
from rackspan.reassign.optimizer.balance import level
from rackspan.reassign.optimizer.leaders import even_leaders
from rackspan.reassign.optimizer.repair import in_need, repair
from rackspan.reassign.optimizer.replica_lists import led_by, with_changes
from rackspan.reassign.plan_cost import Balance, Conflict, LoadRange, PlanCost
from rackspan.reassign.problem import Standing, standing
from rackspan.reassign.reassignment_plan import ReassignmentColumns, ReassignmentPlan, Step
from rackspan.reassign.request import ReassignmentRequest

UNORDERED = "in no order yet"
"""The reason of the one step that a plan has before `plan.order_steps`."""


def plan(
    snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy(), request: ReassignmentRequest = ReassignmentRequest()
) -> ReassignmentPlan:
    """The least movement that brings a cluster where `request` wants it.

    Constraints: every chosen partition is spread over racks as evenly as the brokers that stay allow, no broker twice,
    nothing on brokers that leave or are gone.
    Goals, in order: moves, bytes, replicas per broker, preferred leaders by reordering.
    Bound: `PlanCost.lower_bound`, proven partition by partition (bounds.py).
    Errors: UsageError where the request names what the cluster does not have. What cannot be met is no error but in
    `PlanCost.infeasible`; the rest is planned.
    """
    now = standing(snapshot, policy, request)
    untouchable, conflicts = _untouchable(snapshot, policy, now, request)
    now = replace(now, chosen=_without(now.chosen, untouchable))
    needed, rows, too_many = in_need(now)
    changes = repair(now, needed, rows)
    targets = with_changes(now.replica_index, changes.leaving, changes.arrivals.row, changes.arrivals.broker)
    stuck = np.concatenate([changes.blocked, too_many])
    done = np.setdiff1d(rows, changes.blocked)
    bound = _Bound(int(needed.arrivals[done].sum()))
    if request.balance:
        targets = level(now, targets, _without(now.chosen, np.concatenate([rows, stuck])))
        bound = bound.or_arrivals(now, targets)
    if request.reorder_leaders:
        targets = _with_even_leaders(now, targets, stuck)
    return _plan_of(
        snapshot,
        now,
        targets,
        stuck,
        bound=bound,
        conflicts=(
            *conflicts,
            *too_few_brokers(snapshot, now, too_many),
            *fenced_racks(snapshot, now, changes.blocked),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Bound:
    """What no plan can undercut: what the constraints need, or what the loads reached need, whichever is more."""

    constraints: int
    loads: int = 0

    @property
    def moves(self) -> int:
        return max(self.constraints, self.loads)

    def or_arrivals(self, now: Standing, targets: Int32s) -> "_Bound":
        """A broker that ends with more than it has now receives at least the difference."""
        after = np.bincount(targets[targets >= 0], minlength=len(now.loads))
        return replace(self, loads=int(np.maximum(after - now.loads, 0).sum()))

    def why(self, moves: int) -> str | None:
        if moves == self.moves:
            return None
        return (
            f"the constraints alone need {self.constraints} moves and the loads reached {self.loads}; "
            "a plan for both needs more than either, how many more is not proven"
        )


def _without(mask: Bools, rows: Int64s) -> Bools:
    rest = mask.copy()
    rest[rows] = False
    return rest


def _untouchable(
    snapshot: ClusterSnapshot, policy: RackPolicy, now: Standing, request: ReassignmentRequest
) -> tuple[Int64s, tuple[Conflict, ...]]:
    found = list(broken_minimums(snapshot, policy, now, request))
    rows = [mine for mine, _ in found]
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows]), tuple(conflict for _, conflict in found)


def _with_even_leaders(now: Standing, targets: Int32s, stuck: Int64s) -> Int32s:
    rows, leader = even_leaders(targets, _without(now.chosen, stuck), now.receiving)
    return led_by(targets, rows, leader)


def _plan_of(
    snapshot: ClusterSnapshot,
    now: Standing,
    targets: Int32s,
    stuck: Int64s,
    *,
    bound: "_Bound",
    conflicts: tuple[Conflict, ...],
) -> ReassignmentPlan:
    ids = np.append(now.homes.broker_ids, np.int32(NO_BROKER))[targets]
    rows = snapshot.partitions
    changed = np.flatnonzero(_without(now.chosen, stuck) & _differ(ids, rows.replicas))
    columns = ReassignmentColumns(
        topics=[topic.name for topic in snapshot.topics],
        topic=rows.topic[changed],
        partition=rows.partition[changed],
        replicas=ids[changed],
        undo=rows.replicas[changed],
    )
    additions, size_bytes = columns.additions, rows.size_bytes[changed]
    cost = PlanCost(
        lower_bound=bound.moves,
        gap_reason=bound.why(int(additions.sum())),
        bytes=int((additions * np.clip(size_bytes, 0, BELIEVED_BYTES_MAX)).sum()),
        unsized_moves=int(additions[size_bytes < 0].sum()),
        before=balance(now, now.replica_index),
        after=balance(now, targets),
        replicas_bound=replica_bound(now.homes, np.bincount(_placed_factors(now, stuck))),
        left_out=_left_out(now),
        infeasible=conflicts,
    )
    steps = (Step(1, UNORDERED, columns, cost.bytes),) if len(changed) else ()
    return ReassignmentPlan(snapshot.cluster_id, _topic_ids(snapshot, columns), steps, cost)


def _topic_ids(snapshot: ClusterSnapshot, columns: ReassignmentColumns) -> dict[str, str]:
    """Topics by id where it is known: one deleted and created again is another topic."""
    topics = [snapshot.topics[code] for code in dict.fromkeys(columns.topic.tolist())]
    return {topic.name: topic.topic_id for topic in topics if topic.topic_id is not None}


def _differ(mine: Int32s, theirs: Int32s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    width = max(mine.shape[1], theirs.shape[1])
    padded = [np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=NO_BROKER) for m in (mine, theirs)]
    return np.asarray((padded[0] != padded[1]).any(axis=1))


def balance(now: Standing, index: Int32s) -> Balance:
    """Replicas and preferred leaders per broker that stays, given broker indices (P, width)."""
    brokers = len(now.homes.broker_ids)
    replicas = np.bincount(index[index >= 0], minlength=brokers)
    first = index[:, 0] if index.shape[1] else np.zeros(0, dtype=np.int32)
    leaders = np.bincount(first[first >= 0], minlength=brokers)
    return Balance(*(LoadRange(int(one.min()), int(one.max())) for one in (replicas, leaders)))


def _placed_factors(now: Standing, stuck: Int64s) -> Int64s:
    """Replication factors once the plan is done: what is stuck keeps its own."""
    factors = now.wanted_factor.copy()
    factors[stuck] = now.current_factor[stuck]
    return factors


def _left_out(now: Standing) -> tuple[str, ...]:
    moving = int(np.count_nonzero(now.moving))
    if not moving:
        return ()
    noun = "partition is" if moving == 1 else "partitions are"
    return (f"{moving} {noun} being reassigned already: wait for it, or rackspan reassign cancel, then plan again",)
