"""A broker's two doors, which message goes where, and the queries of its readers."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from rackspan.cluster.core.broker import gauges, reading
from rackspan.cluster.core.broker.counters import Counters
from rackspan.cluster.core.broker.follower import Follower
from rackspan.cluster.core.broker.following import Following
from rackspan.cluster.core.broker.leader import Leader
from rackspan.cluster.core.broker.leading import Leading
from rackspan.cluster.core.broker.lifecycle import BrokerIdentity, Lifecycle, Phase
from rackspan.cluster.core.broker.local import Local
from rackspan.cluster.core.broker.reading import Isolation, OffsetResponse, ReadResponse
from rackspan.cluster.core.broker.roles import Roles
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import CONTROLLER, NO_EPOCH, NodeId
from rackspan.cluster.core.log import EpochEnd
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
    ReplicaFetch,
    ReplicaFetchResponse,
    Send,
    ShutDown,
    Stopped,
)
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId, RackId, TopicPartition

__all__ = ["Broker", "BrokerIdentity"]


class Broker:
    """One process of one broker. Its end is the end of this object; its logs stay on `disk`.

    `rules` are its decisions as a leader. The disk's clean-shutdown mark is taken off at the start, so that an end in
    disorder leaves none.
    """

    def __init__(
        self, identity: BrokerIdentity, settings: ClusterSettings, disk: Disk, rules: BrokerRules | None = None
    ) -> None:
        lifecycle = Lifecycle(identity, disk.clean_shutdown_epoch)
        disk.clean_shutdown_epoch = NO_EPOCH
        self.identity = identity
        self._local = Local(identity.id, settings, disk, rules or BrokerRules(), lifecycle)
        self._leading = Leading(self._local)
        self._following = Following(self._local)
        self._roles = Roles(self._local, self._leading, self._following)
        self._metadata_asked_at: int | None = None

    # The doors.

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        """Take one message; what is not for a broker, or comes after its end, is dropped."""
        take = _TAKE.get(type(message))
        if take is None or self._local.lifecycle.phase is Phase.STOPPED:
            return []
        take(self, now, source, message)
        return self._outcome(now)

    def on_tick(self, now: int) -> list[Effect]:
        """Look at the clock. Costs the same however many partitions are idle."""
        local = self._local
        if local.lifecycle.phase is Phase.STOPPED:
            return []
        for message in local.lifecycle.due(now, local.image.offset, local.settings):
            local.effects.append(Send(CONTROLLER, message))
        self._ask_for_metadata(now)
        self._leading.tick(now)
        self._following.tick(now)
        return self._outcome(now)

    def _outcome(self, now: int) -> list[Effect]:
        """Answers and questions go out once all that the message changed is settled."""
        self._leading.respond_woken()
        self._following.ask_stirred(now)
        self._leading.request_changes(now)
        effects, self._local.effects = self._local.effects, []
        return effects

    def _produce(self, now: int, _source: NodeId, message: Produce) -> None:
        self._leading.produce(now, message)

    def _delete_records(self, _now: int, _source: NodeId, message: DeleteRecords) -> None:
        self._leading.delete_records(message)

    def _fetch(self, now: int, _source: NodeId, message: ReplicaFetch) -> None:
        self._leading.fetch(now, message)

    def _fetched(self, now: int, source: NodeId, message: ReplicaFetchResponse) -> None:
        self._following.heed(now, BrokerId(source), message)

    def _altered(self, now: int, _source: NodeId, message: AlterPartitionResponse) -> None:
        self._leading.altered(now, message)

    def _registered(self, now: int, _source: NodeId, message: BrokerRegistrationResponse) -> None:
        if self._local.lifecycle.registered(message):
            self._leading.register_anew()
            self._following.register_anew()
            self._roles.act_on_all(now)
            self._heartbeat()

    def _heartbeat(self) -> None:
        """Out of turn: the sooner the controller hears what is known here, the sooner it lets the broker serve."""
        local = self._local
        if local.lifecycle.phase in (Phase.RUNNING, Phase.SHUTTING_DOWN):
            local.effects.append(Send(CONTROLLER, local.lifecycle.heartbeat(local.image.offset)))

    def _heard(self, _now: int, _source: NodeId, message: BrokerHeartbeatResponse) -> None:
        local = self._local
        if local.lifecycle.heard(message):
            local.disk.clean_shutdown_epoch = local.broker_epoch
            local.effects.append(Stopped())

    def _learned(self, now: int, _source: NodeId, message: FetchMetadataResponse) -> None:
        if message.incarnation != self.identity.incarnation:
            return
        self._metadata_asked_at = None
        news = self._roles.learn(now, message)
        self._ask_for_metadata(now)
        if news and (self._local.lifecycle.fenced or self._local.lifecycle.phase is Phase.SHUTTING_DOWN):
            self._heartbeat()

    def _ask_for_metadata(self, now: int) -> None:
        asked, retry = self._metadata_asked_at, self._local.settings.metadata_retry_ms
        if asked is not None and now - asked < retry:
            return
        self._metadata_asked_at = now
        request = FetchMetadata(self.identity.id, self.identity.incarnation, self._local.image.offset)
        self._local.effects.append(Send(CONTROLLER, request))

    def _shut_down(self, _now: int, _source: NodeId, _message: ShutDown) -> None:
        self._local.lifecycle.shut_down()
        self._heartbeat()

    # What it is asked. Nothing below changes anything.

    @property
    def image(self) -> MetadataImage:
        """The metadata as this broker knows it."""
        return self._local.image

    @property
    def settings(self) -> ClusterSettings:
        return self._local.settings

    @property
    def broker_epoch(self) -> int:
        return self._local.broker_epoch

    @property
    def phase(self) -> Phase:
        return self._local.lifecycle.phase

    @property
    def fenced(self) -> bool:
        """As the controller last said."""
        return self._local.lifecycle.fenced

    @property
    def disk(self) -> Disk:
        return self._local.disk

    @property
    def counters(self) -> Counters:
        return self._local.counters

    @property
    def leaders(self) -> Mapping[TopicPartition, Leader]:
        """What it leads, or believes to."""
        return self._leading.leaders

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
    ) -> ReadResponse:
        """Committed batches from `offset` on. `rack` is the client's; `follower_ok` that it may be answered by a follower."""
        replica, error = self._replica(partition, follower_ok, current_leader_epoch)
        if replica is None:
            return ReadResponse(error)
        if isinstance(replica, Leader) and rack:
            preferred = reading.preferred_read_replica(replica, self.image, offset, rack)
            if preferred is not None:
                log = replica.log
                return ReadResponse(
                    KafkaError.NONE,
                    log.high_watermark,
                    log.last_stable_offset,
                    log.start_offset,
                    preferred_read_replica=preferred,
                )
        return reading.read(replica.log, offset, max_bytes, isolation)

    def offset_for_timestamp(
        self,
        partition: TopicPartition,
        timestamp: int,
        isolation: Isolation = Isolation.READ_UNCOMMITTED,
        current_leader_epoch: int = NO_EPOCH,
    ) -> OffsetResponse:
        """ListOffsets at the leader; `timestamp` in ms, or -1 latest, -2 earliest, -3 of the greatest timestamp."""
        replica, error = self._replica(partition, False, current_leader_epoch)
        if replica is None:
            return OffsetResponse(error)
        return reading.offset_for(replica.log, timestamp, reading.readable_to(replica.log, isolation))

    def offset_for_leader_epoch(
        self, partition: TopicPartition, leader_epoch: int, current_leader_epoch: int = NO_EPOCH
    ) -> tuple[KafkaError, EpochEnd]:
        """OffsetForLeaderEpoch at the leader (KIP-320)."""
        replica, error = self._replica(partition, False, current_leader_epoch)
        if replica is None:
            return error, EpochEnd(NO_EPOCH, -1)
        return KafkaError.NONE, replica.log.end_offset_for_epoch(leader_epoch)

    def metrics(self) -> dict[str, int]:
        """The broker's metrics by name (acks/metrics.py)."""
        return gauges.broker_metrics(self.leaders.values(), self.counters)

    def partition_metrics(self) -> dict[TopicPartition, dict[str, int]]:
        """The metrics of each partition it leads."""
        return {partition: gauges.partition_metrics(leader) for partition, leader in self.leaders.items()}

    def _replica(
        self, partition: TopicPartition, follower_ok: bool, current_leader_epoch: int
    ) -> tuple[Leader | Follower | None, KafkaError]:
        replica: Leader | Follower | None = self.leaders.get(partition)
        if replica is None and follower_ok:
            replica = self._following.followers.get(partition)
        if replica is None:
            known = self.image.partition(partition) is not None
            return None, KafkaError.NOT_LEADER_OR_FOLLOWER if known else KafkaError.UNKNOWN_TOPIC_OR_PARTITION
        error = reading.epoch_error(replica, current_leader_epoch)
        return (replica, error) if error is KafkaError.NONE else (None, error)


_Take: TypeAlias = Callable[[Broker, int, NodeId, Any], None]

_TAKE: Final[Mapping[type[Message], _Take]] = {
    Produce: Broker._produce,
    DeleteRecords: Broker._delete_records,
    ReplicaFetch: Broker._fetch,
    ReplicaFetchResponse: Broker._fetched,
    AlterPartitionResponse: Broker._altered,
    BrokerRegistrationResponse: Broker._registered,
    BrokerHeartbeatResponse: Broker._heard,
    FetchMetadataResponse: Broker._learned,
    ShutDown: Broker._shut_down,
}
