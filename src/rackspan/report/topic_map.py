"""The racks of one snapshot: their members, and the replicas and leaders of each topic in each rack.

Pure: a snapshot, its losses and the states from the tables in, values for the page out.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rackspan.audit.batch import ClusterMembers, PartitionBatch
from rackspan.audit.outage import RackLoss, TopicHarm, judge_loss
from rackspan.model import (
    NO_RACK,
    ClusterSnapshot,
    Int32s,
    Int64s,
    RackId,
    lengths,
)
from rackspan.report.data import (
    LISTED_MAX,
    Cell,
    DurabilityState,
    RackMembers,
    StateCounts,
    TopicMap,
    TopicRow,
)

Harms = Mapping[str, Mapping[RackId, TopicHarm]]
"""The harm of each rack's loss to each topic; topics and racks without harm are left out."""


def rack_members(registered: ClusterMembers) -> tuple[RackMembers, ...]:
    """Brokers and voters of every rack that can be lost."""
    rack_map = registered.rack_map
    usable = dict(zip(rack_map.broker_ids.tolist(), registered.usable.tolist(), strict=False))

    def members(rack: RackId) -> RackMembers:
        code = rack_map.racks.index(rack) if rack in rack_map.racks else None
        brokers = () if code is None else tuple(rack_map.broker_ids[rack_map.rack_codes == code].tolist())
        return RackMembers(
            rack=rack,
            brokers=brokers,
            fenced=tuple(broker for broker in brokers if not usable[broker]),
            controllers=tuple(sorted(voter for voter, of in registered.voter_racks.items() if of == rack)),
        )

    return tuple(members(rack) for rack in registered.failure_racks)


def harmed_partitions(partition_batch: PartitionBatch, losses: Sequence[RackLoss]) -> dict[RackId, int]:
    """How many partitions the loss of each rack harms, each counted once."""
    return {
        loss.racks[0]: int(np.count_nonzero(judge_loss(partition_batch, frozenset(loss.racks)).harmed))
        for loss in losses
    }


def topic_map(
    snapshot: ClusterSnapshot,
    partition_batch: PartitionBatch,
    losses: Sequence[RackLoss],
    states: Mapping[str, StateCounts],
    most: int,
    listed: int = LISTED_MAX,
) -> TopicMap:
    """The `most` worst topics over the racks that hold brokers, and the `listed` next.

    `states` says how the partitions of a topic are now; a topic it does not name is ok throughout. Worst first: by
    state, by partitions in it, then by what the losses of single racks would do, then by name.
    """
    harms = harms_by_topic(losses)
    counts = _Counts(partition_batch, len(snapshot.topics))
    partitions = np.bincount(partition_batch.rows.topic, minlength=len(snapshot.topics))
    now = [states.get(topic.name, StateCounts(ok=int(partitions[code]))) for code, topic in enumerate(snapshot.topics)]

    def badness(code: int) -> tuple[object, ...]:
        return (*_state_badness(now[code]), *_harm_badness(harms.get(snapshot.topics[code].name, {})), code)

    worst = sorted(range(len(snapshot.topics)), key=badness)[: most + listed]
    rows = [counts.row(snapshot, code, now[code], harms.get(snapshot.topics[code].name, {})) for code in worst]
    racks = partition_batch.members.rack_map.racks
    return TopicMap(racks, tuple(rows[:most]), len(snapshot.topics), tuple(rows[most:]))


def harms_by_topic(losses: Sequence[RackLoss]) -> Harms:
    """Losses of one rack each, by topic and then by rack."""
    harms: dict[str, dict[RackId, TopicHarm]] = {}
    for loss in losses:
        for harm in loss.topics:
            harms.setdefault(harm.topic, {})[loss.racks[0]] = harm
    return harms


class _Counts:
    """Replicas, in-sync replicas and leaders of each topic in each rack: three (topics, racks + 1) matrices.

    The last column counts what is in no rack.
    """

    def __init__(self, partition_batch: PartitionBatch, topics: int) -> None:
        rack_map = partition_batch.members.rack_map
        self._batch = partition_batch
        self._shape = (topics, len(rack_map.racks) + 1)
        self.replicas = self._per_rack(rack_map.codes_at(partition_batch.replica_index), partition_batch.rows.replicas)
        self.in_sync = self._per_rack(partition_batch.isr_racks, partition_batch.rows.isr)
        self.leaders = self._per_rack(
            rack_map.codes_at(partition_batch.leader_index)[:, None], partition_batch.rows.leader[:, None]
        )

    def _per_rack(self, rack_codes: Int32s, broker_ids: Int32s) -> Int64s:
        topics, columns = self._shape
        topic = np.broadcast_to(self._batch.rows.topic[:, None], rack_codes.shape)
        column = np.where(rack_codes == NO_RACK, columns - 1, rack_codes)
        present = broker_ids >= 0
        flat = topic[present].astype(np.int64) * columns + column[present]
        return np.bincount(flat, minlength=topics * columns).reshape(topics, columns)

    def row(
        self, snapshot: ClusterSnapshot, code: int, states: StateCounts, harms: Mapping[RackId, TopicHarm]
    ) -> TopicRow:
        topic = snapshot.topics[code]
        mine = self._batch.rows.topic == code
        racks = self._batch.members.rack_map.racks
        return TopicRow(
            topic=topic.name,
            internal=topic.internal,
            partitions=int(np.count_nonzero(mine)),
            replication_factors=_distinct(lengths(self._batch.rows.replicas[mine])),
            min_insync_replicas=_required(self._batch.required.min_insync_replicas[mine]),
            min_insync_racks=_required(self._batch.required.min_insync_racks[mine]),
            states=states,
            cells=tuple(self._cell(code, column, harms.get(rack)) for column, rack in enumerate(racks)),
            elsewhere=int(self.replicas[code, -1]),
        )

    def _cell(self, code: int, column: int, harm: TopicHarm | None) -> Cell:
        return Cell(
            replicas=int(self.replicas[code, column]),
            in_sync=int(self.in_sync[code, column]),
            leaders=int(self.leaders[code, column]),
            harm=harm,
        )


def _state_badness(counts: StateCounts) -> tuple[int, int]:
    return list(DurabilityState).index(counts.worst), -counts.at_risk


def _harm_badness(harms: Mapping[RackId, TopicHarm]) -> tuple[int, int, int]:
    return (
        -sum(harm.offline for harm in harms.values()),
        -sum(harm.under_min_isr for harm in harms.values()),
        -sum(harm.under_min_racks for harm in harms.values()),
    )


def _distinct(values: Int64s) -> tuple[int, ...]:
    return tuple(np.unique(values).tolist())


def _required(values: npt.NDArray[np.int64]) -> int:
    """The minimum of a topic, which is equal for all its partitions; 1 for a topic without partitions."""
    return int(values.max(initial=1))
