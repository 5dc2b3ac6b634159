"""Distribution with at most one replica a rack (replication factor at most the number of racks): racks, then brokers."""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rackspan.model.partitions import Int64s
from rackspan.placement.balanced.broker_quotas import BrokerQuotas
from rackspan.placement.balanced.broker_table import BrokerTable
from rackspan.placement.balanced.strides import scattered, shuffled
from rackspan.placement.balanced.water_fill import Vessels, water_fill
from rackspan.placement.kafka.java_random import RandomGenerator

Indices: TypeAlias = npt.NDArray[np.signedinteger]
"""Indices of brokers or racks, in the smaller type that holds them."""

ELEMENTS_A_RUN: Final = 16
"""Followers are copied run by run where runs of one rack are longer than this; with shorter ones, sorting is faster."""


def distribute_one_per_rack(
    table: BrokerTable, quotas: BrokerQuotas, replication_factor: int, rng: RandomGenerator
) -> Indices:
    """Indices into `table`, shape (replication factor, P), preferred leaders in row 0.

    Constraints: RF distinct racks in every column. Goals: exactly the quotas; many distinct replica sets.
    Method: first the racks (`distribute_racks`), then in each rack its brokers: as leaders as often as their quota, as
        followers as often as remains. No order of brokers can put one twice into a column, so both orders are free and
        are scattered by independent strides: pairs of brokers from two racks meet about equally often.
    Bound: O(P × RF), a dozen array passes; meets every quota, so both bounds of `broker_quotas` are reached.
    Source: KIP-36 (racks first); the distribution is our own. Test: tests/placement/balanced/test_one_per_rack.py.
    """
    led, held = table.by_rack(quotas.leaders), table.by_rack(quotas.replicas)
    racks = distribute_racks(led, held, replication_factor, rng)
    rows = np.empty((replication_factor, racks.shape[1]), dtype=_index_type(len(table)))
    rows[0] = _brokers_by_rack(table, quotas.leaders, rng)
    _fill_by_rack(
        rows[1:].reshape(-1), racks.reshape(-1), _brokers_by_rack(table, quotas.replicas - quotas.leaders, rng)
    )
    return rows


def _fill_by_rack(followers: Indices, racks: Indices, brokers: Indices) -> None:
    """Give each rack's followers its brokers in turn; `brokers` are rack after rack. Shape of all three: (followers,)."""
    begins = np.append(0, np.flatnonzero(racks[1:] != racks[:-1]) + 1)[: len(racks)]
    if len(begins) * ELEMENTS_A_RUN > len(racks):
        followers[np.argsort(racks, kind="stable")] = brokers
        return
    ends = np.append(begins[1:], len(racks))
    by_rack = np.argsort(racks[begins], kind="stable")
    copied = 0
    for begin, end in zip(begins[by_rack].tolist(), ends[by_rack].tolist(), strict=True):
        followers[begin:end] = brokers[copied : copied + end - begin]
        copied += end - begin


def distribute_racks(led: Int64s, held: Int64s, replication_factor: int, rng: RandomGenerator) -> Indices:
    """Racks of the followers, shape (RF − 1, P); columns are grouped by the leader's rack, racks ascending.

    `led`, `held`: partitions each rack leads and holds, (R,); led ≤ held ≤ P, sums P and P × RF.
    Constraints: in a column all racks differ, the leader's included; rack r appears held[r] − led[r] times.
    Method: one leading rack c after the other. Let D be what racks still have to follow, n the partitions still without
        followers, n' those of them that rack r leads. The rest can be distributed exactly if D[r] ≤ n − n'[r] for all r: by
        Hall, racks S need D(S) ≤ Σ over columns of min(RF − 1, racks of S allowed), which for |S| < RF is the sum of
        those conditions and for larger S is the total. It holds at the start, because held ≤ P. So rack r gets at least
        D[r] − (n after − n' after[r]) of c's columns, at most as many as there are, near its even share (`_followers_of`),
        and the condition holds again. Inside c the racks are laid end to end over RF − 1 rows: none is longer than a row,
        so none is twice in a column (McNaughton's rule).
    Bound: O(P × RF + R²).
    Source: McNaughton 1959 for the wrap; the condition is ours, checked against every small case in
        tests/placement/balanced/test_one_per_rack.py.
    """
    remaining = (held - led).copy()
    after = led.copy()
    rows = np.empty((replication_factor - 1, int(led.sum())), dtype=_index_type(len(led)))
    ends = np.cumsum(led)
    for rack in shuffled(len(led), rng).tolist():
        columns = int(led[rack])
        after[rack] = 0
        if columns == 0 or replication_factor == 1:
            continue
        follows = _followers_of(rack, columns, remaining, after, replication_factor)
        remaining -= follows
        order = shuffled(len(led), rng)
        line = np.repeat(order, follows[order])
        rows[:, ends[rack] - columns : ends[rack]] = line.reshape(replication_factor - 1, columns)
    return rows


def _followers_of(rack: int, columns: int, follow: Int64s, after: Int64s, replication_factor: int) -> Int64s:
    """How many of the columns that `rack` leads each rack follows in. Shape (R,).

    `follow`: what each rack still has to follow; `after`: columns each rack leads among those that come later.
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
        tie_rank=np.arange(len(follow)),
    )
    return water_fill(vessels, np.array([columns * (replication_factor - 1)]))


def _brokers_by_rack(table: BrokerTable, counts: Int64s, rng: RandomGenerator) -> Indices:
    """Rack after rack, each broker `counts` times, scattered within its rack."""
    ends = np.cumsum(table.rack_sizes)
    brokers: Indices = np.arange(len(table)).astype(_index_type(len(table)))
    return np.concatenate(
        [
            _scattered(brokers[end - size : end], counts[end - size : end], rng)
            for size, end in zip(table.rack_sizes.tolist(), ends.tolist(), strict=True)
        ]
    )


def _scattered(brokers: Indices, counts: Int64s, rng: RandomGenerator) -> Indices:
    order = shuffled(len(brokers), rng)
    line = np.repeat(brokers[order], counts[order])
    # Every index is valid; without "clip", NumPy takes twice as long to check that.
    return line.take(scattered(len(line), rng), mode="clip")


def _index_type(count: int) -> type[np.int16 | np.int32]:
    """For indices below `count`; with half the bytes, a million of them fit into the processor's cache."""
    return np.int16 if count <= 2**15 else np.int32
