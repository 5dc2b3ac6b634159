"""A leader's view of one partition's replicas: each follower's progress, and the ISR."""

from dataclasses import dataclass

from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET
from rackspan.cluster.core.metadata import PartitionState
from rackspan.model.ids import BrokerId


@dataclass(slots=True)
class FollowerState:
    """`end_offset` is the offset of its last fetch, NO_OFFSET before its first in this leadership. Times in ms.

    `caught_up_at` is the last time at which it held all of the leader's log; while it does, it is not kept up to date.
    """

    caught_up_at: int
    end_offset: int = NO_OFFSET
    broker_epoch: int = NO_EPOCH
    fetched_at: int = 0
    leader_end_at_fetch: int = 0

    def fetched(self, now: int, offset: int, leader_end: int) -> None:
        """It fetched from `offset`. If that is the leader's end as of its previous fetch, it was caught up then (KIP-16)."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self.leader_end_at_fetch:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end_offset, self.fetched_at, self.leader_end_at_fetch = offset, now, leader_end

    def fell_behind(self, now: int, leader_end: int) -> None:
        """The leader is about to append; until now this follower held all."""
        if self.end_offset >= leader_end:
            self.caught_up_at = now


@dataclass(slots=True)
class Isr:
    """The ISR that the controller committed, and the one change that may be pending, based on `partition_epoch`.

    While a change is pending, the high watermark waits for the maximal ISR: the committed members and those about to join.
    A refusal that proves the change dead (INELIGIBLE_REPLICA) withdraws it. After any other refusal it stays pending until
    the metadata settles it, because a copy of the request may yet be accepted.
    """

    committed: tuple[BrokerId, ...]
    partition_epoch: int
    pending: tuple[BrokerId, ...] | None = None

    @property
    def maximal(self) -> tuple[BrokerId, ...]:
        """Every member of the committed or the pending ISR."""
        if self.pending is None:
            return self.committed
        return (*self.committed, *(member for member in self.pending if member not in self.committed))

    def propose(self, isr: tuple[BrokerId, ...]) -> None:
        """Make a change pending."""
        self.pending = isr

    def commit(self, isr: tuple[BrokerId, ...], partition_epoch: int) -> bool:
        """Take what the controller committed, from its response or from the metadata. False if it is older or equal."""
        if partition_epoch <= self.partition_epoch:
            return False
        self.committed, self.partition_epoch, self.pending = isr, partition_epoch, None
        return True

    def withdraw(self) -> None:
        """Drop the pending change."""
        self.pending = None

    @classmethod
    def of(cls, state: PartitionState) -> "Isr":
        """The ISR of a partition's state in the metadata."""
        return cls(state.isr, state.partition_epoch)
