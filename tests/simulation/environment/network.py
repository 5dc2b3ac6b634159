"""The network between nodes: it delays, drops, repeats and reorders, and links are cut in one direction or both."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from rackspan.cluster.core.ids import CONTROLLER, NodeId
from rackspan.cluster.core.messages import AlterPartition, FetchMetadataResponse, Message
from tests.simulation.clients.request import ClientRequest
from tests.simulation.environment.clock import Clock

NetworkMessage: TypeAlias = Message | ClientRequest
Deliver: TypeAlias = Callable[[NodeId, NodeId, NetworkMessage], None]


@dataclass(slots=True)
class Network:
    """`between_ms` and `controller_ms` are (least, greatest) delay; the sets hold what is broken now.

    Sets are counted, since two faults may break the same link and end at different times.
    """

    clock: Clock
    rng: Random
    deliver: Deliver
    between_ms: tuple[int, int]
    controller_ms: tuple[int, int]
    duplicates: float
    cut: dict[tuple[NodeId, NodeId], int] = field(default_factory=dict)
    slow: dict[NodeId, int] = field(default_factory=dict)
    lagging: dict[NodeId, int] = field(default_factory=dict)
    stale: dict[NodeId, int] = field(default_factory=dict)
    isr_delayed: dict[NodeId, int] = field(default_factory=dict)

    def send(self, source: NodeId, destination: NodeId, message: NetworkMessage) -> None:
        if self.cut.get((source, destination)) or self._kept_from_image(destination, message):
            return
        self._deliver_later(source, destination, message)
        if self.rng.random() < self.duplicates:
            self._deliver_later(source, destination, message)

    def send_once(self, source: NodeId, destination: NodeId, message: NetworkMessage) -> None:
        """Over a connection, which never repeats."""
        if not self.cut.get((source, destination)):
            self._deliver_later(source, destination, message)

    def call_later(self, source: NodeId, destination: NodeId, callback: Callable[[], None]) -> None:
        """A response over a link between brokers: it may be lost, never repeated."""
        if not self.cut.get((source, destination)):
            self.clock.after(self._delay(source, destination, None), callback)

    def _deliver_later(self, source: NodeId, destination: NodeId, message: NetworkMessage) -> None:
        self.clock.after(self._delay(source, destination, message), lambda: self.deliver(source, destination, message))

    def _delay(self, source: NodeId, destination: NodeId, message: NetworkMessage | None) -> int:
        span = self.controller_ms if CONTROLLER in (source, destination) else self.between_ms
        delay = self.rng.randint(*span)
        if self.slow.get(source) or self.slow.get(destination):
            delay += self.rng.randint(50, 400)
        if self.lagging and min(source, destination) >= 0 and self._lags(source, destination):
            delay += self.rng.randint(20, 150)
        if self.isr_delayed.get(source) and isinstance(message, AlterPartition):
            delay += self.rng.randint(100, 500)
        return delay

    def _lags(self, source: NodeId, destination: NodeId) -> bool:
        return bool(self.lagging.get(source) or self.lagging.get(destination))

    def _kept_from_image(self, destination: NodeId, message: NetworkMessage) -> bool:
        return bool(self.stale.get(destination)) and isinstance(message, FetchMetadataResponse)

    def heal(self) -> None:
        self.between_ms = self.controller_ms = (1, 2)
        self.duplicates = 0.0
        for broken in (self.cut, self.slow, self.lagging, self.stale, self.isr_delayed):
            broken.clear()
