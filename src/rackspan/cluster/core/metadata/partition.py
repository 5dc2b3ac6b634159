"""The state of one partition in the metadata."""

from dataclasses import dataclass
from typing import Final

from rackspan.model.ids import BrokerId

NO_LEADER: Final = BrokerId(-1)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as the controller committed it.

    `leader_epoch` rises with every election, `partition_epoch` with every change. Members of `elr` (KIP-966) may lead
    cleanly though they are not in the ISR. `adding` and `removing` are those of a reassignment under way, and are in `replicas`. `left_isr` holds
    (broker, partition epoch in which it was last a member of the ISR) of every replica outside it: a manual
    recovery takes the survivor with the greatest.
    """

    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[BrokerId, ...] = ()
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    left_isr: tuple[tuple[BrokerId, int], ...] = ()

    @property
    def preferred_leader(self) -> BrokerId:
        return self.replicas[0]

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)
