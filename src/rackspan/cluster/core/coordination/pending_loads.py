"""When a coordinator elected to a partition may load it: once all that its log held at the election is committed.

A new leader's log may hold the last records of its predecessor that no other replica has. A coordinator that acted on them
would give clients what a successor elected without them does not have: an offset, or a generation that is then used a second
time. Kafka reads offsets up to the last committed record for the same reason.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rackspan.cluster.core.log import PartitionLog


@dataclass(frozen=True, slots=True)
class PendingLoad:
    """A partition to load. `end_offset` is where the log ended when its leadership began."""

    leader_epoch: int
    end_offset: int


class PendingLoads:
    """The loads that wait for their log, by partition."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, PendingLoad] = {}

    def add(self, partition: int, leader_epoch: int, log: PartitionLog) -> None:
        self._waiting[partition] = PendingLoad(leader_epoch, log.end_offset)

    def remove(self, partition: int) -> None:
        self._waiting.pop(partition, None)

    def pop_ready(self, log_of: Callable[[int], PartitionLog]) -> Iterator[tuple[int, int]]:
        """(partition, leader epoch) of each that may be loaded now, each once."""
        for partition, load in list(self._waiting.items()):
            if log_of(partition).high_watermark >= load.end_offset:
                del self._waiting[partition]
                yield partition, load.leader_epoch
