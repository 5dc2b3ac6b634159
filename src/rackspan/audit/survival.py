"""The worst single loss of each partition: whether it goes offline, or refuses acks=all, at the loss its topic has to survive.

Two states are judged by the same function: the present one, and the placement with every replica in sync, which separates
what a missing broker causes from what the placement or a config causes. `reachable` returns the replication factor and
the min.insync.replicas with which a partition would survive.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from rackspan.audit.policy import SURVIVE_CODES, Survive
from rackspan.model import (
    NO_RACK,
    Bools,
    Int32s,
    Int64s,
    count_in_row,
    counts_descending,
    even_spread,
    forcing_value,
    left_without_fullest,
)

RACK_CODE = SURVIVE_CODES.index(Survive.RACK)
NONE_CODE = SURVIVE_CODES.index(Survive.NONE)


@dataclass(frozen=True)
class WorstLoss:
    """What the worst loss of the kind to survive does to each partition. Masks of shape (P,), never both.

    `offline`: no replica in sync is left. `refused`: one leads, but too few replicas or racks are in sync for acks=all.
    """

    offline: Bools
    refused: Bools

    @cached_property
    def harmed(self) -> Bools:
        """Made once: every finding reads its row of it."""
        return np.asarray(self.offline | self.refused)


def worst_loss(
    rack_codes: Int32s, in_sync: Bools, survive: Int64s, min_isr: Int64s, racks_required: Int64s
) -> WorstLoss:
    """The worst loss of the kind that each partition has to survive.

    `rack_codes`, `in_sync` (P, width): the rack of each replica, and whether it can lead; the others (P,).
    Method: the fullest rack is the worst to lose for the number in sync, and any rack costs one rack; a replica that counts
    in no rack may be lost with it. A broker costs a rack where it is the only one of it. Bound: a sort of each row. Test: tests/audit/test_survival.py,
    by losing each in turn.
    """
    total = count_in_row(in_sync)
    counts = counts_descending(np.where(in_sync, rack_codes, np.int32(NO_RACK)))
    racks = count_in_row(counts > 0)
    of_rack = survive == RACK_CODE
    left = np.where(of_rack, left_without_fullest(counts), total - np.minimum(total, 1))
    racks_left = racks - np.minimum(np.where(of_rack, racks, count_in_row(counts == 1)), 1)
    judged = survive != NONE_CODE
    offline = np.asarray(judged & (left == 0))
    short = (left < min_isr) | ((racks_required > 1) & (racks_left < racks_required))
    return WorstLoss(offline, np.asarray(judged & ~offline & short))


@dataclass(frozen=True, slots=True)
class Reachable:
    """A replication factor, spread evenly over the racks, and a min.insync.replicas that survive the loss together."""

    replication_factor: int
    min_insync_replicas: int


@dataclass(frozen=True, slots=True)
class Demand:
    """What one partition has now, and what is required of it. `forced`: min.insync.replicas has to force the racks."""

    replication_factor: int
    min_insync_replicas: int
    min_insync_racks: int
    forced: bool
    survive: Survive


@lru_cache(maxsize=4096)
def reachable(rack_sizes: tuple[int, ...], wanted: Demand) -> Reachable | None:
    """What to bring a partition to; None where these racks and brokers have no placement that survives.

    Constraints: replicas spread over the racks as evenly as their sizes allow; the loss is survived; the racks are forced.
    Goals, in order: no lower min.insync.replicas, no lower replication factor, the fewest replicas to add or remove.
    Method: every replication factor that could be the first to suffice is tried. Twice the replicas and racks required
    are enough for two racks, the hardest case; more racks need fewer.
    Bound: as many factors. Test: tests/audit/test_survival.py.
    """
    now = wanted.replication_factor
    brokers = sum(rack_sizes)
    most = min(brokers, max(now, 2 * (wanted.min_insync_replicas + wanted.min_insync_racks)))
    found = [
        (value < wanted.min_insync_replicas, factor < now, abs(factor - now), factor, value)
        for factor in range(1, most + 1)
        for value in [_value_for(rack_sizes, wanted, factor)]
        if value is not None
    ]
    if not found:
        return None
    *_, factor, value = min(found)
    return Reachable(factor, value)


@lru_cache(maxsize=4096)
def value_for(rack_sizes: tuple[int, ...], wanted: Demand) -> int | None:
    """The min.insync.replicas closest to the present one that survives with the present replication factor."""
    return _value_for(rack_sizes, wanted, wanted.replication_factor)


def _value_for(rack_sizes: tuple[int, ...], wanted: Demand, factor: int) -> int | None:
    counts = even_spread(rack_sizes, factor)
    if sum(counts) < factor:
        return None
    racks, required = sum(count > 0 for count in counts), wanted.min_insync_racks
    lost, racks_lost = {
        Survive.RACK: (counts[0], 1),
        Survive.BROKER: (1, int(1 in counts)),
        Survive.NONE: (0, 0),
    }[wanted.survive]
    if required > 1 and racks - racks_lost < required:
        return None
    least = 1
    if required > 1 and wanted.forced:
        least = int(forcing_value(np.array([counts], dtype=np.int64), required)[0])
    most = factor - lost
    if least > most:
        return None
    if wanted.survive is Survive.NONE:
        # A value above the replication factor is counted as all replicas.
        return max(wanted.min_insync_replicas, least)
    return min(max(wanted.min_insync_replicas, least), most)
