"""Topics whose placement is left alone (`survive = "none"`): only what is on brokers that leave moves, to others in its rack.

Test: tests/reassign/test_in_place.py, by plain loops.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit.constraints.remedies import PLACE_ANEW
from rackspan.audit.policy import RackPolicy
from rackspan.model import NO_BROKER, NO_RACK, Bools, ClusterSnapshot, Int32s, Int64s, any_in_row, rack_map
from rackspan.reassign.conflicts import conflict_of, missing_brokers, without_leader, without_rows
from rackspan.reassign.plan_cost import Conflict
from rackspan.reassign.problem import ReassignmentProblem
from rackspan.reassign.request import ReassignmentRequest
from rackspan.text import count_noun


@dataclass(frozen=True, slots=True, eq=False)
class InPlace:
    """Where the partitions end. `index` (P, width): into the brokers that stay. `copies`: replicas that move.

    `infeasible`: rows that stay as they are. `leaderless`: rows without a leader that need nothing else.
    """

    index: Int32s
    copies: int
    infeasible: Int64s
    leaderless: Int64s
    conflicts: tuple[Conflict, ...]

    def preferred_leaders(self, brokers: int) -> Int64s:
        """How many of these partitions each broker is to lead. Shape (B,)."""
        first = self.index[:, 0]
        return np.bincount(first[first >= 0], minlength=brokers)


def planned_in_place(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    problem: ReassignmentProblem,
    request: ReassignmentRequest,
    loads: Int64s,
) -> InPlace:
    """Replace what is on brokers that leave, and nothing else. All topics of the snapshot keep their placement.

    Constraints: a replica stays in its rack, or, if that is not known, in a rack that its partition is in; no broker twice;
    nothing comes to a broker that leaves, is fenced or excluded.
    Goals, in order: the fewest moves, one for each replica that has to leave; brokers with few replicas (`loads`) first.
    Method: one replica after another. Bound: each needs its copy, so that no plan has fewer. Test: tests/reassign/test_in_place.py.
    """
    rows = problem.rows
    missing = list(missing_brokers(snapshot, problem, request))
    untouched = [selected for selected, _ in missing]
    chosen = without_rows(problem.chosen, np.concatenate([np.zeros(0, dtype=np.int64), *untouched]))
    other_factor = np.flatnonzero(chosen & (problem.target_factor != problem.current_factor))
    chosen = without_rows(chosen, other_factor)
    leaves = np.asarray((rows.replicas != NO_BROKER) & (problem.replica_index < 0) & chosen[:, None])
    needed, offline = np.flatnonzero(any_in_row(leaves)), np.flatnonzero(chosen & problem.leaderless)
    waiting = np.intersect1d(needed, offline)
    index, copies, blocked = _replaced(snapshot, policy, problem, leaves, np.setdiff1d(needed, offline), loads.copy())
    return InPlace(
        index,
        copies,
        np.concatenate([*untouched, other_factor, offline, blocked]),
        np.setdiff1d(offline, waiting),
        (
            *(conflict for _, conflict in missing),
            *_other_factor(snapshot, other_factor, request),
            *_blocked(snapshot, blocked),
            *without_leader(snapshot, waiting),
        ),
    )


def _replaced(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    problem: ReassignmentProblem,
    leaves: Bools,
    needed: Int64s,
    loads: Int64s,
) -> tuple[Int32s, int, Int64s]:
    """The broker indices afterwards, the copies, and the rows for which a rack has no broker left."""
    index, copies, blocked = problem.replica_index.copy(), 0, []
    rack_of = rack_map(snapshot.brokers, policy.unracked).rack_of
    code_of = {rack: code for code, rack in enumerate(problem.rack_map.racks)}
    for row in needed.tolist():
        target = index[row].copy()
        for place in np.flatnonzero(leaves[row]).tolist():
            rack = rack_of.get(int(problem.rows.replicas[row, place]))
            codes = _racks_held(problem, target) if rack is None else [code_of.get(rack, NO_RACK)]
            taker = _least_loaded(problem, target, codes, loads)
            if taker is None:
                blocked.append(row)
                break
            target[place] = taker
        else:
            new = target[leaves[row]]
            loads[new] += 1
            copies += len(new)
            index[row] = target
    return index, copies, np.array(blocked, dtype=np.int64)


def _racks_held(problem: ReassignmentProblem, held: Int32s) -> Sequence[int]:
    """The racks of these brokers, the fullest first."""
    counted = Counter(problem.rack_map.rack_codes[held[held >= 0]].tolist())
    return [code for code, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])) if code != NO_RACK]


def _least_loaded(problem: ReassignmentProblem, held: Int32s, codes: Sequence[int], loads: Int64s) -> int | None:
    """The broker with the fewest replicas of the first of these racks that has one to receive another."""
    for code in codes:
        able = problem.can_receive & (problem.rack_map.rack_codes == code) & (code != NO_RACK)
        able[held[held >= 0]] = False
        if able.any():
            return int(np.argmin(np.where(able, loads, np.iinfo(np.int64).max)))
    return None


def _other_factor(snapshot: ClusterSnapshot, rows: Int64s, request: ReassignmentRequest) -> Iterator[Conflict]:
    if len(rows):
        yield conflict_of(
            snapshot,
            rows,
            f"{_left_alone(rows)}: replication factor {request.replication_factor} is not planned",
            remedy=PLACE_ANEW,
        )


def _left_alone(rows: Int64s) -> str:
    return f'{count_noun(len(rows), "partition")} whose placement is left alone (survive = "none")'


def _blocked(snapshot: ClusterSnapshot, rows: Int64s) -> Iterator[Conflict]:
    if len(rows):
        yield conflict_of(
            snapshot,
            rows,
            f"{_left_alone(rows)}, in a rack where no other broker can receive a replica",
            remedy=f"add brokers there, bring those that are down back, drain fewer, or {PLACE_ANEW}",
        )
