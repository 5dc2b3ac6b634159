"""One run of a broker: passes messages, ticks and requests to the core's Broker and coordinators, and executes their effects.

A process begins with a start and ends with a kill or a shutdown. What outlives it, the disk and the port, is in broker_host.py.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any, Final

from rackspan.cluster.context.delayed_fetches import DelayedFetches
from rackspan.cluster.context.metadata_cache import MetadataCache
from rackspan.cluster.context.metadata_updates import MetadataUpdates
from rackspan.cluster.context.producer_ids import ProducerIds
from rackspan.cluster.context.record_traffic import RecordTraffic
from rackspan.cluster.context.requests import Requests
from rackspan.cluster.core import messages
from rackspan.cluster.core.broker import Broker, BrokerIdentity
from rackspan.cluster.core.configs import ConfigSource, ConfigValue
from rackspan.cluster.core.coordination import OFFSETS_TOPIC
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.ids import CLIENT, NodeId, TopicId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import Effect, Message
from rackspan.cluster.core.metadata import BrokerImage, MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.core.transactions import TransactionCoordinator
from rackspan.cluster.host.coordinator_runner import GroupCoordinatorRunner, TransactionCoordinatorRunner
from rackspan.cluster.host.coordinator_settings import group_settings, transaction_settings
from rackspan.cluster.host.shared_services import SharedServices
from rackspan.model.ids import BrokerId, RackId, TopicPartition

log = logging.getLogger(__name__)

_PRODUCER_IDS_TIMEOUT_MS: Final = 5_000


class BrokerRunner:
    """Implements BrokerContext for the request handlers. `on_stopped` is called when a shutdown is complete.

    `rack` is the broker's own; `identity.rack` is the one it registers, which old protocol versions leave out.
    """

    def __init__(
        self,
        shared: SharedServices,
        identity: BrokerIdentity,
        rack: RackId | None,
        disk: Disk,
        on_stopped: Callable[[], None],
    ) -> None:
        self.frozen = False
        self._shared = shared
        self._identity = identity
        self._rack = rack
        self._core = Broker(identity, shared.settings, disk)
        self._on_stopped = on_stopped
        self._stopped = False
        self._held: deque[tuple[NodeId, Message]] = deque()
        self._topic_names: Mapping[TopicId, str] = {}
        self.requests = Requests(
            identity.id, shared.pending_responses, partial(self.receive, CLIENT), shared.network.send
        )
        self.metadata_updates = MetadataUpdates(lambda: self.image, shared.committed_offset)
        self.metadata_cache = MetadataCache()
        self.delayed_fetches = DelayedFetches()
        self.record_terms: dict[str, Any] = {}
        self.producer_ids = ProducerIds(
            lambda: self.requests.controller_response(
                lambda correlation_id: messages.AllocateProducerIds(correlation_id, identity.id),
                _PRODUCER_IDS_TIMEOUT_MS,
                None,
            )
        )
        configs = shared.settings.extra_configs
        rng = Random(f"{shared.cluster_id}/{identity.id}/{identity.incarnation}")
        self.groups = GroupCoordinator(group_settings(configs), rng)
        self.group_requests = GroupCoordinatorRunner(self, self.groups)
        self.transactions = TransactionCoordinator(transaction_settings(configs))
        self.transaction_requests = TransactionCoordinatorRunner(self, self.transactions)

    # For request handlers; see BrokerContext.

    @property
    def id(self) -> BrokerId:
        return self._identity.id

    @property
    def cluster_id(self) -> str:
        return self._shared.cluster_id

    @property
    def settings(self) -> ClusterSettings:
        return self._shared.settings

    @property
    def now(self) -> int:
        return self._shared.clock.now()

    @property
    def core(self) -> Broker:
        if self._stopped:
            raise asyncio.CancelledError(f"broker {self.id} is not running")
        return self._core

    @property
    def image(self) -> MetadataImage:
        return self.core.image

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        return self._core.disk.logs

    @property
    def traffic(self) -> RecordTraffic:
        return self._shared.traffic

    def code(self, error: KafkaError) -> int:
        return error if self.settings.extended_error_codes else error.for_every_client

    def endpoints(self, brokers: Iterable[BrokerId]) -> list[BrokerImage]:
        registered = self.image.brokers
        return [registered[broker] for broker in sorted(brokers) if broker in registered]

    def own_config(self, value: ConfigValue) -> ConfigValue:
        own_values = {
            "broker.id": str(self.id),
            "node.id": str(self.id),
            "broker.rack": self._rack,
            "advertised.listeners": f"PLAINTEXT://{self._identity.host}:{self._identity.port}",
        }
        own = own_values.get(value.key)
        if own is None:
            return value
        return replace(value, value=own, source=ConfigSource.STATIC, synonyms=((value.key, own, ConfigSource.STATIC),))

    # Messages and time.

    def receive(self, source: NodeId, message: Message) -> None:
        """Pass one message to the core. While frozen, messages are held back."""
        if self._stopped:
            return
        if self.frozen:
            self._held.append((source, message))
        elif isinstance(message, messages.VerifyTransaction):
            self.transaction_requests.verify(
                message, partial(self._shared.pending_responses.resolve, message.correlation_id)
            )
        else:
            self._execute(self._core.on_message(self.now, source, self._with_marker_callback(message)))

    def tick(self, now: int) -> None:
        if self._stopped or self.frozen:
            return
        self._execute(self._core.on_tick(now))
        self.group_requests.tick(now)
        self.transaction_requests.tick(now)

    def thaw(self) -> None:
        """Take the messages that were held back, in order."""
        self.frozen = False
        while self._held and not self.frozen:
            self.receive(*self._held.popleft())

    def stop(self) -> None:
        """End at once. Requests that wait for a response never get one."""
        self._stopped = True
        self._held.clear()
        self.group_requests.stop()
        self.transaction_requests.stop()
        self.requests.drop_all()

    def _with_marker_callback(self, message: Message) -> Message:
        """Completes a transaction's offsets: once its marker is written to `__consumer_offsets`, the group coordinator gets it."""
        if not isinstance(message, messages.Produce) or message.partition.topic != OFFSETS_TOPIC:
            return message
        batch = message.batches[0]
        if batch.marker is None:
            return message
        marker, number, original = batch.marker, message.partition.partition, message.correlation_id

        def on_written(response: messages.ProduceResponse) -> None:
            if response.error is KafkaError.NONE:
                self.groups.on_marker(number, batch.producer_id, marker)
            self._shared.pending_responses.resolve(original, response)

        return replace(message, correlation_id=self.requests.register(on_written))

    def _execute(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case messages.Send(destination, message):
                    self._shared.network.send(self.id, destination, message)
                case messages.Respond(correlation_id, response):
                    self._shared.pending_responses.resolve(correlation_id, response)
                case messages.WatermarkMoved(partition=partition):
                    self.delayed_fetches.wake(partition)
                case messages.LeadershipChanged():
                    self.delayed_fetches.wake(effect.partition)
                    self.group_requests.change_leadership(effect)
                    self.transaction_requests.change_leadership(effect)
                case messages.MetadataUpdated():
                    self._update_metadata()
                case messages.Stopped():
                    self._on_stopped()
                case messages.Warned(line):
                    log.warning("broker %d: %s", self.id, line)

    def _update_metadata(self) -> None:
        self.metadata_cache.drop_responses()
        self.record_terms.clear()
        self.metadata_updates.notify()
        self._delete_offsets_of_deleted_topics()

    def _delete_offsets_of_deleted_topics(self) -> None:
        """A group's committed offsets are deleted with their topic. By topic id: a new topic may have the same name."""
        before, self._topic_names = self._topic_names, self.image.topic_names
        deleted = [before[topic_id] for topic_id in before.keys() - self._topic_names.keys()]
        if deleted:
            self.group_requests.execute(self.groups.on_topics_deleted(self.now, deleted))
