"""Batches in an order that can be carried out from the state that was read: what is down first, the rest with that up.

A broker that is fenced takes nothing away when it stops, and while it is down others may not stop. Nor does the stop of a dead
controller cost the quorum anything. Both come first: of every plan that can be carried out, none with fewer batches has fenced
brokers later, if a batch may hold all of them. Test: tests/restart/test_planner.py, against every order of sets of brokers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rackspan.audit import ClusterMembers
from rackspan.model import Bools, ClusterSnapshot, Int32s, Int64s
from rackspan.restart.search import (
    Conflicts,
    LowerBound,
    chosen_conflicts,
    dense_bound,
    greedy_batches,
    is_small,
    lower_bound,
    searched_batches,
)
from rackspan.restart.stopping import InSyncRows


@dataclass(frozen=True)
class Fleet:
    """The brokers of a restart as they are, by index, and what they will be once restarted.

    `rows`: with each chosen broker up and every replica on a broker that is up in sync. Masks of shape (brokers,): `fenced`,
    of the chosen; `voter`, in the process of a voter; `alive`, of one that is alive. `others_alive`: voters that are alive
    in no broker's process. `majority`: 0 without voters. `most`: brokers in a batch.
    """

    rows: InSyncRows
    chosen: Bools
    fenced: Bools
    voter: Bools
    alive: Bools
    others_alive: int
    majority: int
    most: int

    @cached_property
    def harmless(self) -> Bools:
        """The brokers whose stop takes nothing away: fenced, and not in the process of a voter that is alive."""
        return self.fenced & ~self.alive

    @cached_property
    def others_down(self) -> Bools:
        """The others that are down: in the process of a dead voter, or fenced in that of one that is alive."""
        dead_voter = self.chosen & self.voter & ~self.alive
        return (dead_voter | self.fenced) & ~self.harmless

    @cached_property
    def blocked(self) -> Bools:
        """The brokers that may not stop even with all others up. What is harmless is not among them."""
        left = np.flatnonzero(self.chosen & ~self.harmless)
        blocked = np.zeros(len(self.chosen), dtype=np.bool_)
        started = self._started(self.harmless)
        if not started.has_quorum:
            blocked[left] = True
            return blocked
        every_up = replace(self, majority=0, fenced=np.zeros_like(self.fenced))
        blocked[left] = every_up.conflicts(left).blocked & ~self.fenced[left]
        revived = started._started(self.others_down & ~blocked)
        blocked[left] |= revived.alive[left] & (revived.voters_most < 1)
        if (blocked & self.fenced).any():
            # They stay down, without which others may not stop.
            blocked[left] |= self._started((self.harmless | self.others_down) & ~blocked).conflicts(left).blocked
        return blocked

    @cached_property
    def up(self) -> "Fleet":
        """The fleet once everything that is down and not blocked is restarted."""
        return self._started((self.harmless | self.others_down) & ~self.blocked)

    @property
    def has_quorum(self) -> bool:
        return self._voters_alive >= self.majority

    @property
    def voters_most(self) -> int:
        """Voters that one batch may stop."""
        return max(self._voters_alive - self.majority, 0) if self.majority else len(self.chosen)

    @property
    def _voters_alive(self) -> int:
        return self.others_alive + int(np.count_nonzero(self.alive))

    def restarted(self, brokers: Int64s) -> "Fleet":
        """The fleet with these brokers restarted: they are chosen no more."""
        marked = np.isin(np.arange(len(self.chosen)), brokers)
        return replace(self._started(marked), chosen=self.chosen & ~marked)

    def _started(self, brokers: Bools) -> "Fleet":
        return replace(self, fenced=self.fenced & ~brokers, alive=self.alive | (brokers & self.voter))

    def conflicts(self, brokers: Int64s, most: int | None = None) -> Conflicts:
        """What forbids to stop these together, as the fleet is."""
        rows = self.rows.without(np.append(self.fenced, False)) if self.fenced.any() else self.rows
        allowed = self.most if most is None else most
        return chosen_conflicts(
            rows,
            brokers,
            len(self.chosen),
            self.alive[brokers],
            self.voters_most,
            allowed if self.has_quorum else 0,
        )


def fleet_of(members: ClusterMembers, snapshot: ClusterSnapshot, rows: InSyncRows, chosen: Bools, most: int) -> Fleet:
    """`members` and `snapshot` as they were read."""
    ids = members.rack_map.broker_ids
    alive = members.voter_racks.keys() - members.dead_voters
    down = {int(broker.id) for broker in snapshot.brokers if broker.fenced}
    return Fleet(
        rows,
        chosen,
        fenced=chosen & np.isin(ids, list(down)),
        voter=np.isin(ids, list(members.voter_racks)),
        alive=np.isin(ids, list(alive)),
        others_alive=len(alive - set(ids.tolist())),
        majority=len(members.voter_racks) // 2 + 1 if members.voter_racks else 0,
        most=most,
    )


@dataclass(frozen=True, slots=True)
class Rollout:
    """Batches as broker indices: `first` in this order, until everything is up, `rest` in any order after them.

    `bound`: None of a part that has more batches later.
    """

    first: Sequence[Int64s]
    rest: Sequence[Int64s]
    bound: LowerBound | None


def rolled_out(fleet: Fleet, racks: Int32s, *, by_rack: bool) -> Rollout:
    """The chosen brokers of a fleet that are not blocked. `racks`: the rack code of each broker."""
    free, up = fleet.chosen & ~fleet.blocked, fleet.up
    if not by_rack:
        return _of_group(fleet, up, free, racks, postpone=False)[0]
    parts, stuck = list[Rollout](), 0
    groups = [free & (racks == rack) for rack in np.unique(racks[free]).tolist()]
    while groups:
        group = groups.pop(0) & fleet.chosen
        part, fleet = _of_group(fleet, up, group, racks, postpone=stuck < len(groups))
        parts.append(part)
        if part.bound is None:
            groups.append(group)
            stuck = 0 if part.first else stuck + 1
    bounds = [part.bound.batches for part in parts if part.bound is not None]
    return Rollout(
        [batch for part in parts for batch in part.first],
        [batch for part in parts for batch in part.rest],
        LowerBound(
            sum(bounds), f"{'+'.join(map(str, bounds))} for the racks, one at a time" if bounds else "no broker"
        ),
    )


def _of_group(fleet: Fleet, up: Fleet, group: Bools, racks: Int32s, *, postpone: bool) -> tuple[Rollout, Fleet]:
    """The batches of brokers that may share them, and the fleet after the first of these. `up`: the fleet with all of it up.

    `postpone`: without a bound, and with the first batches only, if dead controllers need other groups up before they may stop.
    """
    size, first = int(np.count_nonzero(group)), list[Int64s]()
    by_itself = not ((fleet.fenced | fleet.others_down) & ~group).any()
    down_once = by_itself and size <= fleet.most and not (fleet.others_down & group).any()
    least = _nobody_joins(fleet, up, group) if by_itself else LowerBound(0, "")
    while True:
        harmless, others_down = np.flatnonzero(fleet.harmless & group), fleet.others_down & group
        chunk = harmless[: fleet.most]
        left = np.flatnonzero(group & fleet.chosen & ~fleet.harmless)
        later, held = up.conflicts(left), np.zeros(len(left), dtype=np.bool_)
        if len(chunk) or others_down.any():
            now = fleet.conflicts(left, fleet.most - len(chunk))
            held = _fitting(now, held, np.flatnonzero(others_down[left]).tolist())
        if not len(chunk) and not held.any() and others_down.any() and postpone:
            return Rollout(first, [], None), fleet
        if not len(chunk) and not held.any():
            batches, bound = fewest_batches(later, racks[left])
            rest = [left[batch] for batch in batches]
            return Rollout(first, rest, _no_fewer(bound, least, size, fleet.most)), fleet
        if len(chunk) == len(harmless) and np.count_nonzero(held) == np.count_nonzero(others_down):
            joined, others, bound = _joined(now, later, held, racks[left], down_once=down_once)
            batch = np.concatenate([chunk, left[joined]])
            rest = [left[other] for other in others]
            return Rollout([*first, batch], rest, _no_fewer(bound, least, size, fleet.most)), fleet.restarted(batch)
        first.append(np.concatenate([chunk, left[held]]))
        fleet = fleet.restarted(first[-1])


def _nobody_joins(fleet: Fleet, up: Fleet, group: Bools) -> LowerBound:
    """The bound if no other broker may stop before one that is down is restarted; 0 if one may."""
    others = np.flatnonzero(group & ~fleet.harmless & ~fleet.others_down)
    if not len(others) or np.count_nonzero(group) == len(others) or not fleet.conflicts(others).blocked.all():
        return LowerBound(0, "")
    return _one_more(lower_bound(up.conflicts(others)))


def _no_fewer(bound: LowerBound, least: LowerBound, size: int, most: int) -> LowerBound:
    """The largest of the bound of the brokers that are up, `least`, and what all of them need."""
    every = LowerBound(-(-size // most) if size else 0, f"{size} brokers, {most} in a batch at most")
    if every.batches == 1:
        every = LowerBound(1, "one batch at least")
    return max(bound, least, every, key=lambda each: each.batches)


def _joined(
    now: Conflicts, later: Conflicts, held: Bools, racks: Int32s, *, down_once: bool
) -> tuple[Bools, list[Bools], LowerBound]:
    """The brokers that stop with those that are down, `held` among them, and the batches after that, as masks (n,).

    `now`: the conflicts while that is down; `later`: afterwards. The batches after `held` alone are one more than the fewest
    at most: what may stop now may stop later. `down_once`: no plan is shorter that has what is down elsewhere, so that what a search proves of these batches holds of all.
    """
    batches, bound = _without(later, held, racks)
    if held.any():
        # Dead controllers count for nothing in the batch in which they are restarted, nor what is down and may not stop again.
        bound = lower_bound(replace(later, voter=later.voter & ~held).without(later.blocked))
    if not batches:
        return held, [], bound
    for at, batch in enumerate(batches):
        joined = _fitting(now, held, np.flatnonzero(batch).tolist())
        if bool((joined & batch == batch).all()):
            return joined, [*batches[:at], *batches[at + 1 :]], bound
    for batch in batches:
        order = [*np.flatnonzero(batch).tolist(), *np.flatnonzero(~batch).tolist()]
        joined = _fitting(now, held, order)
        if (joined & ~held).any():
            others = _on_all(greedy_batches(later.without(joined), racks[~joined], len(batches) - 1), joined)
            if len(others) < len(batches):
                return joined, others, bound
    if is_small(later, len(batches)):
        found, none_exist = searched_batches(later, len(batches), first=(now, held))
        if found is not None:
            return found[0], found[1:], bound
        if none_exist and down_once and len(batches) == bound.batches:
            bound = _one_more(bound)
    return held, batches, bound


def _one_more(bound: LowerBound) -> LowerBound:
    return LowerBound(bound.batches + 1, f"one batch starts what is down, then {bound.reason}")


def _fitting(conflicts: Conflicts, batch: Bools, brokers: Sequence[int]) -> Bools:
    """The batch with each of these brokers in turn that may stop with it."""
    batch = batch.copy()
    for broker in brokers:
        if not conflicts.blocked[broker] and not batch[broker] and conflicts.fits(broker, batch):
            batch[broker] = True
    return batch


def _without(conflicts: Conflicts, held: Bools, racks: Int32s) -> tuple[list[Bools], LowerBound]:
    batches, bound = fewest_batches(conflicts.without(held), racks[~held])
    return _on_all(batches, held), bound


def _on_all(batches: Sequence[Bools], left_out: Bools) -> list[Bools]:
    """Masks over those that are not left out, as masks over all."""
    masks = []
    for batch in batches:
        mask = np.zeros(len(left_out), dtype=np.bool_)
        mask[np.flatnonzero(~left_out)[batch]] = True
        masks.append(mask)
    return masks


def fewest_batches(conflicts: Conflicts, racks: Int32s) -> tuple[list[Bools], LowerBound]:
    """The fewest batches that are found, and the best bound that is proven."""
    bound = lower_bound(conflicts)
    best = greedy_batches(conflicts, racks, bound.batches) if conflicts.size else []
    if len(best) > bound.batches:
        bound = max(bound, dense_bound(conflicts), key=lambda one: one.batches)
    while len(best) > bound.batches and is_small(conflicts, len(best) - 1):
        fewer, none_exist = searched_batches(conflicts, len(best) - 1)
        if none_exist:
            bound = LowerBound(len(best), f"a search found that {len(best) - 1} batches are impossible")
        elif fewer is None:
            break
        else:
            best = fewer
    return best, bound
