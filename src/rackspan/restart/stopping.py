"""The rule: what a partition suffers while brokers are stopped. `judge_stop`, every batch of a plan and every bound use it.

A broker that stops leaves the ISR of its partitions. What it takes away is judged, so a partition that is harmed already
counts only if it loses another replica, or another rack, in sync. A partition that is being reassigned is judged twice: as
it is, and as the end of its reassignment leaves it, which may come at any time.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import numpy as np

from rackspan.audit import PartitionBatch, effective_min_isr
from rackspan.audit.batch import under_minimum
from rackspan.errors import UsageError
from rackspan.model import NO_RACK, Bools, Int32s, Int64s, any_in_row, count_in_row, distinct_racks, lengths
from rackspan.model.partitions import SelectedRows, listed_in


class BlockOn(StrEnum):
    """A harm that blocks a stop only if it is named (`--block-on`)."""

    ONE_COPY = "one-copy"
    """One replica is left in sync."""
    RF1 = "rf1"
    """The only replica stops."""


@dataclass(frozen=True, slots=True)
class StopPolicy:
    """What a stop may cost.

    `margin`: replicas in sync above the minimum, required of each partition whose replication factor allows it (RF - 1 is at
    least minimum + margin). `accepted`: topics that may suffer, by their whole names.
    """

    margin: int = 0
    block_on: frozenset[BlockOn] = frozenset()
    accepted: re.Pattern[str] | None = None

    def __post_init__(self) -> None:
        if self.margin < 0:
            raise UsageError(f"margin is {self.margin}, expected 0 or more replicas above the minimum")

    def accepts(self, topic: str) -> bool:
        return self.accepted is not None and self.accepted.fullmatch(topic) is not None


@dataclass(frozen=True)
class Harm:
    """What a stop does to each row. Masks of shape (E,).

    `refuses_isr` and `refuses_racks`: acks=all, by min.insync.replicas and by min.insync.racks. `under_margin`: fewer
    in sync than minimum and margin. Of the others a row has at most one.
    """

    loses_leader: Bools
    single_replica: Bools
    refuses_isr: Bools
    refuses_racks: Bools
    one_copy: Bools
    under_margin: Bools


@dataclass(frozen=True)
class InSyncRows:
    """The replicas in sync of partitions: E rows, one a partition, then one for each target of a reassignment under way.

    `row`: the partition's row in the batch; `by_target`: of a target. `brokers` (E, W): index of each broker that is in sync and up, −1 otherwise;
    `racks`: their rack codes. `replicas`, `min_isr`, `min_racks`, `margin`, `accepted`: shape (E,); `margin` is 0 where
    the replication factor does not allow it, which `margin_refused` marks.
    """

    row: Int64s
    by_target: Bools
    brokers: Int32s
    racks: Int32s
    replicas: Int64s
    min_isr: Int64s
    min_racks: Int64s
    margin: Int64s
    margin_refused: Bools
    accepted: Bools
    block_on: frozenset[BlockOn]

    def __len__(self) -> int:
        return len(self.row)

    @cached_property
    def in_sync(self) -> Bools:
        return np.asarray(self.brokers >= 0)

    @cached_property
    def in_sync_count(self) -> Int64s:
        return count_in_row(self.in_sync)

    @cached_property
    def rack_count(self) -> Int64s:
        return self._racks_of(self.in_sync)

    @cached_property
    def least(self) -> Int64s:
        """With fewer in sync a stop blocks; 0 where none does. It may block with more, because of racks. Shape (E,)."""
        racks = np.where(self.rack_count >= self.min_racks, self.min_racks, 1)
        least = np.maximum(self.min_isr + self.margin, racks)
        if BlockOn.ONE_COPY in self.block_on:
            least = np.where(self.in_sync_count > 1, np.maximum(least, 2), least)
        free = self.accepted | ((self.replicas == 1) & (BlockOn.RF1 not in self.block_on))
        return np.where(free, 0, least)

    def harm(self, left: Bools) -> Harm:
        """The harm if of each row only `left` (E, W) stay in sync."""
        before, after = self.in_sync_count, count_in_row(left)
        fewer = after < before
        racks_after = self._racks_of(left)
        gone = fewer & (after == 0)
        single = gone & (self.replicas == 1)
        under_isr, under_racks = under_minimum(after, racks_after, self.min_isr, self.min_racks)
        refuses_isr = fewer & ~gone & under_isr
        refuses_racks = ~gone & ~refuses_isr & under_racks & (racks_after < self.rack_count)
        under_margin = fewer & ~gone & ~refuses_isr & ~refuses_racks & (after < self.min_isr + self.margin)
        others = refuses_isr | refuses_racks | under_margin
        return Harm(
            loses_leader=gone & ~single,
            single_replica=single,
            refuses_isr=refuses_isr,
            refuses_racks=refuses_racks,
            one_copy=fewer & (after == 1) & ~others,
            under_margin=under_margin,
        )

    def blocks(self, left: Bools) -> Bools:
        """Which rows forbid the stop. Shape (E,)."""
        harm = self.harm(left)
        blocked = harm.loses_leader | harm.refuses_isr | harm.refuses_racks | harm.under_margin
        if BlockOn.ONE_COPY in self.block_on:
            blocked |= harm.one_copy
        if BlockOn.RF1 in self.block_on:
            blocked |= harm.single_replica
        return np.asarray(blocked & ~self.accepted)

    def left_without(self, stopped: Bools) -> Bools:
        """What stays in sync without the brokers that `stopped` marks by index; its last entry, index −1, is False."""
        return np.asarray(self.in_sync & ~stopped[self.brokers])

    def without(self, out: Bools) -> "InSyncRows":
        """The same with fewer in sync. `out`: by broker index, its last entry, index −1, ignored; or of shape (E, W)."""
        marked = out if out.ndim > 1 else out[self.brokers]
        return replace(self, brokers=np.where(marked, np.int32(-1), self.brokers))

    def take(self, rows: SelectedRows) -> "InSyncRows":
        """The rows selected by a mask or by indices."""
        return InSyncRows(
            self.row[rows],
            self.by_target[rows],
            self.brokers[rows],
            self.racks[rows],
            self.replicas[rows],
            self.min_isr[rows],
            self.min_racks[rows],
            self.margin[rows],
            self.margin_refused[rows],
            self.accepted[rows],
            self.block_on,
        )

    def _racks_of(self, chosen: Bools) -> Int64s:
        """The racks of the chosen of each row, counted only where racks are required. Shape (E,)."""
        counted = np.zeros(len(self), dtype=np.int64)
        required = np.flatnonzero(self.min_racks > 1)
        if len(required):
            codes = np.where(chosen[required], self.racks[required], np.int32(NO_RACK))
            counted[required] = distinct_racks(codes)
        return counted


def in_sync_rows(batch: PartitionBatch, policy: StopPolicy) -> InSyncRows:
    """The rows of a batch: the ISR as it is without replicas that are down, then the targets under way."""
    now = np.where(batch.isr_up, batch.isr_index, np.int32(-1))
    moving = np.flatnonzero(batch.reassigning)
    target = _in_sync_at_the_end(batch)[moving]
    width = max(now.shape[1], target.shape[1], 1)
    brokers = np.concatenate([_widened(now, width), _widened(target, width)])
    row = np.concatenate([np.arange(len(batch.rows)), moving])
    factor, required = batch.replication_factor, batch.required
    min_isr = np.concatenate([batch.min_isr, effective_min_isr(required.min_insync_replicas, factor)[moving]])
    allowed = factor[row] - 1 >= min_isr + policy.margin
    accepted = np.array([policy.accepts(topic) for topic in batch.topics], dtype=np.bool_)
    return InSyncRows(
        row=row,
        by_target=np.arange(len(row)) >= len(batch.rows),
        brokers=brokers,
        racks=batch.members.rack_map.codes_at(brokers),
        replicas=np.concatenate([lengths(batch.rows.replicas), factor[moving]]),
        min_isr=min_isr,
        min_racks=required.min_insync_racks[row],
        margin=np.where(allowed, policy.margin, 0),
        margin_refused=np.asarray(~allowed & (policy.margin > 0)),
        accepted=accepted[batch.rows.topic[row]] if len(batch.topics) else np.zeros(0, dtype=np.bool_),
        block_on=policy.block_on,
    )


def _in_sync_at_the_end(batch: PartitionBatch) -> Int32s:
    """Broker index of each replica that stays, is up, and is added or in sync now. Shape as `replicas`.

    Kafka 4.3 ends a reassignment that adds as many as it removes once these are in sync; others may lag behind then as they do now.
    """
    in_sync = listed_in(batch.rows.replicas, batch.rows.isr) & batch.members.usable[batch.replica_index]
    stays = batch.staying & (batch.being_copied | (in_sync & ~batch.on_failed_log_dir))
    return np.where(stays, batch.replica_index, np.int32(-1))


def _widened(matrix: Int32s, width: int) -> Int32s:
    return np.pad(matrix, ((0, 0), (0, width - matrix.shape[1])), constant_values=-1)


def marks(brokers: int, chosen: Int64s | int) -> Bools:
    """Which of so many broker indices are chosen; a last False is read by index −1."""
    return np.append(np.isin(np.arange(brokers), chosen), False)


def touched(rows: InSyncRows, stopped: Bools) -> Int64s:
    """The rows of which a stop takes a replica in sync."""
    return np.flatnonzero(any_in_row(rows.in_sync & stopped[rows.brokers]))
