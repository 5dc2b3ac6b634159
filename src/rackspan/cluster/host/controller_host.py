"""Runs the core's controller. It is in no rack and never stops; its links may be cut."""

import logging
from collections.abc import Iterable

from rackspan.cluster.context import PendingResponses
from rackspan.cluster.core import messages
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.messages import Effect, Message
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.host.network import Network
from rackspan.cluster.host.shared_services import Clock
from rackspan.model.ids import BrokerId

log = logging.getLogger(__name__)


class ControllerHost:
    """Passes messages and ticks to the core's Controller and executes its effects."""

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
