"""What a leader knows of one follower."""

from dataclasses import dataclass

from rackspan.cluster.core.ids import NO_EPOCH, NO_OFFSET


@dataclass(slots=True)
class FollowerState:
    """`end_offset` is where it said it stands, NO_OFFSET before its first fetch in this leadership. Times in ms.

    `caught_up_at` is the last moment at which it held all there was; while it does, it is not kept up to date.
    """

    caught_up_at: int
    end_offset: int = NO_OFFSET
    broker_epoch: int = NO_EPOCH
    fetched_at: int = 0
    leader_end_at_fetch: int = 0

    def fetched(self, now: int, offset: int, leader_end: int) -> None:
        """It asked for what follows `offset`. Having reached the end as of its last fetch, it was caught up then (KIP-16)."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self.leader_end_at_fetch:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end_offset, self.fetched_at, self.leader_end_at_fetch = offset, now, leader_end

    def fell_behind(self, now: int, leader_end: int) -> None:
        """The leader is about to append; up to now this follower held all."""
        if self.end_offset >= leader_end:
            self.caught_up_at = now
