"""A broker's entry points: messages, clock ticks, and the queries of its readers."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rackspan.acks.metrics import partition_values
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import reading
from rackspan.cluster.core.broker.broker_state import BrokerState, Counters, broker_metrics
from rackspan.cluster.core.broker.follower import Follower, ReplicaFetchers
from rackspan.cluster.core.broker.leadership.leader import Leader
from rackspan.cluster.core.broker.leadership.leaderships import Leaderships
from rackspan.cluster.core.broker.lifecycle import BrokerIdentity, Lifecycle, Phase
from rackspan.cluster.core.broker.reading import Isolation, OffsetResponse, ReadResponse
from rackspan.cluster.core.broker.record_validation import KeylessRecords, validated_batch
from rackspan.cluster.core.broker.roles import Roles
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.coordination import INTERNAL_TOPICS
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.ids import CONTROLLER, NO_EPOCH, NodeId
from rackspan.cluster.core.log import EpochEnd, RecordBody
from rackspan.cluster.core.log.compaction import uncompressed_body
from rackspan.cluster.core.messages import (
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    DeleteRecords,
    Effect,
    FetchMetadata,
    FetchMetadataResponse,
    Message,
    Produce,
    ProduceResponse,
    ReplicaFetch,
    ReplicaFetchResponse,
    Send,
    ShutDown,
    StartRefused,
    Stopped,
)
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import RACK_AWARE_SELECTOR
from rackspan.model.ids import BrokerId, RackId, TopicPartition

VALID_ACKS: Final = (-1, 0, 1)

__all__ = ["BrokerCore", "BrokerIdentity"]


class BrokerCore:
    """One process of one broker. A restart makes a new object; its logs stay on `disk`.

    `rules` are its decisions as a leader. The disk's clean-shutdown mark is removed at the start, so that an
    unclean end leaves none. `record_body` reads the records of a batch for compaction.
    """

    def __init__(
        self,
        identity: BrokerIdentity,
        settings: ClusterSettings,
        disk: Disk,
        rules: BrokerRules | None = None,
        record_body: RecordBody = uncompressed_body,
    ) -> None:
        lifecycle = Lifecycle(identity, disk.clean_shutdown_epoch)
        disk.clean_shutdown_epoch = NO_EPOCH
        self.identity = identity
        self._shared = BrokerState(identity.id, settings, disk, rules or BrokerRules(), lifecycle)
        self._leaderships = Leaderships(self._shared)
        self._fetchers = ReplicaFetchers(self._shared)
        self._roles = Roles(self._shared, self._leaderships, self._fetchers)
        self._metadata_requested_at: int | None = None
        self._record_body = record_body
        self._next_compaction: int | None = None
        self._to_compact: list[TopicPartition] = []

    # Entry points.

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        """Handle one message. One that is not for a broker, or comes after its end, is dropped."""
        handle = _HANDLERS.get(type(message))
        if handle is None or self._shared.lifecycle.phase is Phase.STOPPED:
            return []
        handle(self, now, source, message)
        return self._flushed(now)

    def on_tick(self, now: int) -> list[Effect]:
        """Handle a clock tick. The cost does not grow with the number of idle partitions."""
        shared = self._shared
        if shared.lifecycle.phase is Phase.STOPPED:
            return []
        for message in shared.lifecycle.due(now, shared.image.offset, shared.settings):
            shared.effects.append(Send(CONTROLLER, message))
        self._fetch_metadata(now)
        self._leaderships.tick(now)
        self._fetchers.tick(now)
        self._compact(now)
        return self._flushed(now)

    def _compact(self, now: int) -> None:
        """Compact the logs of every replica, led or followed, every log.cleaner.backoff.ms: one at a tick."""
        shared = self._shared
        if self._next_compaction is None or self._next_compaction <= now:
            if self._next_compaction is not None and not self._to_compact:
                self._to_compact = [
                    partition for partition in shared.disk.logs if shared.compaction_config(partition.topic) is not None
                ]
            self._next_compaction = now + shared.settings.cleaner_backoff_ms
        while self._to_compact:
            partition = self._to_compact.pop()
            log, config = shared.disk.logs.get(partition), shared.compaction_config(partition.topic)
            if log is not None and config is not None and log.compact(config, now, self._record_body):
                return

    def _flushed(self, now: int) -> list[Effect]:
        """The effects, with the responses and requests that are due after all that the message changed."""
        self._leaderships.respond_woken()
        self._fetchers.fetch_stirred(now)
        self._leaderships.request_changes(now)
        effects, self._shared.effects = self._shared.effects, []
        return effects

    def _produce(self, now: int, _source: NodeId, message: Produce) -> None:
        self._leaderships.produce(now, message)

    def _delete_records(self, _now: int, _source: NodeId, message: DeleteRecords) -> None:
        self._leaderships.delete_records(message)

    def _fetch(self, now: int, _source: NodeId, message: ReplicaFetch) -> None:
        self._leaderships.fetch(now, message)

    def _fetched(self, now: int, source: NodeId, message: ReplicaFetchResponse) -> None:
        self._fetchers.apply(now, BrokerId(source), message)

    def _altered(self, now: int, _source: NodeId, message: AlterPartitionResponse) -> None:
        self._leaderships.altered(now, message)

    def _registered(self, now: int, _source: NodeId, message: BrokerRegistrationResponse) -> None:
        if self._shared.lifecycle.registered(message):
            self._leaderships.start_over()
            self._fetchers.start_over()
            self._roles.act_on_all(now)
            self._heartbeat()
        elif self._shared.lifecycle.phase is Phase.REFUSED:
            self._shared.effects.append(StartRefused(message.message or message.error.name))

    def _heartbeat(self) -> None:
        """Send one at once: the sooner the controller has the metadata offset, the sooner it unfences the broker."""
        shared = self._shared
        if shared.lifecycle.phase in (Phase.RUNNING, Phase.SHUTTING_DOWN):
            shared.effects.append(Send(CONTROLLER, shared.lifecycle.heartbeat(shared.image.offset)))

    def _heartbeat_response(self, _now: int, _source: NodeId, message: BrokerHeartbeatResponse) -> None:
        shared = self._shared
        if shared.lifecycle.heartbeat_response(message):
            shared.disk.clean_shutdown_epoch = shared.broker_epoch
            shared.effects.append(Stopped())

    def _metadata(self, now: int, _source: NodeId, message: FetchMetadataResponse) -> None:
        if message.incarnation != self.identity.incarnation:
            return
        self._metadata_requested_at = None
        changed = self._roles.update(now, message)
        self._fetch_metadata(now)
        if changed and (self._shared.lifecycle.fenced or self._shared.lifecycle.phase is Phase.SHUTTING_DOWN):
            self._heartbeat()

    def _fetch_metadata(self, now: int) -> None:
        requested_at, retry_ms = self._metadata_requested_at, self._shared.settings.metadata_retry_ms
        if requested_at is not None and now - requested_at < retry_ms:
            return
        self._metadata_requested_at = now
        request = FetchMetadata(self.identity.id, self.identity.incarnation, self._shared.image.offset)
        self._shared.effects.append(Send(CONTROLLER, request))

    def _shut_down(self, _now: int, _source: NodeId, _message: ShutDown) -> None:
        self._shared.lifecycle.shut_down()
        self._heartbeat()

    # Queries. Nothing below changes anything.

    @property
    def image(self) -> MetadataImage:
        """The metadata that this broker has."""
        return self._shared.image

    @property
    def settings(self) -> ClusterSettings:
        return self._shared.settings

    @property
    def broker_epoch(self) -> int:
        return self._shared.broker_epoch

    @property
    def phase(self) -> Phase:
        return self._shared.lifecycle.phase

    @property
    def fenced(self) -> bool:
        """Whether the controller's last heartbeat response fenced the broker."""
        return self._shared.lifecycle.fenced

    @property
    def disk(self) -> Disk:
        return self._shared.disk

    @property
    def counters(self) -> Counters:
        return self._shared.counters

    @property
    def leaders(self) -> Mapping[TopicPartition, Leader]:
        """The partitions that it leads by its own metadata, which may be stale."""
        return self._leaderships.leaders

    def read(
        self,
        partition: TopicPartition,
        offset: int,
        max_bytes: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        *,
        rack: RackId | None = None,
        follower_ok: bool = False,
        current_leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
    ) -> ReadResponse:
        """Committed batches from `offset` on. `rack` is the client's; with `follower_ok` a follower may serve it.

        None where this log diverges from a reader's whose last epoch is `last_fetched_epoch` (KIP-595).
        """
        replica, error = self._replica(partition, follower_ok, current_leader_epoch)
        if replica is None:
            return ReadResponse(error)
        if isinstance(replica, Leader) and rack and self._shared.settings.replica_selector_class == RACK_AWARE_SELECTOR:
            preferred = reading.preferred_read_replica(replica, self.image, offset, rack)
            if preferred is not None:
                log = replica.log
                return ReadResponse(
                    ErrorCode.NONE,
                    log.high_watermark,
                    log.last_stable_offset,
                    log.start_offset,
                    preferred_read_replica=preferred,
                )
        diverging = reading.diverging(replica.log, offset, last_fetched_epoch)
        return diverging or reading.read(replica.log, offset, max_bytes, isolation)

    def offset_for_timestamp(
        self,
        partition: TopicPartition,
        timestamp: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        current_leader_epoch: int = NO_EPOCH,
        *,
        debugging: bool = False,
    ) -> OffsetResponse:
        """ListOffsets at the leader; `timestamp` in ms, or -1 latest, -2 earliest, -3 of the greatest timestamp.

        `debugging`: any replica responds, and its log end is the latest offset. Source: Kafka's ListOffsetsRequest.DEBUGGING_REPLICA_ID.
        """
        replica, error = self._replica(partition, debugging, current_leader_epoch)
        if replica is None:
            return OffsetResponse(error)
        upper = replica.log.end_offset if debugging else reading.readable_to(replica.log, isolation)
        return reading.offset_for(replica.log, timestamp, upper, replica.leader_epoch)

    def offset_for_leader_epoch(
        self, partition: TopicPartition, leader_epoch: int, current_leader_epoch: int = NO_EPOCH
    ) -> tuple[ErrorCode, EpochEnd]:
        """OffsetForLeaderEpoch at the leader (KIP-320)."""
        replica, error = self._replica(partition, False, current_leader_epoch)
        if replica is None:
            return error, EpochEnd(NO_EPOCH, -1)
        return ErrorCode.NONE, replica.log.end_offset_for_epoch(leader_epoch)

    def appends_time(self, topic: str) -> bool:
        """Whether the topic's records get the time of append (message.timestamp.type=LogAppendTime)."""
        return self._shared.record_config(topic).append_time

    def validated_batch(
        self,
        partition: TopicPartition | None,
        records: memoryview | None,
        acks: int,
        now: int,
        keyless_records: KeylessRecords,
        *,
        to_internal: bool = False,
    ) -> RecordBatch | ProduceResponse:
        """The produced batch, or why it cannot be appended. `partition` None is one of a topic id that is not known here.

        `to_internal`: internal topics take it too. Of any other client a coordinator would read records as its own.
        """
        if acks not in VALID_ACKS:
            return ProduceResponse(ErrorCode.INVALID_REQUIRED_ACKS)
        if partition is None:
            return ProduceResponse(ErrorCode.UNKNOWN_TOPIC_ID)
        if not records:
            return ProduceResponse(ErrorCode.INVALID_RECORD, message="no record batch; exactly one is wanted")
        if partition.topic not in self.image.topics:
            return ProduceResponse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition.topic in INTERNAL_TOPICS and not to_internal:
            return ProduceResponse(ErrorCode.INVALID_TOPIC_EXCEPTION)
        return validated_batch(partition, records, self._shared.record_config(partition.topic), now, keyless_records)

    def metrics(self) -> dict[str, int]:
        """The broker's metrics by name (acks/metrics.py)."""
        return broker_metrics(self.partition_metrics().values(), self.counters)

    def partition_metrics(self) -> dict[TopicPartition, dict[str, int]]:
        """The metrics of each partition it leads."""
        return {
            partition: partition_values(leader.isr_racks, leader.required.min_insync_racks)
            for partition, leader in self.leaders.items()
        }

    def _replica(
        self, partition: TopicPartition, follower_ok: bool, current_leader_epoch: int
    ) -> tuple[Leader | Follower | None, ErrorCode]:
        replica: Leader | Follower | None = self.leaders.get(partition)
        if replica is None and follower_ok:
            replica = self._fetchers.followers.get(partition)
        if replica is None:
            known = self.image.partition(partition) is not None
            return None, ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = reading.epoch_error(replica, current_leader_epoch)
        return (replica, error) if error is ErrorCode.NONE else (None, error)


_Handle: TypeAlias = Callable[[BrokerCore, int, NodeId, Any], None]

_HANDLERS: Final[Mapping[type[Message], _Handle]] = {
    Produce: BrokerCore._produce,
    DeleteRecords: BrokerCore._delete_records,
    ReplicaFetch: BrokerCore._fetch,
    ReplicaFetchResponse: BrokerCore._fetched,
    AlterPartitionResponse: BrokerCore._altered,
    BrokerRegistrationResponse: BrokerCore._registered,
    BrokerHeartbeatResponse: BrokerCore._heartbeat_response,
    FetchMetadataResponse: BrokerCore._metadata,
    ShutDown: BrokerCore._shut_down,
}
