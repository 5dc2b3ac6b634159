"""The effects of handling a message or a clock tick: what a broker, the controller or a coordinator causes."""

from dataclasses import dataclass
from typing import TypeAlias

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.ids import CorrelationId, NodeId
from rackspan.cluster.core.messages.admin import AdminRequest
from rackspan.cluster.core.messages.client import DeleteRecords, Produce, ShutDown, VerifyTransaction
from rackspan.cluster.core.messages.isr import AlterPartition, AlterPartitionResponse
from rackspan.cluster.core.messages.registration import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    FetchMetadata,
    FetchMetadataResponse,
)
from rackspan.cluster.core.messages.replica_fetch import ReplicaFetch, ReplicaFetchResponse
from rackspan.model.ids import BrokerId, TopicPartition

ToController: TypeAlias = BrokerRegistration | BrokerHeartbeat | FetchMetadata | AlterPartition
ToBroker: TypeAlias = (
    BrokerRegistrationResponse
    | BrokerHeartbeatResponse
    | FetchMetadataResponse
    | AlterPartitionResponse
    | ReplicaFetch
    | ReplicaFetchResponse
    | Produce
    | VerifyTransaction
    | DeleteRecords
    | ShutDown
)
Message: TypeAlias = ToController | AdminRequest | ToBroker


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message to a broker or the controller."""

    destination: NodeId
    message: Message


@dataclass(frozen=True, slots=True)
class Respond:
    """Respond to a client's request; the type of `response` belongs to the request's."""

    correlation_id: CorrelationId
    response: object


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send a request to a broker, perhaps this one, and pass its response on with `request_id`.

    The correlation id of `message` is 0: the executor sets one that is unique in the cluster. A response after
    `timeout_ms` is not used any more.
    """

    destination: BrokerId
    message: Produce | VerifyTransaction
    request_id: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class WatermarkMoved:
    """A replica of this partition on this broker has more to read: high watermark, last stable offset or records.

    Fetches parked here should read again.
    """

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class LeadershipChanged:
    """This broker began or ceased to lead the partition. Coordinators load or unload; parked fetches should read again."""

    partition: TopicPartition
    leads: bool
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A transaction's marker in this partition, led here, is committed."""

    partition: TopicPartition
    producer_id: int
    marker: Marker


@dataclass(frozen=True, slots=True)
class MetadataUpdated:
    """The broker has a new metadata image; responses encoded from the old one are stale."""

    offset: int


@dataclass(frozen=True, slots=True)
class Stopped:
    """The broker has given up all it led and written its clean-shutdown mark: it may end."""


@dataclass(frozen=True, slots=True)
class StartRefused:
    """The controller has refused to register the broker: its process ends."""

    reason: str


@dataclass(frozen=True, slots=True)
class Warned:
    """One line for the log."""

    message: str


Effect: TypeAlias = (
    Send
    | SendRequest
    | Respond
    | WatermarkMoved
    | LeadershipChanged
    | TransactionEnded
    | MetadataUpdated
    | Stopped
    | StartRefused
    | Warned
)
