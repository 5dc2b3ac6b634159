"""The partitions that suffer from a stop, in lists, each with its reason in words."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from rackspan.audit import PartitionBatch
from rackspan.model import Bools, Int64s
from rackspan.restart.stopping import BlockOn, InSyncRows
from rackspan.text import count_noun, noun_and_ids


@dataclass(frozen=True, slots=True)
class SufferingPartition:
    """A partition and the harm to it in words."""

    topic: str
    partition: int
    reason: str


Suffering: TypeAlias = tuple[SufferingPartition, ...]


class SufferingLists:
    """The partitions that suffer from a stop, each in one list: the one of its gravest harm.

    `rows`: those of which the stop takes a replica.
    """

    def __init__(self, batch: PartitionBatch, rows: InSyncRows, stopped: Bools) -> None:
        self._batch, self._rows = batch, rows
        self._left = rows.left_without(stopped)
        self._harm = harm = rows.harm(self._left)
        rank = np.select(
            [
                harm.loses_leader,
                harm.refuses_isr | harm.refuses_racks,
                harm.under_margin,
                harm.single_replica,
                harm.one_copy,
            ],
            range(5),
            5,
        )
        self.partitions_suffering = np.unique(rows.row[rank < 5])
        # Of a partition with two rows, as it is and as its reassignment ends, the graver one is listed.
        self._listed = self._first_of(rank)

    def _first_of(self, rank: Int64s) -> Bools:
        """Mark the row of least rank of each partition, the first of two alike."""
        order = np.lexsort((np.arange(len(rank)), rank, self._rows.row))
        first = np.ones(len(rank), dtype=np.bool_)
        first[order[1:]] = self._rows.row[order[1:]] != self._rows.row[order[:-1]]
        return first

    def loses_leader(self) -> Suffering:
        return self._spared(self._harm.loses_leader)

    def refuses_writes(self) -> Suffering:
        return self._spared(self._harm.refuses_isr | self._harm.refuses_racks)

    def one_copy(self) -> Suffering:
        return self._spared(self._harm.one_copy, blocks=BlockOn.ONE_COPY in self._rows.block_on)

    def single_replica(self) -> Suffering:
        return self._spared(self._harm.single_replica, blocks=BlockOn.RF1 in self._rows.block_on)

    def accepted(self) -> Suffering:
        """What would block, of accepted topics."""
        harm, block_on = self._harm, self._rows.block_on
        mask = harm.loses_leader | harm.refuses_isr | harm.refuses_racks | harm.under_margin
        if BlockOn.ONE_COPY in block_on:
            mask = mask | harm.one_copy
        if BlockOn.RF1 in block_on:
            mask = mask | harm.single_replica
        return self._partitions(mask & self._listed & self._rows.accepted)

    def below_margin(self) -> Suffering:
        return self._spared(self._harm.under_margin)

    def without_margin(self) -> Suffering:
        """Those that keep their minimum, and whose replication factor allows no margin."""
        rows, harm = self._rows, self._harm
        exempt = rows.margin_refused & ~rows.accepted & ~harm.loses_leader & ~harm.single_replica
        exempt = exempt & ~harm.refuses_isr & ~harm.refuses_racks
        exempt = exempt & self._first_of(np.where(exempt, 0, 1))
        return tuple(
            self._partition(
                index, f"replication factor {rows.replicas[index]} and minimum {rows.min_isr[index]} leave no margin"
            )
            for index in np.flatnonzero(exempt).tolist()
        )

    def _spared(self, mask: Bools, *, blocks: bool = True) -> Suffering:
        """The listed of a mask, without those of accepted topics if it blocks."""
        return self._partitions(mask & self._listed & ~(self._rows.accepted & blocks))

    def _partitions(self, mask: Bools) -> Suffering:
        return tuple(self._partition(index, self._reason(index)) for index in np.flatnonzero(mask).tolist())

    def _partition(self, index: int, reason: str) -> SufferingPartition:
        row = int(self._rows.row[index])
        return SufferingPartition(self._batch.topic(row), int(self._batch.rows.partition[row]), reason)

    def _reason(self, index: int) -> str:
        rows, harm, ids = self._rows, self._harm, self._batch.members.rack_map.broker_ids
        before = [int(ids[broker]) for broker in rows.brokers[index] if broker >= 0]
        left = [int(ids[broker]) for broker in rows.brokers[index][self._left[index]]]
        end = ", once its reassignment has ended" if rows.by_target[index] else ""
        remaining = f"{noun_and_ids('broker', left)} left in sync" if left else "no replica left in sync"
        if harm.single_replica[index]:
            return f"its only replica is on broker {before[0]}{end}"
        if harm.loses_leader[index]:
            return f"{remaining}: in sync now {','.join(map(str, before))}{end}"
        if harm.refuses_isr[index]:
            return f"{remaining}, min.insync.replicas requires {rows.min_isr[index]}{end}"
        if harm.refuses_racks[index]:
            racks = self._batch.members.rack_map.names(rows.racks[index][self._left[index]])
            return (
                f"{count_noun(len(racks), 'rack')} left in sync, min.insync.racks requires {rows.min_racks[index]}{end}"
            )
        if harm.under_margin[index]:
            return f"{remaining}, the minimum is {rows.min_isr[index]} and the margin {rows.margin[index]}{end}"
        return f"{remaining}{end}"
