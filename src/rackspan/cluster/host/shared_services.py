"""What all brokers of one cluster share."""

from collections.abc import Callable
from dataclasses import dataclass

from rackspan.cluster.context import PendingResponses, RecordTraffic
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.clock import Clock
from rackspan.cluster.host.network import Network


@dataclass(frozen=True, slots=True)
class SharedServices:
    """The services that the brokers of one cluster share. `committed_offset` reads how far the controller has committed metadata."""

    cluster_id: str
    settings: ClusterSettings
    clock: Clock
    network: Network
    pending_responses: PendingResponses
    traffic: RecordTraffic
    committed_offset: Callable[[], int]
