"""Which change made a partition safer or less safe: the one that would have done so alone.

Constraints: a cause is named only where it alone, applied to the earlier snapshot, gives the later state. Goals in order:
a change of the partition's own replicas, ISR or leader, then of its topic's min.insync.replicas, its min.insync.racks, the
racks of brokers. Behind a change of ISR or leader: a broker gone or fenced, then a move of replicas, then the change itself.
Where no change suffices alone the cause is `several`. Method: the states of durability.py over the earlier rows with one
kind of column taken from the later ones. Bound: six passes over the columns, and one step a partition whose state changed.
Source: our own. Test: tests/audit/drift/test_compare.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.durability import states
from rackspan.model import NO_BROKER, Bools, Int32s, Int64s, PartitionColumns, any_in_row
from rackspan.model.ids import UNKNOWN_LEADER
from rackspan.model.partitions import any_outside, unpadded_rows

SEVERAL: Final = "several"
"""The cause where no change is enough by itself."""

RECREATED: Final = "topic-recreated"

OwnNames: TypeAlias = Sequence[str | None]
"""A change of each row, None for none."""


class Held(NamedTuple):
    """The brokers of one partition in one snapshot."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True)
class PartitionPair:
    """The same partitions in two snapshots, row for row. `recreated` (P,): the topic was deleted and created again."""

    before: PartitionBatch
    after: PartitionBatch
    recreated: Bools

    @cached_property
    def states_before(self) -> Int64s:
        return states(self.before)

    @cached_property
    def states_after(self) -> Int64s:
        return states(self.after)

    @cached_property
    def brokers(self) -> "BrokerChanges":
        return broker_changes(self)

    def take(self, rows: Int64s) -> "PartitionPair":
        """The pair of these partitions only."""
        return PartitionPair(self.before.take(rows), self.after.take(rows), self.recreated[rows])


@dataclass(frozen=True, slots=True)
class BrokerChanges:
    """The change of each broker, by id: brokers lost, brokers gained, and brokers that now count in another rack."""

    lost: Mapping[int, str]
    gained: Mapping[int, str]
    rack_changes: Mapping[int, str]


def broker_changes(pair: PartitionPair) -> BrokerChanges:
    """Which brokers went or were fenced, which came or were unfenced, and which count in another rack than before."""
    before, after = ({int(broker.id): broker for broker in side.members.brokers} for side in (pair.before, pair.after))
    gone, new, both = before.keys() - after.keys(), after.keys() - before.keys(), before.keys() & after.keys()
    racks = [side.members.rack_map.rack_of for side in (pair.before, pair.after)]
    fenced = {broker for broker in both if after[broker].fenced and not before[broker].fenced}
    unfenced = {broker for broker in both if before[broker].fenced and not after[broker].fenced}
    named = {
        **dict.fromkeys(both, "broker-rack-changed"),
        **dict.fromkeys(gone, "broker-gone"),
        **dict.fromkeys(new, "broker-appeared"),
    }
    return BrokerChanges(
        lost={**dict.fromkeys(gone, "broker-gone"), **dict.fromkeys(fenced, "broker-fenced")},
        gained={**dict.fromkeys(new, "broker-appeared"), **dict.fromkeys(unfenced, "broker-unfenced")},
        rack_changes={broker: name for broker, name in named.items() if racks[0].get(broker) != racks[1].get(broker)},
    )


def safety_causes(pair: PartitionPair) -> Iterator[tuple[int, bool, str, int | None]]:
    """For each state that changed: row, whether it got worse, the change that caused it, and that change's broker."""
    rows = np.flatnonzero(pair.states_before != pair.states_after)
    changed, brokers = pair.take(rows), pair.brokers
    after = pair.states_after[rows]
    enough = zip(*((states(alone) == after).tolist() for alone in _alone(changed)), strict=True)
    worse = (after < pair.states_before[rows]).tolist()
    own = zip(*own_changes(changed.before.rows, changed.after.rows), strict=True)
    columns = rows.tolist(), worse, changed.recreated.tolist(), _held(changed.before), _held(changed.after), own, enough
    for row, lost, recreated, old, new, names, alone in zip(*columns, strict=True):
        cause = (RECREATED, None) if recreated else _cause(brokers, old, new, lost, names, alone)
        yield row, lost, *cause


def _held(batch: PartitionBatch) -> Iterator[Held]:
    rows = batch.rows
    return map(Held, rows.leader.tolist(), unpadded_rows(rows.replicas), unpadded_rows(rows.isr))


