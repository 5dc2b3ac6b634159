"""How few replica copies make a partition safe: the bound that every plan is held against."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Int32s, Int64s
from rackspan.reassign.rack_shares import RackShares, place_in_run, racked


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What each partition needs, shape (P,) each.

    `arrivals`: replicas that must be copied to a new broker, the lower bound. `evictions`: replicas on known racks that
    must leave. `uncounted_evictions`: replicas that count in no rack and must leave.
    """

    arrivals: Int64s
    evictions: Int64s
    uncounted_evictions: Int64s


def needs(rack_codes: Int32s, uncounted: Int64s, wanted_factor: Int64s, shares: RackShares) -> Needs:
    """The fewest copies that give each partition `wanted_factor` replicas, spread as evenly as racks allow.

    `rack_codes` (P, width): racks of the replicas that may stay, NO_RACK elsewhere. `uncounted` (P,): replicas that may
    stay but count in no rack; each can stand for one that a rack lacks. `wanted_factor` (P,) is at most what `shares`
    has tables for.

    Constraints: rack r ends with least[k, r] to most[k, r] of the k replicas.
    Goal: the fewest arrivals.
    Method: of c[r] replicas at most min(c[r], most[r]) can stay, and each rack below least[r] must receive the
    difference: arrivals = max(k − sum min(c, most), sum (least − c)+). Counted by position within runs of sorted
    codes, so the cost is one sort of each row whatever the number of racks.
    Bound: it is one, and tight: held against every possible replica set of small clusters (tests/reassign).
    Source: docs/formats.md's move, |target − current|; water-filling as audit's rack-spread.
    """
    ordered, before = place_in_run(rack_codes)
    factor = wanted_factor[:, None]
    kept = np.count_nonzero((before < shares.most[factor, ordered]), axis=1)
    fed = np.count_nonzero((before < shares.least[factor, ordered]), axis=1)
    lacking = shares.least.sum(axis=1)[wanted_factor] - fed
    uncounted_kept = np.minimum(uncounted, np.maximum(wanted_factor - kept, 0))
    arrivals = np.maximum(np.maximum(wanted_factor - uncounted_kept - kept, lacking - uncounted_kept), 0)
    return Needs(
        arrivals=np.asarray(arrivals),
        evictions=np.asarray(racked(rack_codes) + arrivals - (wanted_factor - uncounted_kept)),
        uncounted_evictions=np.asarray(uncounted - uncounted_kept),
    )
