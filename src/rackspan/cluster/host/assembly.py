"""Assembly: one cluster of a controller, broker hosts, the network between them, and a clock that ticks for all.

Everything here runs in the cluster's own event loop. api/embedded.py is for callers in other threads.
"""

import asyncio
import logging
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Final

from rackspan.cluster.context import PendingResponses, RecordTraffic
from rackspan.cluster.core import messages
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.controller.context import Locate
from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.messages import Effect, Message
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.broker_host import BrokerHost
from rackspan.cluster.host.network import Network
from rackspan.cluster.host.shared_services import Clock, SharedServices
from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, RackId

log = logging.getLogger(__name__)


class ControllerHost:
    """Passes messages and ticks to the core's controller and executes its effects. In no rack, never stopped; its links may be cut."""

    def __init__(
        self, controller: ControllerCore, clock: Clock, network: Network, pending_responses: PendingResponses
    ) -> None:
        self._controller = controller
        self._clock = clock
        self._network = network
        self._pending_responses = pending_responses
        network.attach(CONTROLLER, self.receive)

    @property
    def image(self) -> MetadataImage:
        """The committed metadata. Brokers may have an older offset of it."""
        return self._controller.image

    def receive(self, source: NodeId, message: Message) -> None:
        self._execute(self._controller.on_message(self._clock.now(), source, message))

    def open(self) -> None:
        """Before the first request. Errors: UsageError, ReplicaPlacementException."""
        self._controller.open()

    def close(self) -> None:
        self._controller.close()

    def tick(self, now: int) -> None:
        self._execute(self._controller.on_tick(now))

    def fence(self, broker: BrokerId) -> None:
        """At once, as if its session had timed out."""
        self._execute(self._controller.fence(self._clock.now(), broker))

    def _execute(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case messages.Send(destination, message):
                    self._network.send(CONTROLLER, destination, message)
                case messages.Respond(correlation_id, response):
                    self._pending_responses.resolve(correlation_id, response)
                case messages.Warned(line):
                    log.warning("controller: %s", line)


_POLL_SECONDS: Final = 0.002


class Assembly:
    """Created in the event loop that it runs in."""

    def __init__(self, rack_of: Mapping[BrokerId, RackId | None], settings: ClusterSettings, rng: Random) -> None:
        loop = asyncio.get_running_loop()
        self.settings = settings
        self.clock = Clock()
        self.traffic = RecordTraffic()
        self.network = Network(loop, self.traffic.add_delivered)
        pending_responses = PendingResponses()
        self.cluster_id = _cluster_id(rng)
        self.controller = ControllerHost(
            ControllerCore(settings, rng, locate=configured_locator(settings, self.cluster_id)),
            self.clock,
            self.network,
            pending_responses,
        )
        shared = SharedServices(
            self.cluster_id,
            settings,
            self.clock,
            self.network,
            pending_responses,
            self.traffic,
            lambda: self.controller.image.offset,
        )
        self.hosts = {broker: BrokerHost(shared, broker, rack) for broker, rack in rack_of.items()}
        self._next_tick: asyncio.TimerHandle | None = None

    @property
    def image(self) -> MetadataImage:
        """The controller's metadata."""
        return self.controller.image

    async def start(self, seconds: float) -> None:
        """Returns when every broker may lead.

        Errors: TimeoutError; UsageError and ReplicaPlacementException for a placer that cannot be loaded.
        """
        self.controller.open()
        self._tick()
        await self.start_brokers(self.hosts, seconds)

    async def start_brokers(self, brokers: Iterable[BrokerId], seconds: float) -> None:
        """Start those that are not running. Returns when the controller has unfenced them. Errors: TimeoutError, UsageError."""
        started = [broker for broker in brokers if not self.hosts[broker].running]
        for broker in started:
            await self.hosts[broker].start()
        await self.wait_for(lambda: all(self._has_started(broker) for broker in started), seconds)

    def _has_started(self, broker: BrokerId) -> bool:
        """Whether the broker's newest process may lead. Errors: UsageError if it may not start."""
        host = self.hosts[broker]
        if host.start_error is not None:
            raise UsageError(f"broker {broker} refuses to start: {host.start_error}")
        registered = self.image.brokers.get(broker)
        return registered is not None and registered.incarnation == host.incarnation and not registered.fenced

    def is_active(self, broker: BrokerId) -> bool:
        """Registered, and not fenced."""
        registered = self.image.brokers.get(broker)
        return registered is not None and not registered.fenced

    async def wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        """Errors: TimeoutError."""
        async with asyncio.timeout(seconds):
            while not condition():
                await asyncio.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        if self._next_tick is not None:
            self._next_tick.cancel()
        for host in self.hosts.values():
            host.kill()
            host.server.release()
        self.controller.close()

    def _tick(self) -> None:
        try:
            now = self.clock.now()
            self.controller.tick(now)
            for host in self.hosts.values():
                host.tick(now)
        finally:
            # asyncio logs the error of one tick; without the next one no session and no transaction would ever time out.
            interval = self.settings.tick_interval_ms / 1000
            self._next_tick = asyncio.get_running_loop().call_later(interval, self._tick)


def _cluster_id(rng: Random) -> str:
    """A cluster id as Kafka generates them: 16 random bytes in base64. None begins with '-', which command lines parse as an option."""
    while True:
        cluster_id = urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")
        if not cluster_id.startswith("-"):
            return cluster_id


LOCATOR_CLASS: Final = "rack.locator.class"
LOCATOR_PROPERTIES: Final = "rack.locator.properties"


def configured_locator(settings: ClusterSettings, cluster_id: str) -> Locate | None:
    """`rack.locator.class` (KIP-36, draft), called for every new topic; None where none is configured. Errors: UsageError, RackLocatorFailed.

    Its racks count for placement only: responses to clients have the racks that the brokers registered.
    """
    name = settings.extra_configs.get(LOCATOR_CLASS)
    if name is None:
        return None
    from rackspan.sources.rack_locator import ClusterView, parse_properties, rack_info
    from rackspan.sources.rack_locators import make

    locator = make(name, parse_properties(settings.extra_configs.get(LOCATOR_PROPERTIES, "")))

    def locate(brokers: Sequence[Broker]) -> Mapping[BrokerId, RackId]:
        return rack_info(locator, ClusterView(tuple(brokers), cluster_id))

    return locate