def own_changes(before: PartitionColumns, after: PartitionColumns) -> tuple[OwnNames, OwnNames, OwnNames]:
    """The change of each partition's replicas, of its ISR and of its leader, None for none. Row for row the same partitions."""
    return (
        replica_changes(before.replicas, after.replicas),
        isr_changes(before.isr, after.isr),
        leader_changes(before.leader, after.leader),
    )


def replica_changes(before: Int32s, after: Int32s) -> OwnNames:
    """The change of replicas in each row, if any; broker ids in assignment order."""
    moved = any_outside(before, after) | any_outside(after, before)
    return _named((moved, "replicas-moved"), (lists_that_differ(before, after), "replicas-reordered"))


def isr_changes(before: Int32s, after: Int32s) -> OwnNames:
    """The change of the ISR in each row, if any, in whichever order the broker ids are listed."""
    left, joined = any_outside(before, after), any_outside(after, before)
    return _named((left & joined, "isr-changed"), (left, "isr-shrunk"), (joined, "isr-expanded"))


def leader_changes(before: Int32s, after: Int32s) -> OwnNames:
    """The change of the leader in each row, if any; NO_BROKER for none. A leader that is not known is no change."""
    differs = (before != after) & (before != UNKNOWN_LEADER) & (after != UNKNOWN_LEADER)
    lost, elected = differs & (after == NO_BROKER), differs & (before == NO_BROKER)
    return _named((lost, "leader-lost"), (elected, "leader-elected"), (differs, "leader-moved"))


def lists_that_differ(before: Int32s, after: Int32s) -> Bools:
    """Which rows of two padded matrices differ, whatever the widths. Shape (P,)."""
    width = min(before.shape[1], after.shape[1])
    differ = any_in_row(before[:, :width] != after[:, :width])
    # The wider matrix has lists that are longer, or padding.
    return differ | any_in_row(before[:, width:] != NO_BROKER) | any_in_row(after[:, width:] != NO_BROKER)


def _named(*choices: tuple[Bools, str]) -> OwnNames:
    """The name behind the first mask that each row is in, None where it is in none."""
    found = np.full(len(choices[0][0]), None, dtype=np.object_)
    for mask, name in reversed(choices):
        found[mask] = name
    names: list[str | None] = found.tolist()
    return names


def _alone(pair: PartitionPair) -> Iterator[PartitionBatch]:
    """The earlier partitions with one kind of column of the later ones, in the order in which causes are tried."""
    before, after = pair.before, pair.after
    own = replace(before.rows, leader=after.rows.leader, replicas=after.rows.replicas, isr=after.rows.isr)
    yield replace(before, rows=own)
    yield replace(before, required=replace(before.required, min_insync_replicas=after.required.min_insync_replicas))
    yield replace(before, required=replace(before.required, min_insync_racks=after.required.min_insync_racks))
    yield replace(before, members=after.members)


def _cause(
    brokers: "BrokerChanges",
    old: Held,
    new: Held,
    worse: bool,
    own: tuple[str | None, ...],
    enough: tuple[bool, ...],
) -> tuple[str, int | None]:
    by_itself, by_replicas, by_racks, by_brokers = enough
    if by_itself:
        return _behind(brokers.lost if worse else brokers.gained, old, new, worse, own)
    if by_replicas or by_racks:
        return f"min-insync-{'replicas' if by_replicas else 'racks'}-changed", None
    return _rack_changed(brokers.rack_changes, old, new) if by_brokers else (SEVERAL, None)


def _behind(
    changed: Mapping[int, str], old: Held, new: Held, worse: bool, own: tuple[str | None, ...]
) -> tuple[str, int | None]:
    """The change behind a change of ISR or leader. A loss is read from the side that had more, a gain from the other.

    `own` are the changes of the partition's replicas, ISR and leader.
    """
    of_replicas, of_isr, of_leader = own
    more, less = (old, new) if worse else (new, old)
    # The leader first: an offline partition lacks exactly that.
    leader = [more.leader] if more.leader >= 0 and more.leader != less.leader else []
    in_sync = sorted(set(more.isr) - set(less.isr))
    for broker in [*leader, *in_sync]:
        if broker in changed:
            return changed[broker], broker
    if not in_sync:
        # With more replicas, more of them must be in sync, although none left the ISR.
        return of_leader or of_replicas or SEVERAL, None
    if not set(in_sync) <= set(less.replicas):
        return "replicas-moved", None
    return of_isr or SEVERAL, None


def _rack_changed(changes: Mapping[int, str], old: Held, new: Held) -> tuple[str, int | None]:
    """The broker whose rack it was: one of the partition's own, or else one that changed how many racks there are."""
    broker = min({*old.isr, *new.isr} & changes.keys(), default=None)
    broker = min(changes) if broker is None else broker
    return changes[broker], broker
