"""The compacted topic in which all gateways of a cluster keep min.insync.racks: written by each, followed by each."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID

from rackspan.acks.log_ends import AcknowledgedRecord
from rackspan.acks.min_insync_racks import rack_bits
from rackspan.client.connection import BrokerConnection, first
from rackspan.client.login import Login
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable, MalformedBytes, MalformedRequest, RackspanError
from rackspan.gateway.core.acknowledgement.samples import LogRead
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.log_ends import read_log_ends
from rackspan.kafka_bytes.record_batch import read_records, whole_batches, write_batch
from rackspan.model import Broker, BrokerId
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import FetchPartition, FetchRequestData, FetchTopic
from rackspan.wire.messages.log_offsets import ListOffsetsPartition, ListOffsetsRequestData, ListOffsetsTopic
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic
from rackspan.wire.messages.produce import PartitionProduceData, ProduceRequestData, TopicProduceData
from rackspan.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequestData

log = logging.getLogger(__name__)

START_SECONDS: Final = 30.0
WRITE_SECONDS: Final = 15.0
WARN_SECONDS: Final = 10.0
"""How often a log line says that the topic still cannot be followed, and why."""

_PRODUCE_MS: Final = 5_000
_LOOKUP_BROKERS: Final = 3
_LOOKUP_SECONDS: Final = 0.5
"""For the other brokers, once one has reported a leader."""

_REPLICATION_FACTOR: Final = 3
_FETCH_VERSION: Final = 12
"""The last that names topics by name."""

_PRODUCE_VERSION: Final = 12
_MAX_WAIT_MS: Final = 500
_MAX_BYTES: Final = 4 * 1024 * 1024
_BACKOFF_SECONDS: Final = 0.1
_EARLIEST: Final = -2

_NONE, _OFFSET_OUT_OF_RANGE, _TOPIC_EXISTS = 0, 1, 36


@dataclass(frozen=True, slots=True, order=True)
class _Lead:
    """The config topic's partition as one broker reports it; -1 for what there is none of. The newest leader epoch is the greatest."""

    leader_epoch: int
    leader: int
    replicas: tuple[BrokerId, ...] = field(default=(), compare=False)
    isr: tuple[BrokerId, ...] = field(default=(), compare=False)
    topic_id: UUID | None = field(default=None, compare=False)


