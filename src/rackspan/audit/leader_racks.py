"""The replicas that `leader.racks` requires to be preferred leader."""

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.model import NO_BROKER, Bools, Int64s, any_in_row


def leader_choices(batch: PartitionBatch) -> tuple[Int64s, Bools]:
    """The rows with `leader.racks` whose replicas a plan may reorder, and which of their replicas may be preferred leader.

    Shapes (N,) and (N, width of `replicas`). These replicas are in the first rack of the list that has one, or in any
    rack where no rack of the list has one. A broker that is fenced or excluded becomes no preferred leader, but stays it.
    Left out: partitions being reassigned, without a leader, or with a replica on a broker that is not listed.
    """
    racks_of = batch.members.policy.topic_leader_racks
    topics = [code for code, topic in enumerate(batch.topics) if topic in racks_of]
    if not topics:
        return np.zeros(0, dtype=np.int64), np.zeros(batch.rows.replicas[:0].shape, dtype=np.bool_)
    unlisted = any_in_row((batch.replica_index < 0) & (batch.rows.replicas != NO_BROKER))
    still = ~batch.reassigning & (batch.rows.leader != NO_BROKER) & ~unlisted
    rows = np.flatnonzero(np.isin(batch.rows.topic, topics) & still)
    rank = _ranks(batch, topics)[np.searchsorted(topics, batch.rows.topic[rows])[:, None], batch.replica_racks[rows]]
    index = batch.replica_index[rows]
    able = (index >= 0) & np.append(batch.members.receiving, False)[index]
    able[:, :1] |= index[:, :1] >= 0
    rank = np.where(able, rank, np.iinfo(np.int64).max)
    return rows, np.asarray(able & (rank == rank.min(axis=1, keepdims=True, initial=np.iinfo(np.int64).max)))


def _ranks(batch: PartitionBatch, topics: list[int]) -> Int64s:
    """The position of each rack in `leader.racks` of each topic, last for every other. Shape (topics, racks + 1): index −1 is no rack."""
    names = batch.members.rack_map.racks
    ranks = np.empty((len(topics), len(names) + 1), dtype=np.int64)
    for row, code in enumerate(topics):
        required = batch.members.policy.topic_leader_racks[batch.topics[code]]
        position = {rack: place for place, rack in enumerate(required)}
        ranks[row] = [*(position.get(rack, len(required)) for rack in names), len(required)]
    return ranks
