"""One broker's machine: its listener, its disk, and the broker's process while one runs.

The core's broker decides; the host feeds it messages, ticks and requests and carries out what it answers. A process ends
with a kill and is a new one after a restart; the disk and the port stay.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from random import Random

from rackspan.cluster.context.delayed_fetches import DelayedFetches
from rackspan.cluster.context.metadata_cache import MetadataCache
from rackspan.cluster.context.producer_ids import ProducerIds
from rackspan.cluster.core import messages
from rackspan.cluster.core.broker import Broker, BrokerIdentity
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.ids import CLIENT, NodeId, TopicId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import Effect, Message
from rackspan.cluster.core.protocol_version import LATEST, PROTOCOL_CONFIG, registration_version
from rackspan.cluster.core.registration_json import Registration
from rackspan.cluster.core.registration_json import read as read_registration
from rackspan.cluster.core.registration_json import write as write_registration
from rackspan.cluster.core.transactions import TransactionCoordinator
from rackspan.cluster.handlers import HANDLERS, refuse_version
from rackspan.cluster.handlers.common.internal_topics import group_settings, transaction_settings
from rackspan.cluster.handlers.common.record_validation import RecordTerms
from rackspan.cluster.host.coordinator_runner import OFFSETS_TOPIC, CoordinatorRunner, TransactionCoordinatorRunner
from rackspan.cluster.host.facts import Facts
from rackspan.cluster.host.shared_services import SharedServices
from rackspan.cluster.net.connection import Connection
from rackspan.cluster.net.dispatch import dispatch
from rackspan.cluster.net.listener import Listener
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from rackspan.wire.framing import Request

log = logging.getLogger(__name__)


class BrokerHost(Facts):
    """See the module."""

    def __init__(self, shared: SharedServices, broker: BrokerId, rack: RackId | None) -> None:
        super().__init__(shared, broker, rack, Listener(lambda: Connection(self)))
        self.protocol_version = shared.settings.extra_configs.get(PROTOCOL_CONFIG, LATEST)
        self.disk = Disk()
        self.connections: set[Connection] = set()
        self.frozen = False
        self.delayed_fetches = DelayedFetches()
        self.metadata_cache = MetadataCache()
        self.record_terms: dict[str, RecordTerms] = {}
        self.producer_ids = ProducerIds(self)
        self.slow_disk_ms = 0
        self._incarnation = 0
        self._held: deque[tuple[NodeId, Message]] = deque()
        self._begin_to_coordinate()

    @property
    def logs(self) -> dict[TopicPartition, PartitionLog]:
        """What lies on its disk."""
        return self.disk.logs

    # Its process.

    @property
    def running(self) -> bool:
        return self._broker is not None

    async def start(self) -> None:
        """A new process, which registers by itself."""
        await self.listener.open()
        self._incarnation += 1
        identity = BrokerIdentity(self.id, self._incarnation, self._registered_rack(), *self.listener.address)
        self._broker = Broker(identity, self.settings, self.disk)
        self._begin_to_coordinate()
        self._shared.traffic.racks[self.id] = identity.rack
        self._shared.network.attach(self.id, self.receive)
        self.tick(self._shared.clock.now())

    def _registered_rack(self) -> RackId | None:
        """What its protocol version lets it tell: a registration of version 2 has no room for a rack (KIP-36)."""
        host, port = self.listener.address
        said = Registration(host, port, (f"PLAINTEXT://{host}:{port}",), self.rack)
        return read_registration(write_registration(said, registration_version(self.protocol_version))).rack

    def shut_down(self) -> None:
        """Begin to end in order; the process ends when the controller has let it go."""
        self._act(CLIENT, messages.ShutDown())

    def kill(self, *, power_loss: bool = False) -> None:
        """End the process at once. Whoever is connected is cut off; whoever comes is refused.

        A killed process leaves what it has written to the machine, and so its logs whole; a machine without power does not.
        """
        if self._broker is None:
            return
        if not power_loss:
            self.disk.clean_shutdown_epoch = self._broker.broker_epoch
        self._shared.network.detach(self.id)
        self._broker = None
        self.frozen = False
        self.group_requests.stop()
        self.transaction_requests.stop()
        self._held.clear()
        self._forget_questions()
        self.metadata_cache.clear()
        self.record_terms.clear()
        self.listener.close()
        for connection in tuple(self.connections):
            connection.abort()

    def freeze(self) -> None:
        """As SIGSTOP: connections are accepted, nothing is answered, messages wait."""
        self.frozen = True
        self._balance()

    def thaw(self) -> None:
        self.frozen = False
        while self._held and not self.frozen:
            self._act(*self._held.popleft())
        self._balance()

    def _balance(self) -> None:
        for connection in tuple(self.connections):
            connection.balance()

    def _begin_to_coordinate(self) -> None:
        self._topics_known: Mapping[TopicId, str] = {}
        rng = Random(f"{self.cluster_id}/{self.id}/{self._incarnation}")
        self.groups = GroupCoordinator(group_settings(self.settings.extra_configs), rng)
        self.group_requests = CoordinatorRunner(self, OFFSETS_TOPIC, self.groups)
        self.transactions = TransactionCoordinator(transaction_settings(self.settings.extra_configs))
        self.transaction_requests = TransactionCoordinatorRunner(self, self.transactions)

    # Its doors.

    def receive(self, source: NodeId, message: Message) -> None:
        """From another node."""
        if self.slow_disk_ms and isinstance(message, messages.ReplicaFetchResponse):
            asyncio.get_running_loop().call_later(self.slow_disk_ms / 1000, self._act, source, message)
        else:
            self._act(source, message)

    def tick(self, now: int) -> None:
        if self._broker is not None and not self.frozen:
            self._carry_out(self._broker.on_tick(now))
            self.group_requests.tick(now)
            self.transaction_requests.tick(now)

    def serve(self, request: Request, client_host: str) -> list[bytes] | Awaitable[list[bytes] | None] | None:
        """From a client; see dispatch."""
        return dispatch(HANDLERS, self, request, client_host, refuse_version)

    def _act(self, source: NodeId, message: Message) -> None:
        if self.frozen:
            self._held.append((source, message))
        elif isinstance(message, messages.VerifyTransaction):
            self.transaction_requests.verify(
                message, partial(self._shared.pending_responses.answer, message.correlation_id)
            )
        elif self._broker is not None:
            self._carry_out(self._broker.on_message(self._shared.clock.now(), source, self._overheard(message)))

    def _overheard(self, message: Message) -> Message:
        """The end of a transaction in `__consumer_offsets` is told to the groups there once it is written."""
        if not isinstance(message, messages.Produce) or message.partition.topic != OFFSETS_TOPIC:
            return message
        batch = message.batches[0]
        if batch.marker is None:
            return message
        marker, number, asked = batch.marker, message.partition.partition, message.correlation_id

        def written(result: messages.ProduceResponse) -> None:
            if result.error is KafkaError.NONE:
                self.groups.on_marker(number, batch.producer_id, marker)
            self._shared.pending_responses.answer(asked, result)

        correlation_id = self._shared.pending_responses.draw(written)
        self._open_correlation_ids.add(correlation_id)
        return replace(message, correlation_id=correlation_id)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case messages.Send(destination, message):
                    self._shared.network.send(self.id, destination, message)
                case messages.Respond(correlation_id, result):
                    self._open_correlation_ids.discard(correlation_id)
                    self._shared.pending_responses.answer(correlation_id, result)
                case messages.WatermarkMoved(partition=partition):
                    self.delayed_fetches.news(partition)
                case messages.LeadershipChanged():
                    self.delayed_fetches.news(effect.partition)
                    self.group_requests.leadership(effect)
                    self.transaction_requests.leadership(effect)
                case messages.MetadataUpdated():
                    self._new_image()
                case messages.Stopped():
                    self.kill()
                case messages.Warned(line):
                    log.warning("broker %d: %s", self.id, line)

    def _new_image(self) -> None:
        self.metadata_cache.moved()
        self.record_terms.clear()
        self._tell_image_moved()
        self._forget_deleted_topics()

    def _forget_deleted_topics(self) -> None:
        """What groups have committed goes with its topic. Told apart by id: one of the same name may be there already."""
        known, self._topics_known = self._topics_known, self.image.topic_names
        gone = [known[topic_id] for topic_id in known.keys() - self._topics_known.keys()]
        if gone:
            self.group_requests.carry_out(self.groups.on_topics_deleted(self.now, gone))
