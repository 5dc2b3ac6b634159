"""Loads a partition of `__consumer_offsets`: the groups in it, by the last record of each key."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.coordination import decode_batch
from rackspan.cluster.core.groups.committed_offsets import Offsets
from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import loaded_member
from rackspan.cluster.core.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    decode_group,
    decode_key,
    decode_offset,
)
from rackspan.model.ids import TopicPartition


def load(now: int, partition: int, batches: Iterable[RecordBatch]) -> dict[str, Group]:
    """The groups by id. A group with members is Stable: sessions start again, and rebalances under way are not in the log.

    Raises InvalidRecord for a record that cannot be read.
    """
    replay = _Replay()
    for batch in batches:
        replay.batch(batch)
    known = sorted(replay.groups.keys() | {name for name, offsets in replay.offsets.items() if not offsets.empty})
    return {name: _group(now, name, partition, replay) for name in known}


@dataclass(slots=True)
class _Replay:
    offsets: dict[str, Offsets] = field(default_factory=dict)
    groups: dict[str, GroupMetadataValue] = field(default_factory=dict)

    def batch(self, batch: RecordBatch) -> None:
        if batch.marker is not None:
            for offsets in self.offsets.values():
                offsets.end_transaction(batch.producer_id, batch.marker is Marker.COMMIT)
            return
        producer_id = batch.producer_id if batch.transactional else None
        for offset, record in decode_batch(batch):
            self._record(producer_id, offset, record.key, record.value)

    def _record(self, producer_id: int | None, offset: int, key: bytes, value: bytes | None) -> None:
        match decode_key(key):
            case OffsetCommitKey(group_id, topic, number):
                offsets = self.offsets.setdefault(group_id, Offsets())
                _replay_offset(offsets, producer_id, TopicPartition(topic, number), offset, value)
            case GroupMetadataKey(group_id) if value is None:
                self.groups.pop(group_id, None)
            case GroupMetadataKey(group_id) if value is not None:
                self.groups[group_id] = decode_group(value)


def _replay_offset(
    offsets: Offsets, producer_id: int | None, partition: TopicPartition, record_offset: int, value: bytes | None
) -> None:
    if value is None:
        offsets.delete([partition])
    elif producer_id is None:
        offsets.store(partition, decode_offset(value), record_offset)
    else:
        offsets.store_in_transaction(producer_id, partition, decode_offset(value), record_offset)


def _group(now: int, group_id: str, partition: int, replay: _Replay) -> Group:
    group = Group(group_id, partition, offsets=replay.offsets.get(group_id, Offsets()))
    stored = replay.groups.get(group_id)
    if stored is not None:
        _restore(group, stored, now)
    return group


def _restore(group: Group, stored: GroupMetadataValue, now: int) -> None:
    group.persisted = True
    for record in stored.members:
        group.add(loaded_member(record, stored.protocol, now), stored.protocol_type)
    group.generation, group.protocol, group.leader = stored.generation, stored.protocol, stored.leader
    group.protocol_type = stored.protocol_type or None
    group.state = GroupState.STABLE if stored.members else GroupState.EMPTY
