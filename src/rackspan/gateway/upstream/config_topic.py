"""The compacted topic in which all gateways of a cluster keep min.insync.racks: written by each, followed by each."""

import asyncio
import logging
from functools import partial
from typing import Final
from uuid import UUID

from rackspan.acks.min_insync_racks import rack_bits
from rackspan.client.connection import BrokerConnection, first
from rackspan.client.errors import message_of
from rackspan.client.login import Login
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable, RackspanError
from rackspan.gateway.core.config_lease import SETTLE_SECONDS, ConfigLease
from rackspan.gateway.core.config_records import ConfigRecords, Replay
from rackspan.gateway.core.gateways.registrations import GatewayRecords
from rackspan.gateway.core.value_warnings import ConfigTopicState
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_ends import ConfigEndReader, lease_time
from rackspan.gateway.upstream.config_leader import EARLIEST, LATEST, ConfigLeader, Lead, topic_request
from rackspan.gateway.upstream.config_writer import ConfigWriter
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import FetchPartition, FetchRequestData, FetchTopic
from rackspan.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequestData

log = logging.getLogger(__name__)

START_SECONDS: Final = 30.0
WARN_SECONDS: Final = 10.0
"""How often a log line says that the topic still cannot be followed, and why."""

_REPLICATION_FACTOR: Final = 3
_FETCH_VERSION: Final = 12
"""The last that names topics by name."""

_MAX_WAIT_MS: Final = 500
_MAX_BYTES: Final = 4 * 1024 * 1024
_SEGMENT_BYTES: Final = 1024 * 1024
"""The least that Kafka 4 accepts."""

_BACKOFF_SECONDS: Final = 0.1


