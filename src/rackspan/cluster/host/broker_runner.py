"""One run of a broker: passes messages, ticks and requests to the core's BrokerProcess, and executes its effects.

A process begins with a start and ends with a kill or a shutdown. What outlives it, the disk and the port, is in broker_host.py.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from rackspan.cluster.context import (
    CoordinatorRequest,
    DelayedFetches,
    MetadataCache,
    MetadataUpdates,
    ProducerIds,
    Requests,
)
from rackspan.cluster.core import messages
from rackspan.cluster.core.admin_messages import AllocateProducerIds
from rackspan.cluster.core.broker import BrokerCore, BrokerIdentity
from rackspan.cluster.core.configs import ConfigSource, ConfigValue
from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.groups import GroupCoordinator, GroupSettings
from rackspan.cluster.core.ids import CLIENT, CorrelationId, NodeId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import Effect, Message
from rackspan.cluster.core.metadata import BrokerImage, MetadataImage
from rackspan.cluster.core.process import BrokerProcess
from rackspan.cluster.core.transactions import TransactionCoordinator, TransactionSettings
from rackspan.cluster.handlers.common import partition_count, record_body
from rackspan.cluster.host.shared_services import SharedServices
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition

log = logging.getLogger(__name__)

_PRODUCER_IDS_TIMEOUT_MS: Final = 5_000


class BrokerRunner:
    """Implements BrokerContext for the request handlers. `on_stopped` is called when a shutdown is complete,
    `on_refused` with the reason if the broker may not start.

    `rack` is the broker's own; `identity.rack` is the one it registers, which old protocol versions leave out.
    """

    def __init__(
        self,
        shared: SharedServices,
        identity: BrokerIdentity,
        rack: RackId | None,
        disk: Disk,
        on_stopped: Callable[[], None],
        on_refused: Callable[[str], None],
    ) -> None:
        self.id = identity.id
        self.cluster_id = shared.cluster_id
        self.settings = shared.settings
        self.logs: Mapping[TopicPartition, PartitionLog] = disk.logs
        self.traffic = shared.traffic
        self.paused = False
        self._shared = shared
        self._identity = identity
        self._rack = rack
        self._on_stopped = on_stopped
        self._on_refused = on_refused
        self._stopped = False
        self._held: deque[Callable[[], None]] = deque()
        configs = shared.settings.extra_configs
        rng = Random(f"{shared.cluster_id}/{identity.id}/{identity.incarnation}")
        self.groups = GroupCoordinator(group_settings(configs), rng)
        self.transactions = TransactionCoordinator(transaction_settings(configs))
        core = BrokerCore(identity, shared.settings, disk, record_body=record_body)
        self._process = BrokerProcess(core, self.groups, self.transactions)
        self.requests = Requests(
            identity.id, shared.pending_responses, partial(self.receive, CLIENT), self._coordinate, shared.network.send
        )
        self.producer_ids = ProducerIds(
            lambda: self.requests.controller_response(
                lambda correlation_id: AllocateProducerIds(correlation_id, identity.id),
                _PRODUCER_IDS_TIMEOUT_MS,
                None,
            )
        )
        self.metadata_updates = MetadataUpdates(lambda: self.image, shared.committed_offset)
        self.metadata_cache = MetadataCache()
        self.delayed_fetches = DelayedFetches()

    # For request handlers; see BrokerContext.

    @property
    def now(self) -> int:
        return self._shared.clock.now()

    @property
    def core(self) -> BrokerCore:
        if self._stopped:
            raise asyncio.CancelledError(f"broker {self.id} is not running")
        return self._process.broker

    @property
    def image(self) -> MetadataImage:
        return self.core.image

    def code(self, error: ErrorCode) -> int:
        return error if self.settings.extended_error_codes else error.for_every_client

    def endpoints(self, brokers: Iterable[BrokerId]) -> list[BrokerImage]:
        registered = self.image.brokers
        return [registered[broker] for broker in sorted(brokers) if broker in registered]

    def own_config(self, value: ConfigValue) -> ConfigValue:
        own_values = {
            "broker.rack": self._rack,
            "advertised.listeners": f"PLAINTEXT://{self._identity.host}:{self._identity.port}",
        }
        own = own_values.get(value.key)
        if own is None:
            return value
        return replace(value, value=own, source=ConfigSource.STATIC, synonyms=((value.key, own, ConfigSource.STATIC),))

    # Messages and time.

    def receive(self, source: NodeId, message: Message) -> None:
        """Pass one message to the process."""
        self._handle(lambda process, now: process.on_message(now, source, message))

    def _coordinate(self, correlation_id: CorrelationId, request: CoordinatorRequest) -> None:
        self._handle(lambda process, now: process.on_request(now, correlation_id, request))

    def _handle(self, event: Callable[[BrokerProcess, int], Iterable[Effect]]) -> None:
        """Let the process handle an event. While paused, events are held back."""
        if self._stopped:
            return
        if self.paused:
            self._held.append(partial(self._handle, event))
        else:
            self._execute(event(self._process, self.now))

    def tick(self, now: int) -> None:
        if self._stopped or self.paused:
            return
        self._execute(self._process.on_tick(now))

    def resume(self) -> None:
        """Handle the events that were held back, in order."""
        self.paused = False
        while self._held and not self.paused:
            self._held.popleft()()

    def stop(self) -> None:
        """End at once. Requests that wait for a response never get one."""
        self._stopped = True
        self._held.clear()
        self.requests.drop_all()

    def _send_request(self, effect: messages.SendRequest) -> None:
        correlation_id = self.requests.register(
            lambda response: self._handle(lambda process, now: process.on_response(now, effect.request_id, response))
        )
        # The process counts the time itself; this keeps requests without a response from piling up.
        drop = partial(self._shared.pending_responses.drop, correlation_id)
        asyncio.get_running_loop().call_later(effect.timeout_ms / 1000, drop)
        message = replace(effect.message, correlation_id=correlation_id)
        self._shared.network.send(self.id, effect.destination, message)

    def _execute(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case messages.Send(destination, message):
                    self._shared.network.send(self.id, destination, message)
                case messages.SendRequest():
                    self._send_request(effect)
                case messages.Respond(correlation_id, response):
                    self._shared.pending_responses.resolve(correlation_id, response)
                case messages.WatermarkMoved(partition=partition):
                    self.delayed_fetches.wake(partition)
                case messages.LeadershipChanged():
                    self.delayed_fetches.wake(effect.partition)
                case messages.MetadataUpdated():
                    self._update_metadata()
                case messages.Stopped():
                    self._on_stopped()
                case messages.StartRefused(reason):
                    log.error("broker %d refuses to start: %s", self.id, reason)
                    self._on_refused(reason)
                case messages.Warned(line):
                    log.warning("broker %d: %s", self.id, line)

    def _update_metadata(self) -> None:
        self.metadata_cache.drop_responses()
        self.metadata_updates.notify()


_GROUP_CONFIGS: Final = (
    "group_initial_rebalance_delay_ms",
    "group_min_session_timeout_ms",
    "group_max_session_timeout_ms",
    "group_max_size",
    "offset_metadata_max_bytes",
)


def group_settings(configs: Mapping[str, str]) -> GroupSettings:
    """For the group coordinator; GroupSettings has the defaults."""
    configured = {
        name: int(configs[name.replace("_", ".")]) for name in _GROUP_CONFIGS if name.replace("_", ".") in configs
    }
    return GroupSettings(**configured, offsets_topic_num_partitions=partition_count(OFFSETS_TOPIC, configs))


def transaction_settings(configs: Mapping[str, str]) -> TransactionSettings:
    """For the transaction coordinator; TransactionSettings has the defaults."""
    partitions = partition_count(TRANSACTIONS_TOPIC, configs)
    timeout_ms_max = configs.get("transaction.max.timeout.ms")
    if timeout_ms_max is None:
        return TransactionSettings(transaction_state_log_num_partitions=partitions)
    return TransactionSettings(int(timeout_ms_max), partitions)
