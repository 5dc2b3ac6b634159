"""Water-filling in whole units: how many units each vessel gets, so that the highest level is as low as possible.

Plain mathematics, without Kafka. Placement fills brokers with leaders and with replicas this way, within limits a rack.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rackspan.model.partitions import Bools, Int64s

Float64s: TypeAlias = npt.NDArray[np.float64]

SAME_LEVEL: Final = 1e-9
"""Levels closer than this are equal: less than one unit in any vessel of a weight up to a million."""


@dataclass(frozen=True, slots=True, eq=False)
class Vessels:
    """The vessels to fill, one entry each, shape (n,).

    `group`: which total it takes from. `held`: what it holds already, in units. `weight`: its width, above 0; a vessel of
    weight 2 holds twice as much at the same level. `least`, `most`: units it must and may get. `tie_rank`: distinct
    ranks; of vessels at the same level, the lower rank is filled first.
    """

    group: Int64s
    held: Float64s
    weight: Float64s
    least: Int64s
    most: Int64s
    tie_rank: Int64s

    def at(self, level: Float64s) -> Int64s:
        """Units each takes when its group is filled up to `level` (groups,), in units per weight."""
        units = np.floor(level[self.group] * self.weight - self.held)
        return np.asarray(np.clip(units, self.least, self.most).astype(np.int64))

    def summed(self, units: Int64s, groups: int) -> Int64s:
        """Units by group."""
        return np.bincount(self.group, weights=units, minlength=groups).astype(np.int64)


def water_fill(vessels: Vessels, totals: Int64s) -> Int64s:
    """Pour `totals[g]` units into the vessels of each group g; returns units given, shape (n,).

    Constraints: least ≤ units ≤ most; each group gets its total, which lies between its sums of least and most.
    Goal: the levels (held + units) / weight, sorted downwards, are lexicographically least; so no convex measure of
    unevenness, and no maximum, can be smaller.
    Method: bisection on the level of every group at once. What remains at the last level below the total is one unit for
    each of the vessels that the next level fills, in order of `tie_rank`.
    Bound: about 40 passes over the vessels. Source: our own. Test: tests/placement/balanced/test_water_fill.py.
    """
    low, high = _levels_around(vessels, totals)
    units = vessels.at(low)
    left = totals - vessels.summed(units, len(totals))
    return units + _first_by_rank(vessels, vessels.at(high) > units, left)


def _levels_around(vessels: Vessels, totals: Int64s) -> tuple[Float64s, Float64s]:
    """For each group a level that does not exceed its total, and one, equal or just above, that reaches it."""
    groups = len(totals)
    low = np.full(groups, _lowest(vessels))
    high = np.full(groups, _highest(vessels))
    while (high - low > _precision(high)).any():
        middle = low + (high - low) / 2
        poured = vessels.summed(vessels.at(middle), groups)
        # A group that gets its total exactly has found its level: nothing is left over between low and high.
        low, high = np.where(poured > totals, low, middle), np.where(poured >= totals, middle, high)
    return low, high


def _precision(level: npt.ArrayLike) -> Float64s:
    """The least difference between two levels; for high levels, the precision of floating point."""
    return np.asarray(np.maximum(SAME_LEVEL, 4 * np.spacing(np.abs(level))))


def _lowest(vessels: Vessels) -> float:
    return float(np.min((vessels.held + vessels.least) / vessels.weight, initial=0.0)) - 1.0


def _highest(vessels: Vessels) -> float:
    return float(np.max((vessels.held + vessels.most + 1) / vessels.weight, initial=0.0)) + 1.0


def _first_by_rank(vessels: Vessels, ready: Bools, left: Int64s) -> Int64s:
    """One unit for the first `left[g]` of the vessels that are ready, group by group."""
    order = np.lexsort((vessels.tie_rank, ~ready, vessels.group))
    group = vessels.group[order]
    starts = np.searchsorted(group, np.arange(len(left)))
    given = np.zeros(len(order), dtype=np.int64)
    given[order] = np.arange(len(order)) - starts[group] < left[group]
    return given


def rack_fill(vessels: Vessels, least: Int64s, most: Int64s, total: int) -> Int64s:
    """Pour `total` units over all groups at one common level; returns each group's share, shape (groups,).

    Constraints: least[g] ≤ share ≤ most[g], and what the vessels of a group can take.
    Goal and method as in `water_fill`: limits of groups over limits of vessels are laminar, so one level serves all, and
    each group's share, filled in tie_rank by `water_fill`, is part of an optimum. What remains at the last level goes to
    the first vessels by `tie_rank` whose group may rise.
    """
    groups = len(least)
    low, high = _lowest(vessels), _highest(vessels)
    while high - low > _precision(np.float64(high)):
        middle = low + (high - low) / 2
        poured = int(_shares_at(vessels, middle, least, most).sum())
        low, high = (low if poured > total else middle), (middle if poured >= total else high)
    share, above = (_shares_at(vessels, level, least, most) for level in (low, high))
    units = vessels.at(np.full(groups, low))
    # What a group must get beyond the level is for the first of its vessels that rise: these rise no further.
    forced = np.maximum(share - vessels.summed(units, groups), 0)
    rises = vessels.at(np.full(groups, high)) > units
    fitting = _first_by_rank(vessels, rises, above - share + forced) - _first_by_rank(vessels, rises, forced)
    rising = np.flatnonzero(fitting > 0)
    chosen = rising[np.argsort(vessels.tie_rank[rising])[: total - int(share.sum())]]
    return share + np.bincount(vessels.group[chosen], minlength=groups)


def _shares_at(vessels: Vessels, level: float, least: Int64s, most: Int64s) -> Int64s:
    units = vessels.at(np.full(len(least), level))
    return np.asarray(np.clip(vessels.summed(units, len(least)), least, most))
