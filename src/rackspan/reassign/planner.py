"""Plans a reassignment: repair, then balance if requested, then leaders, with the cost and the bound of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from rackspan.audit import leader_choices, snapshot_batch
from rackspan.audit.loads import BELIEVED_BYTES_MAX, replica_bound
from rackspan.audit.policy import LEADER_RACKS, RackPolicy
from rackspan.errors import UsageError
from rackspan.model import NO_BROKER, Bools, ClusterSnapshot, Int32s, Int64s
from rackspan.reassign.conflicts import (
    blocked_racks,
    broken_minimums,
    costs_safety,
    leaderless,
    missing_brokers,
    of_topics,
    racks_alike,
    too_few_brokers,
    without_leader,
    without_rows,
)
from rackspan.reassign.in_place import InPlace, planned_in_place
from rackspan.reassign.optimizer.balance import BalancedTargets, balance_replicas
from rackspan.reassign.optimizer.leaders import even_leaders, leaders_among
from rackspan.reassign.optimizer.placement_flow import even_repair
from rackspan.reassign.optimizer.removals import keep_in_sync
from rackspan.reassign.optimizer.repair import in_need, repair
from rackspan.reassign.optimizer.replica_lists import in_order_of, led_by, with_changes
from rackspan.reassign.plan_cost import Balance, Conflict, LoadRange, PlanCost
from rackspan.reassign.problem import ReassignmentProblem, reassignment_problem
from rackspan.reassign.reassignment_plan import ReassignmentColumns, ReassignmentPlan, Step
from rackspan.reassign.request import ReassignmentRequest
from rackspan.reassign.safety import PlacementSafety, less_safe, safety_of_rows
from rackspan.text import count_noun, noun_and_ids

UNORDERED = "in no order yet"
"""The reason of the one step that a plan has before `plan.order_steps`."""


def plan(
    snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy(), request: ReassignmentRequest = ReassignmentRequest()
) -> ReassignmentPlan:
    """The least movement that meets the constraints and the request.

    Constraints: every chosen partition is spread over racks as evenly as the brokers that stay allow, no broker twice,
    nothing on brokers that leave; no partition less safe than it is (safety.py) unless the request accepts that.
    Goals, in order: moves, bytes, replicas per broker, preferred leaders by reordering.
    Bound: `PlanCost.lower_bound`, proven partition by partition (bounds.py).
    Errors: UsageError where the request names what the cluster does not have. What cannot be met is no error but in
    `PlanCost.infeasible`; the rest is planned.
    """
    problem = reassignment_problem(snapshot, policy, request)
    if request.leaders:
        return _plan_of(snapshot, problem, _leaders_in_racks(snapshot, policy, problem, request), ())
    if not (problem.left_alone | problem.diskless).any():
        chosen, targets, conflicts = _planned(snapshot, policy, problem, request)
        return _plan_of(snapshot, replace(problem, chosen=chosen), targets, conflicts)
    free, alone = np.flatnonzero(~problem.left_alone & ~problem.diskless), np.flatnonzero(problem.left_alone)
    of_free, of_alone = (replace(snapshot, partitions=snapshot.partitions.take(rows)) for rows in (free, alone))
    chosen = problem.chosen.copy()
    in_place = planned_in_place(of_alone, policy, problem.take(alone), request, problem.loads)
    of_rest = replace(problem.take(free), led_besides=in_place.preferred_leaders(len(problem.loads)))
    chosen[free], targets, conflicts = _planned(of_free, policy, of_rest, request)
    together = _together(problem, free, targets, alone, in_place)
    return _plan_of(snapshot, replace(problem, chosen=chosen), together, conflicts)


def _planned(
    snapshot: ClusterSnapshot, policy: RackPolicy, problem: ReassignmentProblem, request: ReassignmentRequest
) -> tuple[Bools, "_Targets", tuple[Conflict, ...]]:
    """Where the partitions end whose placement may change, and first which of them are planned."""
    untouchable, conflicts = _untouchable(snapshot, policy, problem, request)
    problem = replace(problem, chosen=without_rows(problem.chosen, untouchable))
    refused = list[tuple[Int64s, PlacementSafety]]()
    while True:
        targets = _targets(snapshot, policy, problem, request)
        rows, after = _less_safe(snapshot, policy, problem, targets, request)
        if not len(rows):
            break
        refused.append((rows, after))
        # What stays where it is leaves other loads to balance, so the rest is planned again without it.
        problem = replace(problem, chosen=without_rows(problem.chosen, rows))
    conflicts = (*racks_alike(snapshot, policy), *conflicts)
    return problem.chosen, targets, (*conflicts, *costs_safety(snapshot, policy, request, refused))


def _together(
    problem: ReassignmentProblem, free: Int64s, targets: "_Targets", alone: Int64s, in_place: InPlace
) -> "_Targets":
    """The targets of all partitions: of the rows `free`, and of those whose placement is left alone. The others stay."""
    parts = ((free, targets), (alone, in_place))
    width = max(problem.replica_index.shape[1], targets.index.shape[1])
    index = np.pad(
        problem.replica_index, ((0, 0), (0, width - problem.replica_index.shape[1])), constant_values=NO_BROKER
    )
    for rows, part in parts:
        index[rows] = NO_BROKER
        index[rows, : part.index.shape[1]] = part.index
    return _Targets(
        index,
        np.concatenate([rows[part.infeasible] for rows, part in parts]),
        np.concatenate([rows[part.leaderless] for rows, part in parts]),
        targets.bound.with_more(in_place.copies),
        (*targets.conflicts, *in_place.conflicts),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Targets:
    """Where every partition ends. `index` (P, width): into the brokers that stay. `infeasible`: rows that stay as they are.

    `leaderless`: those of them that have no leader, and need nothing else.
    """

    index: Int32s
    infeasible: Int64s
    leaderless: Int64s
    bound: "_Bound"
    conflicts: tuple[Conflict, ...]

    def changed(self, problem: ReassignmentProblem) -> tuple[Int64s, Int32s]:
        """The rows whose replica lists change, and their broker ids, NO_BROKER for padding."""
        ids = np.append(problem.rack_map.broker_ids, np.int32(NO_BROKER))[self.index]
        rows = np.flatnonzero(without_rows(problem.chosen, self.infeasible) & _differ(ids, problem.rows.replicas))
        return rows, ids[rows]


def _targets(
    snapshot: ClusterSnapshot, policy: RackPolicy, problem: ReassignmentProblem, request: ReassignmentRequest
) -> _Targets:
    needed, rows, too_many = in_need(problem)
    # Without a leader there is nothing to copy from: such a partition would hold up its step for good.
    offline = np.flatnonzero(problem.chosen & problem.leaderless)
    waiting = np.intersect1d(np.concatenate([rows, too_many]), offline)
    problem = replace(problem, chosen=without_rows(problem.chosen, offline))
    rows, too_many = np.setdiff1d(rows, offline), np.setdiff1d(too_many, offline)
    changes = repair(problem, needed, rows)
    index = with_changes(problem.replica_index, changes.leaving, changes.additions.row, changes.additions.broker)
    infeasible = np.concatenate([changes.blocked, too_many])
    done = np.setdiff1d(rows, changes.blocked)
    bound = _Bound(int(needed.additions[done].sum()))
    if request.balance:
        repaired = np.zeros(len(problem.chosen), dtype=np.bool_)
        repaired[done] = True
        balanced = balance_replicas(problem, index, without_rows(problem.chosen, infeasible), repaired)
        targets, kept = keep_in_sync(problem, balanced.targets, np.flatnonzero(problem.chosen))
        if kept:
            # The flow does not have this rule, so that its bounds do not hold for what is left of it.
            balanced = BalancedTargets(targets, None, None)
        index = in_order_of(problem.replica_index, balanced.targets)
        bound = bound.with_balance(problem, balanced)
    elif len(done):
        targets, _ = keep_in_sync(problem, even_repair(problem, index, done), done)
        index = in_order_of(problem.replica_index, targets)
    if request.reorder_leaders:
        required, _ = leader_choices(snapshot_batch(snapshot, policy))
        index = _with_even_leaders(problem, index, np.concatenate([infeasible, required]))
    return _Targets(
        index,
        np.concatenate([infeasible, offline]),
        np.setdiff1d(offline, waiting),
        bound,
        (
            *too_few_brokers(snapshot, problem, too_many),
            *blocked_racks(snapshot, policy, problem, changes.blocked),
            *without_leader(snapshot, waiting),
        ),
    )


def _less_safe(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    problem: ReassignmentProblem,
    targets: _Targets,
    request: ReassignmentRequest,
) -> tuple[Int64s, PlacementSafety]:
    """Rows that would end less safe than they are, and how safe: none where the request accepts that."""
    rows, replicas = targets.changed(problem)
    now, after = safety_of_rows(snapshot, policy, rows), safety_of_rows(snapshot, policy, rows, replicas)
    worse = np.flatnonzero(less_safe(now, after) & (not request.allow_fewer_racks))
    return rows[worse], after.take(worse)


@dataclass(frozen=True, slots=True)
class _Bound:
    """Moves that no plan can undercut: those that the constraints need, or loads as even, whichever is more.

    `loads`: moves that every plan needs whose loads are those reached, broker by broker; `even`: that every plan needs whose
    loads are as even, on whichever brokers. Where the loads are proven to be the most even, the second is the bound, since
    other brokers may take fewer moves. `load_gap`: replicas that more even loads, if there are any, have elsewhere; None
    where nothing is proven.
    """

    constraints: int
    loads: int = 0
    even: int = 0
    load_gap: int | None = 0

    @property
    def moves(self) -> int:
        return max(self.constraints, self.even if self.load_gap == 0 else self.loads)

    def with_balance(self, problem: ReassignmentProblem, balanced: BalancedTargets) -> "_Bound":
        """A broker that ends with more than it has now receives at least the difference."""
        after = np.bincount(balanced.targets[balanced.targets >= 0], minlength=len(problem.loads))
        loads = int(np.maximum(after - problem.loads, 0).sum())
        return replace(self, loads=loads, even=balanced.moves_bound or 0, load_gap=balanced.load_gap)

    def with_more(self, moves: int) -> "_Bound":
        """With moves of other partitions, all of which are needed."""
        return replace(self, constraints=self.constraints + moves, loads=self.loads + moves, even=self.even + moves)

    def why(self, moves: int) -> str | None:
        if self.load_gap:
            replicas = count_noun(self.load_gap, "replica")
            return (
                f"the loads may not be the most even: at best, {replicas} would be on other brokers; "
                "whether a plan can place them there is not proven"
            )
        if self.load_gap is None:
            return "the loads may not be the most even: that is not proven, since the cluster is too large or replicas in sync had to stay"
        if moves == self.moves:
            return None
        return (
            f"the constraints alone need {count_noun(self.constraints, 'move')} and loads as even {self.even}; "
            "whether a plan for both needs more than either is not proven"
        )


def _untouchable(
    snapshot: ClusterSnapshot, policy: RackPolicy, problem: ReassignmentProblem, request: ReassignmentRequest
) -> tuple[Int64s, tuple[Conflict, ...]]:
    missing = list(missing_brokers(snapshot, problem, request))
    for selected, _ in missing:
        problem = replace(problem, chosen=without_rows(problem.chosen, selected))
    found = [*missing, *broken_minimums(snapshot, policy, problem, request)]
    rows = [selected for selected, _ in found]
    return np.concatenate([np.zeros(0, dtype=np.int64), *rows]), tuple(conflict for _, conflict in found)


def _with_even_leaders(problem: ReassignmentProblem, targets: Int32s, kept_rows: Int64s) -> Int32s:
    rows, leader = even_leaders(
        targets, without_rows(problem.chosen, kept_rows), problem.can_receive, problem.led_besides
    )
    return led_by(targets, rows, leader)


def _leaders_in_racks(
    snapshot: ClusterSnapshot, policy: RackPolicy, problem: ReassignmentProblem, request: ReassignmentRequest
) -> _Targets:
    """Every partition where it is, with its preferred leader in the rack that `leader.racks` requires."""
    rows, choices = leader_choices(snapshot_batch(snapshot, policy))
    mine = problem.chosen[rows]
    required = {topic.name for topic in snapshot.topics} & policy.topic_leader_racks.keys()
    if not any(re.fullmatch(request.topics or ".*", topic) for topic in required):
        raise UsageError(
            f"--leaders: no {'such ' if request.topics else ''}topic of the cluster has {LEADER_RACKS}; "
            f'add {LEADER_RACKS} = ["RACK"] to its [topics."NAME"] in rackspan.toml'
        )
    changed, leader = leaders_among(problem.replica_index, rows[mine], choices[mine], problem.can_receive)
    kept = np.setdiff1d(np.arange(len(problem.rows)), changed)
    return _Targets(led_by(problem.replica_index, changed, leader), kept, kept[:0], _Bound(0), ())


def _plan_of(
    snapshot: ClusterSnapshot, problem: ReassignmentProblem, targets: _Targets, conflicts: tuple[Conflict, ...]
) -> ReassignmentPlan:
    changed, replicas = targets.changed(problem)
    rows = snapshot.partitions
    columns = ReassignmentColumns(
        topics=[topic.name for topic in snapshot.topics],
        topic=rows.topic[changed],
        partition=rows.partition[changed],
        replicas=replicas,
        undo=rows.replicas[changed],
    )
    additions = columns.additions
    known_bytes, unsized = bytes_copied(additions, rows.size_bytes[changed])
    cost = PlanCost(
        lower_bound=targets.bound.moves,
        gap_reason=targets.bound.why(int(additions.sum())),
        bytes=known_bytes,
        unsized_moves=unsized,
        before=balance(problem, problem.replica_index),
        after=balance(problem, targets.index),
        replicas_bound=_replicas_bound(problem, targets),
        left_out=(*_left_out(snapshot, problem), *leaderless(snapshot, targets.leaderless)),
        infeasible=(*conflicts, *targets.conflicts),
        leaderless=len(targets.leaderless),
    )
    steps = (Step(1, UNORDERED, columns, cost.bytes),) if len(changed) else ()
    return ReassignmentPlan(snapshot.cluster_id, _topic_ids(snapshot, columns), steps, cost)


def bytes_copied(additions: Int64s, size_bytes: Int64s) -> tuple[int, int]:
    """The bytes of copies of partitions as far as sizes are known, and how many copies have none. Shapes (P,)."""
    known_bytes = int((additions * np.clip(size_bytes, 0, BELIEVED_BYTES_MAX)).sum())
    return known_bytes, int(additions[size_bytes < 0].sum())


def _topic_ids(snapshot: ClusterSnapshot, columns: ReassignmentColumns) -> dict[str, str]:
    """Topics by id where it is known: one deleted and created again is another topic."""
    topics = [snapshot.topics[code] for code in dict.fromkeys(columns.topic.tolist())]
    return {topic.name: topic.topic_id for topic in topics if topic.topic_id is not None}


def _differ(selected: Int32s, theirs: Int32s) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    width = max(selected.shape[1], theirs.shape[1])
    padded = [np.pad(m, ((0, 0), (0, width - m.shape[1])), constant_values=NO_BROKER) for m in (selected, theirs)]
    return np.asarray((padded[0] != padded[1]).any(axis=1))


def balance(problem: ReassignmentProblem, index: Int32s) -> Balance:
    """Replicas and preferred leaders per broker that stays, given broker indices (P, width)."""
    brokers = len(problem.rack_map.broker_ids)
    replicas = np.bincount(index[index >= 0], minlength=brokers)
    first = index[:, 0] if index.shape[1] else np.zeros(0, dtype=np.int32)
    leaders = np.bincount(first[first >= 0], minlength=brokers)
    return Balance(*(LoadRange(int(counts.min()), int(counts.max())) for counts in (replicas, leaders)))


def _replicas_bound(problem: ReassignmentProblem, targets: _Targets) -> int:
    """The least that the fullest broker can hold: of what is spread over the racks, and of what stays in its racks by itself."""
    held = targets.index[problem.left_alone]
    spread = replica_bound(problem.rack_map, np.bincount(_placed_factors(problem, targets.infeasible)))
    return max(spread, int(np.bincount(held[held >= 0], minlength=1).max()))


def _placed_factors(problem: ReassignmentProblem, infeasible_rows: Int64s) -> Int64s:
    """Replication factors once the plan is done, of all that is spread over the racks. Infeasible rows keep their own."""
    factors = problem.target_factor.copy()
    factors[infeasible_rows] = problem.current_factor[infeasible_rows]
    return factors[~problem.left_alone & ~problem.diskless]


def _left_out(snapshot: ClusterSnapshot, problem: ReassignmentProblem) -> Iterator[str]:
    moving = int(np.count_nonzero(problem.moving))
    if moving:
        are, them = ("partition is", "it") if moving == 1 else ("partitions are", "them")
        down = _waited_for_and_down(snapshot, problem)
        first = f"bring back {noun_and_ids('broker', down)}, " if down else ""
        yield f"{moving} {are} moving now: {first}wait for {them}, or rackspan reassign cancel --in-flight, then plan again"
    alone = np.flatnonzero(problem.left_alone & problem.chosen)
    if len(alone):
        yield f'{of_topics(snapshot, alone)} survive = "none": each replica stays in its rack'
    if problem.diskless.any():
        yield f"{of_topics(snapshot, np.flatnonzero(problem.diskless))} no data on brokers: a diskless topic"


def _waited_for_and_down(snapshot: ClusterSnapshot, problem: ReassignmentProblem) -> list[int]:
    """The brokers that reassignments under way add replicas on, and that are not up: until they are, no such one ends."""
    rows = snapshot.partitions.take(problem.moving)
    up = [int(broker.id) for broker in snapshot.brokers if not broker.fenced]
    added = rows.adding_replicas
    copied = (added[:, :, None] == rows.isr[:, None, :]).any(axis=2)
    down: list[int] = np.unique(added[(added != NO_BROKER) & ~copied & ~np.isin(added, up)]).tolist()
    return down
