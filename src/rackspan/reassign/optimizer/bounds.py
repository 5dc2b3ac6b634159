"""The fewest replica copies that make a partition rack-safe: the lower bound of every plan."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Int32s, Int64s
from rackspan.reassign.rack_shares import RackShares, position_in_run, racked


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What each partition needs, shape (P,) each.

    `additions`: replicas that must be copied to a new broker, the lower bound. `removals`: replicas on known racks that
    must leave. `uncounted_removals`: replicas that count in no rack and must leave.
    """

    additions: Int64s
    removals: Int64s
    uncounted_removals: Int64s


def needs(rack_codes: Int32s, uncounted: Int64s, target_factor: Int64s, shares: RackShares) -> Needs:
    """The fewest copies that give each partition `target_factor` replicas, spread as evenly as racks allow.

    `rack_codes` (P, width): racks of the replicas that may stay, NO_RACK elsewhere. `uncounted` (P,): replicas that may
    stay but count in no rack; each can stand for one that a rack lacks. `target_factor` (P,) is at most what `shares`
    has tables for.

    Constraints: rack r ends with least[k, r] to most[k, r] of the k replicas.
    Goal: the fewest additions.
    Method: of c[r] replicas at most min(c[r], most[r]) can stay, and each rack below least[r] must receive the
    difference: additions = max(k − sum min(c, most), sum (least − c)+). Counted by position within runs of sorted
    codes, so the cost is one sort of each row whatever the number of racks.
    Bound: it is one, and tight: held against every possible replica set of small clusters (tests/reassign).
    Source: docs/formats.md's move, |target − current|; water-filling as audit's rack-spread.
    """
    ordered, before = position_in_run(rack_codes)
    factor = target_factor[:, None]
    kept = np.count_nonzero((before < shares.most[factor, ordered]), axis=1)
    fed = np.count_nonzero((before < shares.least[factor, ordered]), axis=1)
    lacking = shares.least.sum(axis=1)[target_factor] - fed
    uncounted_kept = np.minimum(uncounted, np.maximum(target_factor - kept, 0))
    additions = np.maximum(np.maximum(target_factor - uncounted_kept - kept, lacking - uncounted_kept), 0)
    return Needs(
        additions=np.asarray(additions),
        removals=np.asarray(racked(rack_codes) + additions - (target_factor - uncounted_kept)),
        uncounted_removals=np.asarray(uncounted - uncounted_kept),
    )
