"""A broker's life with the controller: it registers, keeps its session, and asks before it shuts down."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
)
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId, RackId


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """Who a broker is for the life of one process. `incarnation` rises with every start; `configs` are its own static ones."""

    id: BrokerId
    incarnation: int
    rack: RackId | None = None
    host: str = "127.0.0.1"
    port: int = 0
    configs: Mapping[str, str] = field(default_factory=dict)


class Phase(Enum):
    REGISTERING = "registering"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting-down"
    STOPPED = "stopped"
    REFUSED = "refused"
    """The controller will not have it: its configs or its id are wrong."""


@dataclass(slots=True)
class Lifecycle:
    """Times in ms."""

    identity: BrokerIdentity
    previous_broker_epoch: int
    phase: Phase = Phase.REGISTERING
    broker_epoch: int = NO_EPOCH
    fenced: bool = True
    next_due: int = 0

    def due(
        self, now: int, metadata_offset: int, settings: ClusterSettings
    ) -> Iterator[BrokerRegistration | BrokerHeartbeat]:
        """What is to be said now."""
        if now < self.next_due or self.phase in (Phase.STOPPED, Phase.REFUSED):
            return
        if self.phase is Phase.REGISTERING:
            self.next_due = now + settings.registration_retry_ms
            yield self._registration()
        else:
            self.next_due = now + settings.heartbeat_interval_ms
            yield self.heartbeat(metadata_offset)

    def _registration(self) -> BrokerRegistration:
        one = self.identity
        return BrokerRegistration(
            one.id, one.incarnation, one.rack, one.host, one.port, self.previous_broker_epoch, one.configs
        )

    def heartbeat(self, metadata_offset: int) -> BrokerHeartbeat:
        leaving = self.phase is Phase.SHUTTING_DOWN
        return BrokerHeartbeat(self.identity.id, self.broker_epoch, metadata_offset, want_shut_down=leaving)

    def registered(self, response: BrokerRegistrationResponse) -> bool:
        """Whether the answer is the one awaited, and good."""
        if self.phase is not Phase.REGISTERING or response.incarnation != self.identity.incarnation:
            return False
        if response.error is not KafkaError.NONE:
            self.phase = Phase.REFUSED
            return False
        self.phase, self.broker_epoch, self.next_due = Phase.RUNNING, response.broker_epoch, 0
        return True

    def heard(self, response: BrokerHeartbeatResponse) -> bool:
        """Whether the broker may end now."""
        if response.broker_epoch != self.broker_epoch:
            return False
        if response.error is KafkaError.STALE_BROKER_EPOCH:
            # Unregistered behind its back, or taken for a newer process: it asks for its place again.
            self.phase, self.next_due = Phase.REGISTERING, 0
            return False
        self.fenced = response.fenced
        if not response.should_shut_down or self.phase is not Phase.SHUTTING_DOWN:
            return False
        self.phase = Phase.STOPPED
        return True

    def shut_down(self) -> None:
        if self.phase is Phase.RUNNING:
            self.phase, self.next_due = Phase.SHUTTING_DOWN, 0
