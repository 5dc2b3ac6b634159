"""When a coordinator elected to a partition may begin: once all that its log held at the election is committed.

A new leader's log may hold the last records of its predecessor that no other replica has. A coordinator that went by them
would tell clients what its own successor, elected without them, knows nothing of: an offset, or a generation that is then
handed out a second time. Kafka reads offsets at the last committed record for the same reason.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rackspan.cluster.core.log import PartitionLog


@dataclass(frozen=True, slots=True)
class Election:
    """`end_offset`: where the log ended when its leadership began."""

    leader_epoch: int
    end_offset: int


class TakingOffice:
    """The elections that wait for their log, by partition."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[int, Election] = {}

    def elected(self, partition: int, leader_epoch: int, log: PartitionLog) -> None:
        self._waiting[partition] = Election(leader_epoch, log.end_offset)

    def resigned(self, partition: int) -> None:
        self._waiting.pop(partition, None)

    def begun(self, log_of: Callable[[int], PartitionLog]) -> Iterator[tuple[int, int]]:
        """(partition, leader epoch) of each that may begin now; each is told once."""
        for partition, election in list(self._waiting.items()):
            if log_of(partition).high_watermark >= election.end_offset:
                del self._waiting[partition]
                yield partition, election.leader_epoch