class ConfigTopic:
    """`replay` is called with key and value of every record, in order.

    After a change of leader everything is read again, since records may be missing there; the last record of each key is then
    replayed. A key that is missing without a tombstone keeps its value, and is counted in `lost`.
    """

    def __init__(
        self,
        topic: str,
        cluster: UpstreamCluster,
        login: Login,
        replay: Callable[[bytes | None, bytes | None], None],
        *,
        create: bool = True,
    ) -> None:
        self.topic = topic
        self._cluster = cluster
        self._login = login
        self._replay = replay
        self._create_missing = create
        self._offset = 0
        self._reread: dict[bytes | None, bytes | None] | None = {}
        """The last record of each key, while everything is read; None once that is replayed."""
        self._lead: _Lead | None = None
        """Whose log was read."""
        self._keys: set[bytes] = set()
        """Those that have a value."""
        self.lost: set[bytes] = set()
        """Keys whose records are missing in the topic without a tombstone. They keep their values."""
        self.log_start_offset = 0
        """Above 0 after records were deleted: compaction leaves it at 0."""
        self.created = False
        """Whether this process created the topic."""
        self._passed = asyncio.Condition()
        self._connection: BrokerConnection | None = None
        self._writer: tuple[int, BrokerConnection] | None = None
        """The broker that records are written to. Its connection is not shared: a record that waits for followers would hold up what is behind it."""
        self._writing = asyncio.Lock()
        self._warned_at = float("-inf")
        self._lost_at: float | None = None
        self._replicas: tuple[BrokerId, ...] = ()
        self.topic_id: UUID | None = None
        self.current = False
        """Whether the last fetch succeeded and reached the end."""
        self.read_at: float | None = None

    async def start(self) -> None:
        """Create the topic if it is missing and read it to its end. Errors: RackspanError."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._create()
                await self.read()
        except TimeoutError as error:
            raise ClusterUnreachable(
                f"the config topic {self.topic} could not be read in {START_SECONDS:g} s; does the gateway's principal have "
                "READ, WRITE, DESCRIBE and CREATE on it, and does it have a leader?"
            ) from error

    async def read(self) -> None:
        """Read to the end. The topic exists."""
        while not self.current:
            await self._fetch_or_wait(0)

    async def follow(self) -> None:
        while True:
            await self._fetch_or_wait(_MAX_WAIT_MS)

    async def _fetch_or_wait(self, max_wait_ms: int) -> None:
        try:
            await self._fetch(max_wait_ms)
        except (OSError, TimeoutError, RackspanError, MalformedRequest, MalformedBytes) as error:
            self._report_lost(error)
            self.current = False
            self._drop_connection()
            await asyncio.sleep(_BACKOFF_SECONDS)
        else:
            if self._lost_at is not None:
                log.info("the config topic %s is followed again", self.topic)
                self._lost_at = None

    def _report_lost(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        first = self._lost_at is None
        self._lost_at = now if self._lost_at is None else self._lost_at
        if first or now - self._warned_at > WARN_SECONDS:
            self._warned_at = now
            log.warning(
                "the config topic %s cannot be followed for %.0f s: %s",
                self.topic,
                now - self._lost_at,
                error or type(error).__name__,
            )

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer[1].close()
            self._writer = None

    async def write(self, key: bytes, value: bytes | None, racks: int = 1) -> None:
        """Returns when the record is committed, held by replicas on so many racks, and replayed here.

        Without that a value could be lost with one rack, and every gateway that starts later would not require it.
        Errors: ClusterRequestFailed, ClusterUnreachable.
        """
        failed: Exception | None = None
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                while True:
                    try:
                        async with self._writing:
                            lead, offset = await self._produce(key, value)
                        await self._held(lead, offset + 1, racks)
                    except (OSError, TimeoutError, RackspanError, MalformedRequest) as error:
                        failed = error
                        self._drop_writer()
                        await asyncio.sleep(_BACKOFF_SECONDS)
                        continue
                    async with self._passed:
                        await self._passed.wait_for(partial(self._has_passed, offset))
                    return
        except TimeoutError as error:
            raise ClusterUnreachable(
                f"the config topic {self.topic} could not be written to {count_noun(racks, 'rack')} in {WRITE_SECONDS:g} s, or "
                f"not be read after that: {failed or 'no response'}; look at its leader and ISR, and alter the value again"
            ) from error

    async def _held(self, lead: _Lead, end_offset: int, racks: int) -> None:
        """Returns when the logs of in-sync replicas on so many racks show the record. Errors: ClusterUnreachable for a new leader."""
        record, bits = (
            AcknowledgedRecord(BrokerId(lead.leader), lead.leader_epoch, end_offset),
            rack_bits(self._brokers()),
        )
        read = LogRead((self.topic, 0), lead.topic_id, lead.leader_epoch)
        while racks > 1 and not record.is_held(lead.isr, bits, racks):
            for replica in record.spare_reads(lead.isr, bits):
                with suppress(OSError, TimeoutError, RackspanError):
                    connection = await self._cluster.connection(replica)
                    ends, _ = await read_log_ends(connection, [read], _LOOKUP_SECONDS)
                    record.observe(replica, lead.leader_epoch, ends.get(read))
            if not record.is_held(lead.isr, bits, racks):
                await asyncio.sleep(_BACKOFF_SECONDS)
                newer = await self._leader()
                if newer != lead:
                    raise ClusterUnreachable("its leader changed")
                lead = newer

    def _brokers(self) -> Iterable[Broker]:
        return self._cluster.all_brokers()

    @property
    def racks(self) -> int:
        """How many racks have a replica of the topic, those of brokers that are down too."""
        return rack_bits(self._brokers()).count(self._replicas)

    def _has_passed(self, offset: int) -> bool:
        return self._reread is None and self._offset > offset

    # Requests.

    async def _create(self) -> None:
        connection = await self._cluster.any_connection()
        factor = min(_REPLICATION_FACTOR, len(self._cluster.nodes))
        configs = {
            "cleanup.policy": "compact",
            "min.insync.replicas": str(max(1, factor - 1)),
            "compression.type": "uncompressed",
        }
        topic = CreatableTopic(
            name=self.topic,
            num_partitions=1,
            replication_factor=factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        if await self._exists(connection):
            return
        if not self._create_missing:
            raise ClusterRequestFailed(
                f"the config topic {self.topic} does not exist, and acknowledgements.config.topic.create is false: the values of "
                "min.insync.racks are lost; create it at the brokers, then set the values again"
            )
        request = CreateTopicsRequestData(topics=[topic], timeout=10_000)
        response = await connection.call(ApiKey.CREATE_TOPICS, request, seconds=15)
        result = first(response.topics, "topic")
        if result.error_code not in (_NONE, _TOPIC_EXISTS):
            raise ClusterRequestFailed(
                f"the config topic {self.topic} could not be created: {result.error_message or result.error_code}; create it "
                "with cleanup.policy=compact and one partition, or give the gateway's principal CREATE"
            )
        self.created = result.error_code == _NONE
        if self.created:
            log.warning(
                "the config topic %s did not exist and was created: no topic has a value of min.insync.racks but by the gateway's "
                "file. If there were values, set them again",
                self.topic,
            )

    async def _exists(self, connection: BrokerConnection) -> bool:
        request = MetadataRequestData(topics=[MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=False)
        metadata = await connection.call(ApiKey.METADATA, request)
        return all(topic.error_code == _NONE for topic in metadata.topics)

    async def _leader(self) -> _Lead:
        """By the highest leader epoch that some brokers report: the metadata of one may be behind, and name a broker that is gone."""
        nodes: list[int | None] = [*self._cluster.some_nodes(_LOOKUP_BROKERS)]
        waiting = {asyncio.create_task(self._leader_by(node_id)) for node_id in nodes or [None]}
        done: set[asyncio.Task[_Lead]] = set()
        try:
            while waiting:
                has_one = any(one.exception() is None for one in done)
                ended, waiting = await asyncio.wait(
                    waiting, timeout=_LOOKUP_SECONDS if has_one else None, return_when=asyncio.FIRST_COMPLETED
                )
                done |= ended
                if not ended:
                    break
        finally:
            for one in waiting:
                one.cancel()
        reported = [one.result() for one in done if one.exception() is None]
        if not reported:
            failed = next(iter(done)).exception()
            raise ClusterUnreachable(f"no broker reports the leader of {self.topic}: {failed}")
        lead = max(reported)
        if lead.leader < 0:
            raise ClusterUnreachable(f"the config topic {self.topic} has no leader")
        self._replicas, self.topic_id = lead.replicas, lead.topic_id
        return lead

    async def _leader_by(self, node_id: int | None) -> _Lead:
        """By one broker's metadata."""
        cluster = self._cluster
        connection = await (cluster.any_connection() if node_id is None else cluster.connection(node_id))
        request = MetadataRequestData(topics=[MetadataRequestTopic(name=self.topic)], allow_auto_topic_creation=False)
        metadata = await connection.call(ApiKey.METADATA, request)
        topic = first(metadata.topics, "topic")
        if topic.error_code != _NONE or not topic.partitions:
            raise ClusterUnreachable(f"error {topic.error_code} for {self.topic}")
        partition = topic.partitions[0]
        for broker in metadata.brokers:
            if broker.node_id == partition.leader_id:
                cluster.learn(broker.node_id, broker.host, broker.port)
        return _Lead(
            partition.leader_epoch,
            partition.leader_id,
            tuple(map(BrokerId, partition.replica_nodes)),
            tuple(map(BrokerId, partition.isr_nodes)),
            topic.topic_id,
        )

    async def _produce(self, key: bytes, value: bytes | None) -> tuple[_Lead, int]:
        lead = await self._leader()
        leader = lead.leader
        if self._writer is None or self._writer[0] != leader or self._writer[1].closed:
            self._drop_writer()
            self._writer = leader, await self._open(leader)
        connection = self._writer[1]
        batch = write_batch([(key, value)], time.time_ns() // 1_000_000)
        data = PartitionProduceData(index=0, records=memoryview(batch))
        request = ProduceRequestData(
            acks=-1, timeout=_PRODUCE_MS, topic_data=[TopicProduceData(name=self.topic, partition_data=[data])]
        )
        version = connection.version(ApiKey.PRODUCE, _PRODUCE_VERSION)
        response = await connection.call(ApiKey.PRODUCE, request, version, _PRODUCE_MS / 1000 + 2)
        partition = first(first(response.responses, "topic").partition_responses, "partition")
        if partition.error_code != _NONE:
            raise ClusterRequestFailed(partition.error_message or f"error {partition.error_code}")
        return lead, int(partition.base_offset)

    async def _open(self, leader: int) -> BrokerConnection:
        node = self._cluster.nodes.get(leader)
        if node is None:
            raise ClusterUnreachable(f"the leader of {self.topic}, broker {leader}, is not known")
        return await BrokerConnection.open(node.host, node.port, self._login)

    async def _fetch(self, max_wait_ms: int) -> None:
        if self._connection is None or self._connection.closed:
            # A connection of its own: a fetch waits at the broker, and what is behind it waits too.
            lead = await self._leader()
            if self._lead is not None and (lead != self._lead or lead.topic_id != self._lead.topic_id):
                self._read_again(0)
            self._lead = lead
            self._connection = await self._open(lead.leader)
        connection = self._connection
        request = FetchRequestData(
            replica_id=-1,
            max_wait=max_wait_ms,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[
                FetchTopic(
                    topic=self.topic,
                    partitions=[FetchPartition(partition=0, fetch_offset=self._offset, partition_max_bytes=_MAX_BYTES)],
                )
            ],
        )
        version = connection.version(ApiKey.FETCH, _FETCH_VERSION)
        response = await connection.call(ApiKey.FETCH, request, version, max_wait_ms / 1000 + 2)
        partition = first(first(response.responses, "topic").partitions, "partition")
        if partition.error_code == _OFFSET_OUT_OF_RANGE:
            self._read_again(await self._earliest(connection))
            return
        if partition.error_code != _NONE:
            raise ClusterUnreachable(f"error {partition.error_code} from the leader of {self.topic}")
        self._report_deleted(partition.log_start_offset)
        self._replay_batches(bytes(partition.records or b""))
        at_end = self._offset >= partition.high_watermark
        if at_end:
            self._end_reread()
        async with self._passed:
            self._passed.notify_all()
        self.current = at_end
        self.read_at = asyncio.get_running_loop().time()

    def _read_again(self, offset: int) -> None:
        self._offset, self._reread, self.current = offset, {}, False

    def _report_deleted(self, log_start_offset: int) -> None:
        if log_start_offset > self.log_start_offset:
            log.error(
                "the config topic %s begins at offset %d: records were deleted, and with them maybe values of min.insync.racks; "
                "compare the topics' values and set those again that are missing",
                self.topic,
                log_start_offset,
            )
        self.log_start_offset = max(0, log_start_offset)

    def _end_reread(self) -> None:
        """Replay what was read from the beginning, and report the keys that are no longer in the topic."""
        if self._reread is None:
            return
        records, self._reread = self._reread, None
        lost = self._keys - records.keys()
        for key, value in records.items():
            self._replay_record(key, value)
        if lost - self.lost:
            log.error(
                "the config topic %s no longer has %s, and no tombstone: it was deleted and created again, or emptied, or an unclean election "
                "lost records. This gateway keeps the values until it ends; set them again now",
                self.topic,
                ", ".join(sorted(key.decode(errors="replace") for key in lost)),
            )
        self.lost |= lost

    def _replay_record(self, key: bytes | None, value: bytes | None) -> None:
        if key is not None:
            self.lost.discard(key)
            if value is None:
                self._keys.discard(key)
            else:
                self._keys.add(key)
        self._replay(key, value)

    async def _earliest(self, connection: BrokerConnection) -> int:
        request = ListOffsetsRequestData(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=self.topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=_EARLIEST)]
                )
            ],
        )
        response = await connection.call(ApiKey.LIST_OFFSETS, request)
        return int(first(first(response.topics, "topic").partitions, "partition").offset)

    def _replay_batches(self, records: bytes) -> None:
        for header, at in whole_batches(records):
            batch = records[at : at + header.size_bytes]
            for delta, (key, value) in read_records(batch) if not header.control else ():
                if header.base_offset + delta < self._offset:
                    continue
                if self._reread is None:
                    self._replay_record(key, value)
                else:
                    self._reread[key] = value
            self._offset = header.base_offset + header.last_offset_delta + 1

    def close(self) -> None:
        self._drop_connection()
        self._drop_writer()
