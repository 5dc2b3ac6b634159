"""A broker's disk: its logs outlive the process, what was flushed outlives the machine."""

from dataclasses import dataclass, field

from rackspan.cluster.core.ids import NO_EPOCH, TopicPartition
from rackspan.cluster.core.log import PartitionLog


@dataclass(slots=True)
class Disk:
    """`clean_epoch` is the clean-shutdown mark: the broker epoch it was written in, taken away at the next start."""

    logs: dict[TopicPartition, PartitionLog] = field(default_factory=dict)
    flushed: dict[TopicPartition, int] = field(default_factory=dict)
    clean_epoch: int = NO_EPOCH
    lost_at: list[int] = field(default_factory=list)
    """When something was lost here, in events."""

    def flush(self) -> None:
        self.flushed = {partition: log.end_offset for partition, log in self.logs.items()}

    def cut_to_flushed(self) -> bool:
        """The machine lost power. Says whether anything went with it."""
        lost = False
        for partition, log in self.logs.items():
            kept = min(log.end_offset, self.flushed.get(partition, 0))
            lost = lost or kept < log.end_offset
            log.truncate_to(kept)
        return lost

    def empty(self) -> None:
        """The disk is gone: whatever mark it bore as well."""
        self.logs = {}
        self.flushed = {}
        self.clean_epoch = NO_EPOCH

    def take_mark(self) -> int:
        mark, self.clean_epoch = self.clean_epoch, NO_EPOCH
        return mark
