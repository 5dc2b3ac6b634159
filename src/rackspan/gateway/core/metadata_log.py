"""The ISR of every partition and the rack of every broker, replayed from KRaft's metadata log.

Records are read by hand, since the run-time codec has requests and responses only: those that decide ISRs, leaders, racks and
topic ids, by the schemas of Kafka 3.3 to 4.4. A record of a later version or of a later kind, and a metadata.version that is not known here,
are refused, for they could mean something else. Other records are skipped. Source: Kafka's metadata schemas, PartitionRegistration.merge.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final
from uuid import UUID

from rackspan.errors import MalformedBytes, UnknownMetadataVersion
from rackspan.kafka_bytes import ByteReader, int16
from rackspan.kafka_bytes.record_batch import read_records, verify_crc, whole_batches
from rackspan.wire.apis import METADATA_LEVELS, METADATA_VERSION, TESTED_UP_TO

LAST_RECORD: Final = 29
"""The last kind of record of the levels that are known: UnregisterControllerRecord (KIP-1312)."""

_INSTEAD: Final = "use acknowledgements.mode verified, or a newer rackspan"
_FRAME_VERSION: Final = 1
_NO_LEADER_CHANGE: Final = -2
_VOTERS_KEY: Final = int16(0) + int16(6)
"""Version 0, ControlRecordType.KRAFT_VOTERS."""


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """One partition as the controllers committed it."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replication_factor: int


@dataclass(slots=True)
class CommittedImage:
    """The state after all records up to `offset`. `epoch` is that of the last batch."""

    offset: int = 0
    epoch: int = 0
    racks: dict[int, str | None] = field(default_factory=dict)
    """The rack of each registered broker, fenced ones included: a broker that is down keeps its rack."""
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    partitions: dict[UUID, dict[int, CommittedPartition]] = field(default_factory=dict)
    voters: bytes | None = None
    """The last control record with the voters of the quorum (KIP-853), as it is; None in a quorum that is static."""
    _names: dict[UUID, str] = field(default_factory=dict)
    _transaction: list[tuple[int, int, ByteReader]] | None = None
    """The records of a metadata transaction that has not ended."""

    def topic(self, name: str) -> Mapping[int, CommittedPartition]:
        """A topic's partitions; empty if it does not exist."""
        topic_id = self.topic_ids.get(name)
        return {} if topic_id is None else self.partitions.get(topic_id, {})

    def replay_batches(self, data: bytes, end: int) -> None:
        """Replay whole batches below the offset `end`; what is behind it is left for later. Errors: MalformedBytes, UnknownMetadataVersion."""
        for batch, base_offset, next_offset, epoch, control in _batches(data):
            if next_offset > end:
                return
            if next_offset <= self.offset:
                continue
            for delta, (key, value) in read_records(batch):
                if base_offset + delta < self.offset:
                    continue
                if control:
                    self._replay_control(key, value)
                else:
                    self.replay(value or b"")
            self.offset, self.epoch = next_offset, epoch

    def replay_snapshot(self, data: bytes, end: int, epoch: int) -> None:
        """Replay a snapshot of everything below the offset `end`. Its own offsets begin at 0."""
        for batch, _, _, _, control in _batches(data):
            for _, (key, value) in read_records(batch):
                if control:
                    self._replay_control(key, value)
                else:
                    self.replay(value or b"")
        self.offset, self.epoch = end, epoch

    def _replay_control(self, key: bytes | None, value: bytes | None) -> None:
        if key == _VOTERS_KEY:
            self.voters = value

    def replay(self, record: bytes) -> None:
        """One record's value. Errors: MalformedBytes, UnknownMetadataVersion."""
        reader = ByteReader(record)
        frame, kind, version = (reader.unsigned_varint() for _ in range(3))
        if frame != _FRAME_VERSION:
            raise UnknownMetadataVersion(f"the metadata log has records of frame version {frame}; this gateway reads 1")
        if kind == _BEGIN:
            self._transaction = []
        elif kind == _ABORT:
            self._transaction = None
        elif kind == _END:
            ended, self._transaction = self._transaction or [], None
            for kept in ended:
                self._apply(*kept)
        elif self._transaction is not None:
            self._transaction.append((kind, version, reader))
        else:
            self._apply(kind, version, reader)

    def _apply(self, kind: int, version: int, reader: ByteReader) -> None:
        known = READ_RECORDS.get(kind)
        if known is None:
            if kind > LAST_RECORD:
                raise UnknownMetadataVersion(
                    f"the metadata log has records of kind {kind}, this gateway reads up to {LAST_RECORD}; {_INSTEAD}"
                )
            return
        name, last_version, apply = known
        if version > last_version:
            raise UnknownMetadataVersion(
                f"the metadata log has {name} in version {version}, this gateway reads up to {last_version}; {_INSTEAD}"
            )
        apply(self, version, reader)

    def _register_broker(self, version: int, reader: ByteReader) -> None:
        broker = reader.int32()
        # From version 2 isMigratingZkBroker comes first; then the incarnation's id and the broker's epoch.
        reader.skip((1 if version >= 2 else 0) + 16 + 8)
        for _ in range(reader.elements(reader.compact_length())):
            reader.compact_string()
            reader.compact_string()
            reader.skip(4)
            reader.tagged_fields()
        for _ in range(reader.elements(reader.compact_length())):
            reader.compact_string()
            reader.skip(4)
            reader.tagged_fields()
        self.racks[broker] = reader.compact_nullable_string()

    def _unregister_broker(self, _version: int, reader: ByteReader) -> None:
        self.racks.pop(reader.int32(), None)

    def _topic(self, _version: int, reader: ByteReader) -> None:
        name, topic_id = reader.compact_string(), _id(reader)
        self.topic_ids[name], self._names[topic_id] = topic_id, name
        self.partitions[topic_id] = {}

    def _remove_topic(self, _version: int, reader: ByteReader) -> None:
        topic_id = _id(reader)
        self.partitions.pop(topic_id, None)
        name = self._names.pop(topic_id, None)
        if name is not None and self.topic_ids.get(name) == topic_id:
            del self.topic_ids[name]

    def _partition(self, _version: int, reader: ByteReader) -> None:
        partition, topic_id = reader.int32(), _id(reader)
        replicas = _brokers(reader)
        isr = _brokers(reader)
        for _ in range(2):
            _brokers(reader)  # Removing and adding replicas.
        leader, leader_epoch = reader.int32(), reader.int32()
        self.partitions.setdefault(topic_id, {})[partition] = CommittedPartition(
            leader, leader_epoch, isr, len(replicas)
        )

    def _partition_change(self, _version: int, reader: ByteReader) -> None:
        partition, topic_id = reader.int32(), _id(reader)
        changes = reader.tagged_fields()
        known = self.partitions.get(topic_id, {}).get(partition)
        if known is None:
            raise MalformedBytes(
                f"the metadata log changes partition {partition} of {topic_id}, which it did not create"
            )
        if _ISR_TAG in changes:
            known = replace(known, isr=_brokers(ByteReader(changes[_ISR_TAG])))
        if _REPLICAS_TAG in changes:
            known = replace(known, replication_factor=len(_brokers(ByteReader(changes[_REPLICAS_TAG]))))
        leader = ByteReader(changes[_LEADER_TAG]).int32() if _LEADER_TAG in changes else _NO_LEADER_CHANGE
        if leader != _NO_LEADER_CHANGE:
            known = replace(known, leader=leader, leader_epoch=known.leader_epoch + 1)
        self.partitions[topic_id][partition] = known

    def _feature_level(self, _version: int, reader: ByteReader) -> None:
        name, level = reader.compact_string(), reader.int16()
        if name == METADATA_VERSION and level not in METADATA_LEVELS:
            raise UnknownMetadataVersion(
                f"{METADATA_VERSION} of the cluster is {level}, this gateway reads {METADATA_LEVELS.start} to "
                f"{METADATA_LEVELS.stop - 1} (Kafka 3.0 to {TESTED_UP_TO}); {_INSTEAD}"
            )


