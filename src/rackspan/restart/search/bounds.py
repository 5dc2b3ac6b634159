"""Lower bounds on the number of batches: none of them is ever above the fewest. Test: tests/restart/test_planner.py.

Safety is a rule over sets, so pairs are not enough: three replicas of which one must stay in sync forbid only all three.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from rackspan.restart.search.conflicts import Conflicts

_CLIQUE_STARTS: Final = 20
"""Brokers with the most conflicts from which a clique is grown. One is a proof, so more starts only improve it."""

_DENSE_STARTS: Final = 5


@dataclass(frozen=True, slots=True)
class LowerBound:
    """At least so many batches, and why in words."""

    batches: int
    reason: str


def lower_bound(conflicts: Conflicts) -> LowerBound:
    """The largest of all bounds that need no search."""
    if conflicts.size == 0:
        return LowerBound(0, "no broker to restart")
    candidates = [
        LowerBound(1, "one batch at least"),
        LowerBound(
            -(-conflicts.size // conflicts.most), f"{conflicts.size} brokers, {conflicts.most} in a batch at most"
        ),
        _by_voters(conflicts),
        _by_partition(conflicts),
        _by_clique(conflicts),
    ]
    return max(candidates, key=lambda bound: bound.batches)


def dense_bound(conflicts: Conflicts) -> LowerBound:
    """By sets of brokers of which any three conflict: a batch has at most two of them.

    Method: such a set is grown from the brokers with the most forbidden triples. Costs more than the other bounds, so it is
    for plans that these do not prove.
    """
    thirds = _third_brokers(conflicts)
    often: dict[int, int] = {}
    for (first, second), others in thirds.items():
        for broker in (first, second):
            often[broker] = often.get(broker, 0) + others.bit_count()
    best: list[int] = []
    for start in sorted(often, key=lambda broker: (-often[broker], broker))[:_DENSE_STARTS]:
        best = max(best, _grown(thirds, start, conflicts.size), key=len)
    return LowerBound(-(-len(best) // 2), f"of {len(best)} brokers no three may stop together")


def _by_voters(conflicts: Conflicts) -> LowerBound:
    voters = int(np.count_nonzero(conflicts.voter))
    if voters == 0 or conflicts.voters_most < 1:
        return LowerBound(0, "no voter")
    return LowerBound(
        -(-voters // conflicts.voters_most), f"{voters} controllers, {conflicts.voters_most} may stop together"
    )


def _by_partition(conflicts: Conflicts) -> LowerBound:
    may_stop = conflicts.rows.in_sync_count - conflicts.rows.least
    counted = (conflicts.chosen_count > 0) & (may_stop > 0)
    if not counted.any():
        return LowerBound(0, "no partition")
    needed = np.where(counted, -(-conflicts.chosen_count // np.maximum(may_stop, 1)), 0)
    worst = int(np.argmax(needed))
    return LowerBound(
        int(needed[worst]),
        f"a partition has {conflicts.chosen_count[worst]} of them, and {may_stop[worst]} may stop together",
    )


def _by_clique(conflicts: Conflicts) -> LowerBound:
    pairs, best = conflicts.pairs, 0
    degree = pairs.sum(axis=1)
    for start in np.argsort(-degree, kind="stable")[:_CLIQUE_STARTS].tolist():
        members, candidates = 1, pairs[start].copy()
        while candidates.any():
            # The candidate with the most conflicts among the candidates.
            among = np.where(candidates, pairs[:, candidates].sum(axis=1), -1)
            candidates &= pairs[int(np.argmax(among))]
            members += 1
        best = max(best, members)
    return LowerBound(best, f"of {best} brokers no two may stop together")


def _third_brokers(conflicts: Conflicts) -> dict[tuple[int, int], int]:
    """For two brokers, in ascending order, the bits of those that may not stop with both of them."""
    rows = conflicts.beyond_pairs
    local, judged = conflicts.local[rows], conflicts.rows.take(rows)
    triples = set[tuple[int, int, int]]()
    for columns in combinations(range(local.shape[1]), 3):
        stopped = np.zeros(local.shape, dtype=np.bool_)
        stopped[:, columns] = True
        chosen = (local[:, columns] >= 0).all(axis=1)
        harmed = local[:, columns][judged.blocks(judged.in_sync & ~stopped) & chosen]
        triples.update(map(tuple, np.unique(np.sort(harmed, axis=1), axis=0).tolist()))
    thirds: dict[tuple[int, int], int] = {}
    for triple in triples:
        for pair in combinations(triple, 2):
            (third,) = set(triple) - set(pair)
            thirds[pair] = thirds.get(pair, 0) | 1 << third
    return thirds


def _grown(thirds: dict[tuple[int, int], int], start: int, size: int) -> list[int]:
    members = [start]
    candidates = (1 << size) - 1 & ~(1 << start)
    while candidates:
        best, best_left = -1, -1
        for broker in _bits(candidates):
            left = candidates & ~(1 << broker)
            for member in members:
                left &= thirds.get((min(member, broker), max(member, broker)), 0)
            if left.bit_count() > best_left:
                best, best_left = broker, left.bit_count()
        narrowed = candidates & ~(1 << best)
        for member in members:
            narrowed &= thirds.get((min(member, best), max(member, best)), 0)
        members.append(best)
        candidates = narrowed
    return members if len(members) > 2 else []


def _bits(bits: int) -> list[int]:
    return [place for place in range(bits.bit_length()) if bits >> place & 1]
