"""The controller's machine, outside all racks. It is never lost; its links may be."""

import logging
from collections.abc import Iterable
from typing import Final

from rackspan.cluster.context.requests import PendingResponses
from rackspan.cluster.core import messages
from rackspan.cluster.core.controller import Controller
from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.messages import Effect, Message
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.host.clock import Clock
from rackspan.cluster.host.network import Network
from rackspan.model.ids import BrokerId

log = logging.getLogger(__name__)

CONTROLLER_ID: Final = BrokerId(3000)
"""What clients are told it is called; Kafka's own examples number controllers from here."""


class ControllerHost:
    """Feeds the core's controller and carries out what it answers."""

    def __init__(
        self, controller: Controller, clock: Clock, network: Network, pending_responses: PendingResponses
    ) -> None:
        self._controller = controller
        self._clock = clock
        self._network = network
        self._pending_responses = pending_responses
        network.attach(CONTROLLER, self.receive)

    @property
    def image(self) -> MetadataImage:
        """What is committed; brokers may not have heard of all of it."""
        return self._controller.image

    def receive(self, source: NodeId, message: Message) -> None:
        self._carry_out(self._controller.on_message(self._clock.now(), source, message))

    def open(self) -> None:
        """Before the first request. Errors: UsageError, ReplicaPlacementException."""
        self._controller.open()

    def close(self) -> None:
        self._controller.close()

    def tick(self, now: int) -> None:
        self._carry_out(self._controller.on_tick(now))

    def fence(self, broker: BrokerId) -> None:
        """At once, as if its session had run out."""
        self._carry_out(self._controller.fence(self._clock.now(), broker))

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case messages.Send(destination, message):
                    self._network.send(CONTROLLER, destination, message)
                case messages.Respond(correlation_id, result):
                    self._pending_responses.resolve(correlation_id, result)
                case messages.Warned(line):
                    log.warning("controller: %s", line)