_ISR_TAG: Final = 0
_LEADER_TAG: Final = 1
_REPLICAS_TAG: Final = 2
_BEGIN, _END, _ABORT = 23, 24, 25

_Apply = Callable[[CommittedImage, int, ByteReader], None]

READ_RECORDS: Final[Mapping[int, tuple[str, int, _Apply]]] = {
    0: ("RegisterBrokerRecord", 4, CommittedImage._register_broker),
    1: ("UnregisterBrokerRecord", 0, CommittedImage._unregister_broker),
    2: ("TopicRecord", 0, CommittedImage._topic),
    3: ("PartitionRecord", 2, CommittedImage._partition),
    5: ("PartitionChangeRecord", 2, CommittedImage._partition_change),
    9: ("RemoveTopicRecord", 0, CommittedImage._remove_topic),
    12: ("FeatureLevelRecord", 0, CommittedImage._feature_level),
}
"""By key: the name, the last version that is known, and what it changes."""


def _id(reader: ByteReader) -> UUID:
    topic_id = reader.uuid()
    if topic_id is None:
        raise MalformedBytes("the metadata log names a topic without an id")
    return topic_id


def _brokers(reader: ByteReader) -> tuple[int, ...]:
    return tuple(reader.compact_nullable_array(reader.int32) or ())


def _batches(data: bytes) -> Iterable[tuple[bytes, int, int, int, bool]]:
    """Each whole batch with its first offset, the one after its last, its epoch, and whether its records are the log's own."""
    for header, at in whole_batches(data):
        batch = data[at : at + header.size_bytes]
        verify_crc(batch, header)
        next_offset = header.base_offset + header.last_offset_delta + 1
        yield batch, header.base_offset, next_offset, header.leader_epoch, header.control
