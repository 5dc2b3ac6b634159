"""The cancel of a reassignment, judged as a stop of brokers is: what it takes out of sync, and what is refused then.

A cancel removes the replicas that the reassignment was adding, also from the ISR. Of what it takes away only harm that was not
there before counts. Source: ReplicationControlManager.cancelPartitionReassignment and PartitionReassignmentRevert of Kafka 4.
Test: tests/audit/constraints/test_cancel.py, by plain loops.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rackspan.audit.batch import PartitionBatch, effective_min_isr, under_minimum
from rackspan.audit.constraints.wording import broker_list, failed_replicas
from rackspan.model import (
    MIN_INSYNC_RACKS,
    MIN_INSYNC_REPLICAS,
    NO_BROKER,
    NO_RACK,
    Bools,
    Int64s,
    TopicPartition,
    any_in_row,
    count_in_row,
    distinct_racks,
    lengths,
)
from rackspan.text import count_noun


@dataclass(frozen=True)
class CancelHarm:
    """The harm of a cancel to each partition that is being reassigned. Masks of shape (P,), of a partition at most one.

    `unclean`: only added replicas are in sync. Kafka refuses the cancel, or, if the topic allows unclean elections, loses
    records by it. `leaderless`: of those left in sync no broker is up, or their log directories have failed. `refuses_isr`, `refuses_racks`: acks=all is refused
    by min.insync.replicas, by min.insync.racks. `unknown`: fewer are left in sync, and min.insync.replicas is not known.
    """

    unclean: Bools
    leaderless: Bools
    refuses_isr: Bools
    refuses_racks: Bools
    unknown: Bools

    @cached_property
    def never(self) -> Bools:
        """Partitions that would have no leader, or lose records. Nothing allows that."""
        return np.asarray(self.unclean | self.leaderless)

    @cached_property
    def any(self) -> Bools:
        return np.asarray(self.never | self.refuses_isr | self.refuses_racks | self.unknown)


def judge_cancel(batch: PartitionBatch) -> CancelHarm:
    """Judge the cancel of every reassignment of the batch, each by itself."""
    kept = batch.rows.isr != NO_BROKER
    for added in batch.rows.adding_replicas.T:
        kept &= batch.rows.isr != added[:, None]
    up = _up(batch)
    before, after = count_in_row(up), count_in_row(up & kept)
    min_isr = effective_min_isr(batch.required.min_insync_replicas, _left(batch))
    racks_after = _racks(batch, up & kept)
    under_isr, under_racks = under_minimum(after, racks_after, min_isr, batch.required.min_insync_racks)
    unclean = batch.reassigning & ~any_in_row(kept)
    fewer = batch.reassigning & ~unclean & (after < before)
    leaderless = fewer & (after == 0)
    judged = fewer & ~leaderless
    refuses_racks = judged & ~under_isr & under_racks & (racks_after < _racks(batch, up))
    return CancelHarm(
        unclean=np.asarray(unclean),
        leaderless=np.asarray(leaderless),
        refuses_isr=np.asarray(judged & under_isr),
        refuses_racks=np.asarray(refuses_racks),
        unknown=np.asarray(judged & ~under_isr & ~refuses_racks & ~batch.required.known),
    )


def _up(batch: PartitionBatch) -> Bools:
    """Which of each ISR lead or follow now, those of a missing listener among them. Shape as `isr`."""
    return np.asarray(batch.isr_up | batch.isr_hidden)


def _left(batch: PartitionBatch) -> Int64s:
    """The replicas of each partition after a cancel. Shape (P,)."""
    return lengths(batch.rows.replicas) - lengths(batch.rows.adding_replicas)


def _racks(batch: PartitionBatch, chosen: Bools) -> Int64s:
    """Distinct racks of the chosen of each ISR. Shape (P,)."""
    return distinct_racks(np.where(chosen, batch.isr_racks, np.int32(NO_RACK)))


def cancel_reason(batch: PartitionBatch, row: int) -> str:
    """The harm to one partition in words: `broker 2 left in sync, min.insync.replicas requires 2`; empty for none."""
    alone = batch.take(np.array([row]))
    harm, partition = judge_cancel(alone), batch.partition(row)
    left = [broker for broker in partition.isr if broker not in partition.adding_replicas]
    if harm.unclean[0] and batch.required.unclean_election[row]:
        return "no replica left in sync: Kafka elects one that is not, and acknowledged records are lost"
    if harm.unclean[0]:
        return "no replica left in sync: Kafka refuses the cancel, which would need an unclean leader election"
    if harm.leaderless[0]:
        down = "in a failed log directory" if {*left} <= {*failed_replicas(batch, row)} else "down"
        return f"no replica left in sync but on {broker_list(left)}, which {'is' if len(left) == 1 else 'are'} {down}: it would have no leader"
    up = [broker for broker in alone.rows.isr[0][_up(alone)[0]].tolist() if broker in left]
    remaining = f"{broker_list(up)} left in sync"
    if harm.refuses_isr[0]:
        required = effective_min_isr(alone.required.min_insync_replicas, _left(alone))
        return f"{remaining}, {MIN_INSYNC_REPLICAS} requires {required[0]}"
    if harm.refuses_racks[0]:
        racks = {batch.members.rack_map.rack_of[broker] for broker in up if broker in batch.members.rack_map.rack_of}
        return f"{count_noun(len(racks), 'rack')} left in sync, {MIN_INSYNC_RACKS} requires {batch.required.min_insync_racks[row]}"
    return f"{remaining}, and {MIN_INSYNC_REPLICAS} is not known" if harm.unknown[0] else ""


@dataclass(frozen=True, slots=True)
class HarmfulCancel:
    """The harm of one cancel in words. `never`: nothing allows it, since records would be lost, or the partition would have no leader."""

    reason: str
    never: bool


def harmful_cancels(
    batch: PartitionBatch, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, HarmfulCancel]:
    """Those of these partitions that the cancel of their reassignments would harm."""
    harm, chosen = judge_cancel(batch), frozenset(partitions)
    names = (
        (row, TopicPartition(batch.topic(row), int(batch.rows.partition[row])))
        for row in np.flatnonzero(harm.any).tolist()
    )
    return {
        name: HarmfulCancel(cancel_reason(batch, row), bool(harm.never[row])) for row, name in names if name in chosen
    }
