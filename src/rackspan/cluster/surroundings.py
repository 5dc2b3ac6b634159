"""What all brokers of a cluster share."""

from collections.abc import Callable
from dataclasses import dataclass

from rackspan.cluster.clock import Clock
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.network import Network
from rackspan.cluster.pending_responses import PendingResponses
from rackspan.cluster.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all hosts of a cluster share."""

    cluster_id: str
    settings: ClusterSettings
    clock: Clock
    network: Network
    pending_responses: PendingResponses
    traffic: Traffic
    committed_offset: Callable[[], int]
    """How far the controller's metadata goes."""
