"""What all brokers of a cluster share."""

from collections.abc import Callable
from dataclasses import dataclass

from rackspan.cluster.context.record_traffic import RecordTraffic
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.clock import Clock
from rackspan.cluster.host.network import Network
from rackspan.cluster.host.pending_responses import PendingResponses


@dataclass(frozen=True, slots=True)
class SharedServices:
    """What all hosts of a cluster share."""

    cluster_id: str
    settings: ClusterSettings
    clock: Clock
    network: Network
    pending_responses: PendingResponses
    traffic: RecordTraffic
    committed_offset: Callable[[], int]
    """How far the controller's metadata goes."""
