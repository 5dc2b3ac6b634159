"""Placing when no rack holds a partition twice (replication factor at most the number of racks): exact, in two deals."""

import numpy as np

from rackspan.model.partitions import Int32s, Int64s
from rackspan.placement.balanced.broker_quotas import Quotas
from rackspan.placement.balanced.broker_table import Fleet
from rackspan.placement.balanced.strides import scattered, shuffled
from rackspan.placement.balanced.water_fill import Vessels, water_fill
from rackspan.placement.kafka.java_random import RandomGenerator


def deal_one_a_rack(fleet: Fleet, shares: Quotas, replication_factor: int, rng: RandomGenerator) -> Int32s:
    """Indices into `fleet`, shape (replication factor, P), preferred leaders in row 0.

    Constraints: RF distinct racks in every column. Goals: exactly the quotas; many distinct replica sets.
    Method: first the racks (`deal_racks`), then in each rack its brokers: as leaders so many times as they shall lead, as
        followers so many times as remain. No order of brokers can put one twice into a column, so both orders are free
        and are scattered by independent strides: pairs of brokers from two racks meet about equally often.
    Bound: O(P × RF), a dozen array passes; meets every quota, so both of `quotas`' bounds are reached.
    Source: KIP-36 (racks first); the deals are our own.
    """
    led, held = fleet.by_rack(shares.leaders), fleet.by_rack(shares.replicas)
    racks = deal_racks(led, held, replication_factor, rng)
    rows = np.empty((replication_factor, racks.shape[1]), dtype=np.int32)
    rows[0] = _brokers_by_rack(fleet, shares.leaders, rng)
    followers = rows[1:].reshape(-1)
    followers[np.argsort(racks.reshape(-1), kind="stable")] = _brokers_by_rack(
        fleet, shares.replicas - shares.leaders, rng
    )
    return rows


def deal_racks(led: Int64s, held: Int64s, replication_factor: int, rng: RandomGenerator) -> Int64s:
    """Racks of the followers, shape (RF − 1, P); columns are grouped by the leader's rack, racks ascending.

    `led`, `held`: partitions each rack leads and holds, (R,); led ≤ held ≤ P, sums P and P × RF.
    Constraints: in a column all racks differ, the leader's included; rack r appears held[r] − led[r] times.
    Method: one leading rack c after the other. Let D be what racks still have to follow, n the partitions still without
        followers, n' those of them that rack r leads. What remains can be dealt exactly if D[r] ≤ n − n'[r] for all r: by
        Hall, racks S need D(S) ≤ Σ over columns of min(RF − 1, racks of S allowed), which for |S| < RF is the sum of
        those conditions and for larger S is the total. It holds at the start, because held ≤ P. So rack r gets at least
        D[r] − (n after − n' after[r]) of c's columns, at most as many as there are, near its even share (`_followers_of`),
        and the condition holds again. Inside c the racks are laid end to end over RF − 1 rows: none is longer than a row,
        so none meets itself in a column (McNaughton's rule).
    Bound: O(P × RF + R²).
    Source: McNaughton 1959 for the wrap; the condition is ours, checked in tests against every small case.
    """
    follow = (held - led).copy()
    after = led.copy()
    rows = np.empty((replication_factor - 1, int(led.sum())), dtype=np.int16 if len(led) < 2**15 else np.int32)
    ends = np.cumsum(led)
    for rack in shuffled(len(led), rng).tolist():
        columns = int(led[rack])
        after[rack] = 0
        if columns == 0 or replication_factor == 1:
            continue
        share = _followers_of(rack, columns, follow, after, replication_factor)
        follow -= share
        order = shuffled(len(led), rng)
        line = np.repeat(order, share[order])
        rows[:, ends[rack] - columns : ends[rack]] = line.reshape(replication_factor - 1, columns)
    return rows


def _followers_of(rack: int, columns: int, follow: Int64s, after: Int64s, replication_factor: int) -> Int64s:
    """How many of the columns that `rack` leads each rack follows in. Shape (R,).

    `follow`: what each rack still has to follow; `after`: columns each rack leads among those dealt later.
    """
    later = int(after.sum()) - after
    most = np.minimum(columns, follow)
    least = np.clip(follow - later, 0, most)
    most[rack] = least[rack] = 0
    if (least == most).all():
        return most
    even = columns * follow / np.maximum(later + columns, 1)
    vessels = Vessels(
        group=np.zeros(len(follow), dtype=np.int64),
        held=-even,
        weight=np.ones(len(follow)),
        least=least,
        most=most,
        turn=np.arange(len(follow)),
    )
    return water_fill(vessels, np.array([columns * (replication_factor - 1)]))


def _brokers_by_rack(fleet: Fleet, times: Int64s, rng: RandomGenerator) -> Int32s:
    """Rack after rack, each broker as often as `times` says, scattered within its rack."""
    ends = np.cumsum(fleet.rack_sizes)
    return np.concatenate(
        [_scattered(np.arange(end - size, end), times, rng) for size, end in zip(fleet.rack_sizes, ends, strict=True)]
    )


def _scattered(brokers: Int64s, times: Int64s, rng: RandomGenerator) -> Int32s:
    turns = brokers[shuffled(len(brokers), rng)]
    line = np.repeat(turns.astype(np.int32), times[turns])
    return line[scattered(len(line), rng)]