class ConfigTopic:
    """Follows the topic and writes to it. `replay` is called with key and value of every record, in order.

    After a change of leader everything is read again (see ConfigRecords), since records may be missing there.
    """

    def __init__(
        self, topic: str, cluster: UpstreamCluster, login: Login, replay: Replay, *, create: bool = True
    ) -> None:
        self.topic = topic
        self._cluster = cluster
        self._create_missing = create
        self._records = ConfigRecords(replay)
        self._leader = ConfigLeader(topic, cluster, login)
        self._writer = ConfigWriter(self._leader, cluster)
        self._lead: Lead | None = None
        """Whose log was read."""
        self._end = 0
        """The leader's end of committed records when it was connected to."""
        self.log_start_offset = 0
        """Above 0 after records were deleted: compaction leaves it at 0."""
        self._replayed = asyncio.Condition()
        self._connection: BrokerConnection | None = None
        self._warned_at = float("-inf")
        self._unread_since: float | None = None
        self.current = False
        """Whether the last fetch succeeded and reached the end."""
        self.read_at: float | None = None
        self.lease = ConfigLease()
        self.ends = ConfigEndReader(topic, cluster, self.lease, self._read_on)

    @property
    def lost(self) -> set[bytes]:
        """Keys whose records are missing in the topic without a tombstone. They keep their values."""
        return self._records.lost

    @property
    def gateways(self) -> GatewayRecords:
        """The gateways that register in the topic, and whether it is confirmed to have every value."""
        return self._records.gateways

    @property
    def topic_id(self) -> UUID | None:
        return self._leader.latest.topic_id

    @property
    def racks(self) -> int:
        """How many racks have a replica of the topic, those of brokers that are down too."""
        return rack_bits(self._cluster.all_brokers()).count(self._leader.latest.replicas)

    @property
    def state(self) -> ConfigTopicState:
        return ConfigTopicState(self.topic, self.racks, self.log_start_offset, self.gateways.confirmed)

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
        except (OSError, RackspanError) as error:
            self._report_unread(error)
            self.current = False
            self._drop_connection()
            await asyncio.sleep(_BACKOFF_SECONDS)
        else:
            if self._unread_since is not None:
                log.info("the config topic %s is followed again", self.topic)
                self._unread_since = None

    def _report_unread(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        first = self._unread_since is None
        self._unread_since = now if self._unread_since is None else self._unread_since
        if first or now - self._warned_at > WARN_SECONDS:
            self._warned_at = now
            log.warning(
                "the config topic %s cannot be followed for %.0f s: %s",
                self.topic,
                now - self._unread_since,
                message_of(error),
            )

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()

    async def write(self, key: bytes, value: bytes | None, racks: int = 1) -> None:
        """Returns when the record is committed, held by replicas on so many racks, and replayed here.

        With more than one rack it is a value above 1, and every gateway acknowledges by it when this returns.
        Errors: ClusterRequestFailed, ClusterUnreachable.
        """
        await self._writer.write(key, value, racks, self._wait_until_replayed)
        if racks > 1:
            await self._settle()

    async def _settle(self) -> None:
        until = lease_time() + SETTLE_SECONDS
        while (left_seconds := until - lease_time()) > 0:
            await asyncio.sleep(left_seconds)

    async def _wait_until_replayed(self, offset: int) -> None:
        async with self._replayed:
            await self._replayed.wait_for(partial(self._records.has_passed, offset))

    async def _create(self) -> None:
        connection = await self._cluster.any_connection()
        factor = min(_REPLICATION_FACTOR, len(self._cluster.by_id))
        configs = {
            "cleanup.policy": "compact",
            "min.insync.replicas": str(max(1, factor - 1)),
            "compression.type": "uncompressed",
            # Only closed segments are compacted, and gateways register every half a minute.
            "segment.bytes": str(_SEGMENT_BYTES),
            # From Kafka 4.0 on a record is refused whose writer's clock is an hour ahead.
            "message.timestamp.type": "LogAppendTime",
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
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise ClusterRequestFailed(
                f"the config topic {self.topic} could not be created: {result.error_message or result.error_code}; create it "
                "with cleanup.policy=compact and one partition, or give the gateway's principal CREATE"
            )
        if result.error_code == ErrorCode.NONE:
            log.warning(
                "the config topic %s did not exist and was created: no topic has a value of min.insync.racks but by the gateway's "
                "file. If there were values, set them again",
                self.topic,
            )

    async def _exists(self, connection: BrokerConnection) -> bool:
        metadata = await connection.call(ApiKey.METADATA, topic_request(self.topic))
        return all(topic.error_code == ErrorCode.NONE for topic in metadata.topics)

    async def _fetch(self, max_wait_ms: int) -> None:
        if self._connection is None or self._connection.is_over:
            self._drop_connection()
            # A connection of its own: a fetch waits at the broker, and what is behind it waits too.
            lead, before = await self._leader.find(), self._lead
            is_same = before is not None and lead.topic_id == before.topic_id
            if before is not None and is_same and lead.topic_id is not None and lead < before:
                raise ClusterUnreachable(f"only an earlier leader of {self.topic} is reported")
            self._follow_replicas(lead)
            # Before anything is read again: what a leader that does not respond has is read from the others meanwhile.
            connection = await self._leader.open(lead.leader)
            try:
                self._end = await self._leader.listed_offset(connection, LATEST)
            except BaseException:
                connection.close()
                raise
            if before is not None and (lead != before or not is_same):
                self._read_again(0)
            self._lead, self._connection = lead, connection
        connection = self._connection
        version = connection.version(ApiKey.FETCH, _FETCH_VERSION)
        response = await connection.call(ApiKey.FETCH, self._request(max_wait_ms), version, max_wait_ms / 1000 + 2)
        partition = first(first(response.responses, "topic").partitions, "partition")
        if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            earliest = await self._leader.listed_offset(connection, EARLIEST)
            has_id = self._lead is not None and self._lead.topic_id is not None
            if has_id and earliest <= self._records.offset:
                # It was deposed and does not know it: what it lacks was read from the others. A log that an unclean election cut has a new epoch,
                # and one of a topic that was made anew another id, where there are ids.
                raise ClusterUnreachable(
                    f"the log of broker {self._leader.latest.leader} ends before what was read of {self.topic}"
                )
            self._read_again(earliest)
            self._end = await self._leader.listed_offset(connection, LATEST)
            return
        if partition.error_code != ErrorCode.NONE:
            raise ClusterUnreachable(f"error {partition.error_code} from the leader of {self.topic}")
        self._report_deleted(partition.log_start_offset)
        self._records.replay_batches(bytes(partition.records or b""))
        at_end = self._records.offset >= max(partition.high_watermark, self._end)
        if at_end:
            self._report_lost_keys(self._records.end())
        await self._records_replayed()
        self.current = at_end
        self.read_at = asyncio.get_running_loop().time()

    async def _records_replayed(self) -> None:
        lead = self._lead
        if lead is not None and not self._records.is_reread:
            self.lease.replayed(lead.topic_id, self._records.offset)
            self._follow_replicas(lead)
            self.ends.report()
        async with self._replayed:
            self._replayed.notify_all()

    def _follow_replicas(self, lead: Lead) -> None:
        self.lease.follow_replicas(lead.topic_id, lead.leader_epoch, frozenset(lead.replicas))

    async def _read_on(self, replica: int) -> None:
        """Replay what a replica has of committed records that are not replayed. Errors: OSError, RackspanError."""
        if self._records.is_reread or self._lead is None:
            return
        connection = await self._cluster.connection(replica)
        request = self._request(0)
        has_id = self._lead.topic_id is not None
        version = connection.version(ApiKey.FETCH, None if has_id else _FETCH_VERSION)
        response = await connection.call(ApiKey.FETCH, request, version)
        partition = first(first(response.responses, "topic").partitions, "partition")
        # Else another read has begun meanwhile, or has ended before these records.
        follows = self._records.offset >= request.topics[0].partitions[0].fetch_offset
        if partition.error_code == ErrorCode.NONE and follows and not self._records.is_reread:
            self._records.replay_batches(bytes(partition.records or b""))
            await self._records_replayed()

    def _request(self, max_wait_ms: int) -> FetchRequestData:
        topic_id = None if self._lead is None else self._lead.topic_id
        partition = FetchPartition(partition=0, fetch_offset=self._records.offset, partition_max_bytes=_MAX_BYTES)
        return FetchRequestData(
            replica_id=-1,
            max_wait=max_wait_ms,
            min_bytes=1,
            max_bytes=_MAX_BYTES,
            session_id=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=self.topic, topic_id=topic_id, partitions=[partition])],
        )

    def _read_again(self, offset: int) -> None:
        self._records.read_again(offset)
        self.current = False

    def _report_deleted(self, log_start_offset: int) -> None:
        if log_start_offset > self.log_start_offset:
            log.error(
                "the config topic %s begins at offset %d: records were deleted, and with them maybe values of min.insync.racks; "
                "compare the topics' values and set those again that are missing",
                self.topic,
                log_start_offset,
            )
        self.log_start_offset = max(0, log_start_offset)

    def _report_lost_keys(self, keys: set[bytes]) -> None:
        if keys:
            log.error(
                "the config topic %s no longer has %s, and no tombstone: it was deleted and created again, or emptied, or an unclean election "
                "lost records. This gateway keeps the values until it ends; set them again now",
                self.topic,
                ", ".join(sorted(key.decode(errors="replace") for key in keys)),
            )

    def close(self) -> None:
        self._drop_connection()
        self._writer.close()
