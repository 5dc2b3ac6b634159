"""What all brokers of one cluster share, the clock among it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rackspan.cluster.context import PendingResponses, RecordTraffic
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.network import Network

_SUSPENDED_NS: Final = 500_000_000
"""Ten ticks. A longer time between two readings means that the process was suspended."""


class Clock:
    """The wall-clock time at its creation, and from then on the machine's monotonic clock.

    On an overloaded machine or in a debugger all brokers and the controller are suspended together. That time is left out,
    so that no broker is fenced, and no replica or member leaves its ISR or group, for it.
    """

    def __init__(
        self, monotonic_ns: Callable[[], int] = time.monotonic_ns, time_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._read_ns = monotonic_ns()
        self._offset_ns = time_ns() - self._read_ns

    def now(self) -> int:
        read_ns = self._monotonic_ns()
        self._offset_ns -= max(0, read_ns - self._read_ns - _SUSPENDED_NS)
        self._read_ns = read_ns
        return (read_ns + self._offset_ns) // 1_000_000


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
