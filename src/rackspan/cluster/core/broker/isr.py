"""A leader's ISR: what the controller committed, and the one change that may be under way.

While a change is asked for, the maximal ISR holds the watermark back: who is about to join counts already, who is about
to leave counts still. A refusal that proves the change dead (INELIGIBLE_REPLICA) takes it back; any other leaves it
pending until the image speaks, for a copy of it may yet be accepted.
"""

from dataclasses import dataclass

from rackspan.cluster.core.metadata import PartitionState
from rackspan.model.ids import BrokerId


@dataclass(slots=True)
class Isr:
    """`committed` is as the leader knows it; `pending` what was asked for, upon `partition_epoch`."""

    committed: tuple[BrokerId, ...]
    partition_epoch: int
    pending: tuple[BrokerId, ...] | None = None

    @property
    def maximal(self) -> tuple[BrokerId, ...]:
        if self.pending is None:
            return self.committed
        return (*self.committed, *(member for member in self.pending if member not in self.committed))

    def ask(self, isr: tuple[BrokerId, ...]) -> None:
        self.pending = isr

    def commit(self, isr: tuple[BrokerId, ...], partition_epoch: int) -> bool:
        """What the controller says, by answer or by image; the older of two is no news. Whether it was."""
        if partition_epoch <= self.partition_epoch:
            return False
        self.committed, self.partition_epoch, self.pending = isr, partition_epoch, None
        return True

    def take_back(self) -> None:
        self.pending = None

    @classmethod
    def of(cls, state: PartitionState) -> "Isr":
        return cls(state.isr, state.partition_epoch)
