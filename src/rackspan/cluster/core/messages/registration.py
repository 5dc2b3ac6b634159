"""Broker and controller: registration, heartbeats, metadata."""

from dataclasses import dataclass

from rackspan.cluster.core.metadata import MetadataImage, Record
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker started. `previous_broker_epoch` is the epoch in its clean-shutdown mark, NO_EPOCH without one (KIP-966)."""

    broker: BrokerId
    incarnation: int
    rack: RackId | None
    host: str
    port: int
    previous_broker_epoch: int


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse:
    """The broker's new epoch, or why it was refused."""

    incarnation: int
    error: ErrorCode
    broker_epoch: int
    message: str | None = None


@dataclass(frozen=True, slots=True)
class BrokerHeartbeat:
    """Keeps the session alive. `metadata_offset` is the offset up to which the broker has applied the metadata."""

    broker: BrokerId
    broker_epoch: int
    metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse:
    """Whether the broker is fenced, and whether it may end."""

    broker_epoch: int
    error: ErrorCode
    fenced: bool = False
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class FetchMetadata:
    """A long poll for metadata records from `offset` on."""

    broker: BrokerId
    incarnation: int
    offset: int


@dataclass(frozen=True, slots=True)
class FetchMetadataResponse:
    """Records from `offset` on, or, to a broker too far behind, the whole image instead."""

    incarnation: int
    offset: int
    records: tuple[Record, ...] = ()
    image: MetadataImage | None = None
