"""BrokerContext: what a request handler may use of the broker that received the request."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from rackspan.cluster.context.delayed_fetches import DelayedFetches
from rackspan.cluster.context.metadata_cache import MetadataCache
from rackspan.cluster.context.metadata_updates import MetadataUpdates
from rackspan.cluster.context.producer_ids import ProducerIds
from rackspan.cluster.context.record_traffic import RecordTraffic
from rackspan.cluster.context.requests import Requests
from rackspan.cluster.core.broker import BrokerCore
from rackspan.cluster.core.configs import ConfigValue
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.metadata import BrokerImage, MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.core.transactions import TransactionCoordinator
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition

CONTROLLER_ID: Final = BrokerId(3000)
"""The controller's id in responses to clients. Kafka's own examples number controllers from 3000."""


class BrokerContext(Protocol):
    """One running broker, as its request handlers use it.

    Reading from a broker that has stopped raises CancelledError: its connections are closed, and no client waits.
    """

    # Identity, settings, time.

    @property
    def id(self) -> BrokerId: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def settings(self) -> ClusterSettings: ...
    @property
    def now(self) -> int:
        """Milliseconds since 1970."""

    # Metadata.

    @property
    def image(self) -> MetadataImage:
        """The cluster metadata as this broker has it."""

    @property
    def metadata_updates(self) -> MetadataUpdates: ...
    @property
    def metadata_cache(self) -> MetadataCache: ...
    def endpoints(self, brokers: Iterable[BrokerId]) -> list[BrokerImage]:
        """The registered ones of `brokers`, to which a response sends its client."""

    def own_config(self, value: ConfigValue) -> ConfigValue:
        """A broker config, with the value that only this broker has: its ids, its rack, its listener."""

    # Replicas.

    @property
    def core(self) -> BrokerCore:
        """The core's broker, for reads that need no message."""

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]: ...
    @property
    def delayed_fetches(self) -> DelayedFetches: ...

    # Requests and coordinators.

    @property
    def requests(self) -> Requests: ...
    @property
    def groups(self) -> GroupCoordinator: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def producer_ids(self) -> ProducerIds: ...

    # What is counted, and how errors are encoded.

    @property
    def traffic(self) -> RecordTraffic: ...
    def code(self, error: ErrorCode) -> int:
        """The error code for clients: errors that only this cluster has become Kafka's, unless extended.error.codes is set."""
