"""A broker's session with the controller: registration, heartbeats, controlled shutdown."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
)
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId


@dataclass(frozen=True, slots=True)
class BrokerIdentity:
    """A broker's registration data for one process. `incarnation` rises with every start."""

    id: BrokerId
    incarnation: int
    rack: RackId | None = None
    host: str = "127.0.0.1"
    port: int = 0


class Phase(Enum):
    """The phases of a broker's process."""

    REGISTERING = auto()
    RUNNING = auto()
    SHUTTING_DOWN = auto()
    STOPPED = auto()
    REFUSED = auto()
    """The controller refused the registration: its configs or its id are wrong."""


@dataclass(slots=True)
class Lifecycle:
    """The phase, the broker epoch, and when to send the next registration or heartbeat. Times in ms."""

    identity: BrokerIdentity
    previous_broker_epoch: int
    phase: Phase = Phase.REGISTERING
    broker_epoch: int = NO_EPOCH
    fenced: bool = True
    next_due: int = 0

    def due(
        self, now: int, metadata_offset: int, settings: ClusterSettings
    ) -> Iterator[BrokerRegistration | BrokerHeartbeat]:
        """The messages to send to the controller now."""
        if now < self.next_due or self.phase in (Phase.STOPPED, Phase.REFUSED):
            return
        if self.phase is Phase.REGISTERING:
            self.next_due = now + settings.registration_retry_ms
            yield self._registration()
        else:
            self.next_due = now + settings.heartbeat_interval_ms
            yield self.heartbeat(metadata_offset)

    def _registration(self) -> BrokerRegistration:
        identity = self.identity
        return BrokerRegistration(
            *(identity.id, identity.incarnation, identity.rack, identity.host, identity.port),
            self.previous_broker_epoch,
        )

    def heartbeat(self, metadata_offset: int) -> BrokerHeartbeat:
        leaving = self.phase is Phase.SHUTTING_DOWN
        return BrokerHeartbeat(self.identity.id, self.broker_epoch, metadata_offset, want_shut_down=leaving)

    def registered(self, response: BrokerRegistrationResponse) -> bool:
        """Take the response to the registration. Whether the broker is registered by it."""
        if self.phase is not Phase.REGISTERING or response.incarnation != self.identity.incarnation:
            return False
        if response.error is not ErrorCode.NONE:
            self.phase = Phase.REFUSED
            return False
        self.phase, self.broker_epoch, self.next_due = Phase.RUNNING, response.broker_epoch, 0
        return True

    def heartbeat_response(self, response: BrokerHeartbeatResponse) -> bool:
        """Take the response to a heartbeat. Whether the broker may end now."""
        if response.broker_epoch != self.broker_epoch:
            return False
        if response.error is ErrorCode.STALE_BROKER_EPOCH:
            # It was unregistered, or a newer process has registered: register again.
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
