"""Partitions in need, by kind: those whose replicas stand on the same racks need the same."""

from dataclasses import dataclass

import numpy as np

from rackspan.model.partitions import Bools, Int64s
from rackspan.model.racks import NO_RACK
from rackspan.reassign.optimizer.bounds import Needs
from rackspan.reassign.optimizer.row_groups import Groups, grouped
from rackspan.reassign.problem import Standing


@dataclass(frozen=True, slots=True, eq=False)
class Kinds:
    """G kinds of partitions among the rows `rows` (N,).

    Per kind: `arrivals` (G,); `least_arrivals` and `most_arrivals` (G, racks), what each rack must and may receive;
    `must_evict` and `may_evict` (G, racks); `free_evictions` (G,), evictions beyond the musts; `own_rack` (G,).
    """

    rows: Int64s
    groups: Groups
    arrivals: Int64s
    least_arrivals: Int64s
    most_arrivals: Int64s
    must_evict: Int64s
    may_evict: Int64s
    free_evictions: Int64s
    own_rack: Int64s

    @property
    def reachable(self) -> Bools:
        """Kinds whose arrivals find brokers that can receive them. Only fenced brokers stand in the way. Shape (G,)."""
        least = (self.least_arrivals <= self.most_arrivals).all(axis=1)
        return np.asarray(least & (self.most_arrivals.sum(axis=1) >= self.arrivals))


def kinds(now: Standing, needed: Needs, rows: Int64s) -> Kinds:
    """Group `rows` and say what one partition of each kind may give and take."""
    racks, receiving = now.replica_racks[rows], now.receiving[now.replica_index[rows]]
    # A fenced broker cannot receive, so it does not use up a place of those that can.
    slots = np.sort(np.where(racks == NO_RACK, -1, racks * 2 + receiving), axis=1)
    wanted, own = now.wanted_factor[rows], now.own_rack[rows]
    groups = grouped(
        np.column_stack([slots, wanted, own, needed.arrivals[rows], needed.evictions[rows]]).astype(np.int64)
    )
    first = groups.first
    held, usable = slots_per_rack(slots[first], now.shares.racks)
    least, most = now.shares.least[wanted[first], :-1], now.shares.most[wanted[first], :-1]
    arrivals, evictions = needed.arrivals[rows][first], needed.evictions[rows][first]
    must = np.maximum(held - most, 0)
    free = evictions - must.sum(axis=1)
    lacking = np.maximum(least - held, 0)
    # Replicas that count in no rack can stand for what a rack lacks: then not all of it must come.
    short = lacking.sum(axis=1) > arrivals
    room = np.where(short[:, None], lacking, np.maximum(most - held, 0))
    places = np.bincount(now.homes.rack_codes[now.receiving & (now.homes.rack_codes >= 0)], minlength=now.shares.racks)
    return Kinds(
        rows=rows,
        groups=groups,
        arrivals=arrivals,
        least_arrivals=np.where(short[:, None], 0, lacking),
        most_arrivals=np.minimum(room, np.maximum(places - usable, 0)),
        must_evict=must,
        may_evict=np.where(free[:, None] > 0, np.maximum(np.minimum(held, most) - least, 0), 0),
        free_evictions=free,
        own_rack=own[first].astype(np.int64),
    )


def slots_per_rack(slots: Int64s, racks: int) -> tuple[Int64s, Int64s]:
    """Replicas on each rack, and those of them on brokers that can receive. Shape (G, racks) each.

    A slot is twice the rack code, plus one where the broker can receive; negative slots count nowhere.
    """
    kind = np.repeat(np.arange(len(slots)), slots.shape[1])[slots.ravel() >= 0]
    slot = slots.ravel()[slots.ravel() >= 0]
    place = kind * racks + slot // 2
    held = np.bincount(place, minlength=len(slots) * racks)
    usable = np.bincount(place[slot % 2 == 1], minlength=len(slots) * racks)
    return held.reshape(-1, racks), usable.reshape(-1, racks)
