"""Brokers that can never be stopped safely: the partitions that forbid it, and what would allow it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rackspan.audit import PartitionBatch, RackPolicy
from rackspan.audit.constraints import partition_findings
from rackspan.audit.constraints.partitions import STATES_NOW
from rackspan.audit.policy import SURVIVE_CODES, Survive
from rackspan.model import Bools, Int64s
from rackspan.restart.lists import SufferingLists, SufferingPartition
from rackspan.restart.safe import VotersLeft, voters_left
from rackspan.restart.stopping import InSyncRows, marks, touched
from rackspan.text import noun_and_ids

_OF_A_LOSS: Final = (
    "survives-broker-loss",
    "accepts-writes-after-broker-loss",
    "min-insync-racks-satisfiable",
    *STATES_NOW,
    "under-replicated",
)
"""Constraints of the audit whose remedies make a partition survive the stop of a broker, or bring back what it lacks."""

_REMEDIES: Final = 3

PARTITIONS_NAMED: Final = 20
"""Partitions of a blocked broker that are named; `partition_count` has them all."""


@dataclass(frozen=True, slots=True)
class BlockedBroker:
    """A broker with the first partitions that forbid its stop, how many there are, and the remedy."""

    broker: int
    partitions: tuple[SufferingPartition, ...]
    partition_count: int
    remedy: str


def blocked_brokers(
    batch: PartitionBatch, rows: InSyncRows, policy: RackPolicy, indices: Int64s, stays_down: Bools
) -> tuple[BlockedBroker, ...]:
    """Each blocked broker, by its index. `stays_down`: those of the chosen that the plan does not start. Shape (brokers,)."""
    return tuple(_blocked(batch, rows, policy, index, stays_down) for index in indices.tolist())


def _blocked(
    batch: PartitionBatch, rows: InSyncRows, policy: RackPolicy, index: int, stays_down: Bools
) -> BlockedBroker:
    ids = batch.members.rack_map.broker_ids
    stopped = marks(len(ids), index)
    broker = int(ids[index])
    quorum = voters_left(batch.members, (broker,))
    remedies = [] if quorum is None or quorum.holds else [_quorum_remedy(quorum, batch.members.dead_voters)]
    forbidding = _forbidding(rows, stopped)
    if len(forbidding):
        remedies += _remedies(batch, _first(forbidding), policy)
    elif not remedies:
        forbidding = _forbidding(rows.without(np.append(stays_down, False)), stopped)
        remedies = [f"bring back {noun_and_ids('broker', ids[stays_down].tolist())}"]
    count = len(np.unique(forbidding.row))
    return BlockedBroker(broker, _named(batch, _first(forbidding), stopped), count, "; ".join(remedies))


def _forbidding(rows: InSyncRows, stopped: Bools) -> InSyncRows:
    reached = rows.take(touched(rows, stopped))
    return reached.take(reached.blocks(reached.left_without(stopped)))


def _first(rows: InSyncRows) -> InSyncRows:
    return rows.take(np.isin(rows.row, np.unique(rows.row)[:PARTITIONS_NAMED]))


def _quorum_remedy(quorum: VotersLeft, dead: frozenset[int]) -> str:
    left, down = f"{quorum.left} of {quorum.voters} controllers", sorted(dead - set(quorum.stopped))
    if quorum.stopped:
        enough = quorum.left + len(down) >= quorum.majority
        first = f"bring back {noun_and_ids('controller', down)}" if enough else "add controllers"
        return f"{first}: without controller {quorum.stopped[0]}, {left} are left, no majority"
    return f"start the controllers that are down: {left} are up, no majority"


def _named(batch: PartitionBatch, rows: InSyncRows, stopped: Bools) -> tuple[SufferingPartition, ...]:
    lists = SufferingLists(batch, rows, stopped)
    every = (
        lists.loses_leader(),
        lists.refuses_writes(),
        lists.one_copy(),
        lists.single_replica(),
        lists.below_margin(),
    )
    return tuple(partition for partitions in every for partition in partitions)


def _remedies(batch: PartitionBatch, rows: InSyncRows, policy: RackPolicy) -> Iterator[str]:
    """The remedies of the audit for topics that have to survive the loss of a broker, then the way around them."""
    judged = replace(batch.members, policy=replace(policy, survive=Survive.BROKER, topic_survive={}))
    survive = np.full(len(batch.rows), SURVIVE_CODES.index(Survive.BROKER))
    required = replace(batch.required, survive=survive)
    some = replace(batch, members=judged, required=required).take(np.unique(rows.row))
    found = (finding.remedy for finding in partition_findings(some) if finding.constraint in _OF_A_LOSS)
    named = list(dict.fromkeys(found))[:_REMEDIES]
    yield from named
    topics = "|".join(sorted({re.escape(batch.topic(row)) for row in rows.row.tolist()}))
    yield f"{'or ' if named else ''}let them suffer with --accept '{topics}'"
