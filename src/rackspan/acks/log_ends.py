"""Proof that enough racks hold an acknowledged record: the log ends of its replicas, read from the replicas themselves.

A replica whose log has the leader epoch of a record, and ends behind the record, holds it: logs that share an entry of an epoch
are equal up to that entry (KIP-101). No metadata and no time is part of that. A Fetch at `BEYOND_END` reads it from a leader or
a follower: the response's diverging epoch is the largest leader epoch of the log up to the requested one, and where it ends;
OFFSET_OUT_OF_RANGE says that the log ends in an older epoch.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from rackspan.acks.min_insync_racks import RackBits
from rackspan.model import BrokerId

BEYOND_END: Final = 2**62
"""The offset of a Fetch that reads a log end. No log is that long, so that every response names the diverging epoch."""


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The largest leader epoch of a replica's log up to the requested one, and the offset after its last record."""

    leader_epoch: int
    end_offset: int
    log_start_offset: int = 0


class AcknowledgedRecord:
    """The record before `end_offset` of one partition, acknowledged by `leader`, and the replicas whose logs show it."""

    __slots__ = ("_holders", "_may_be_older", "end_offset", "leader", "leader_epoch")

    def __init__(self, leader: BrokerId, leader_epoch: int, end_offset: int | None) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        """In which the record was acknowledged; once the leader's log shows that it is older, an epoch of the log before that."""
        self.end_offset = end_offset
        """None until read from the leader's log: the response to a repeated batch need not name its offset."""
        self._holders = {leader}
        self._may_be_older: bool | None = None
        """Whether the epoch below has to be read from the leader's log. None while no replica lacks the epoch."""

    def reads(self, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> dict[BrokerId, int]:
        """The replicas to read, each with the leader epoch to request: one of each rack that is missing, as many as are required.

        The leader too if its log has to show the record's offset, or that the record is of an earlier epoch: a batch that
        is repeated after an election is acknowledged by the new leader, and no log need have an entry of the new epoch.
        """
        if self.end_offset is None:
            return {self.leader: self.leader_epoch}
        counted = list(self.holders(isr))
        reads: dict[BrokerId, int] = {}
        for replica in self._in_turn(isr):
            missing = racks.count(counted) < min_racks
            if missing and racks.count((*counted, replica)) > racks.count(counted):
                counted.append(replica)
                reads[replica] = self.leader_epoch
        if self._may_be_older and self.leader_epoch > 0:
            reads[self.leader] = self.leader_epoch - 1
        return reads

    def spare_reads(self, isr: Collection[BrokerId], racks: RackBits) -> dict[BrokerId, int]:
        """Every replica that would add a rack, for when those of `reads` do not respond."""
        if self.end_offset is None:
            return {}
        holders = self.holders(isr)
        count = racks.count(holders)
        return {broker: self.leader_epoch for broker in self._in_turn(isr) if racks.count((*holders, broker)) > count}

    def _in_turn(self, isr: Collection[BrokerId]) -> Sequence[BrokerId]:
        """Those after the leader first, so that brokers that lead equally many partitions are read equally often."""
        return sorted(isr, key=lambda replica: (replica < self.leader, replica))

    def observe(self, replica: BrokerId, requested_epoch: int, end: LogEnd | None) -> None:
        """A replica's response to one of `reads`; None for a log that ends in an epoch before the requested one."""
        if replica == self.leader:
            self._observe_leader(requested_epoch, end)
        elif requested_epoch != self.leader_epoch or self.end_offset is None:
            return
        elif end is None or end.leader_epoch < self.leader_epoch:
            if self._may_be_older is None:
                self._may_be_older = True
        elif end.end_offset >= self.end_offset > end.log_start_offset:
            self._holders.add(replica)

    def _observe_leader(self, requested_epoch: int, end: LogEnd | None) -> None:
        if end is None:
            return
        if self.end_offset is None:
            if requested_epoch == end.leader_epoch == self.leader_epoch:
                self.end_offset = end.end_offset
        elif requested_epoch == self.leader_epoch - 1:
            # The epoch before the record's own has to end before it; else the record is of that one, or of one before.
            self._may_be_older = None if self.end_offset <= end.end_offset else False
            if self._may_be_older is None:
                self.leader_epoch = end.leader_epoch

    def holders(self, isr: Collection[BrokerId]) -> list[BrokerId]:
        """The members of an ISR that hold the record, the leader first."""
        return [self.leader, *(broker for broker in isr if broker in self._holders and broker != self.leader)]

    def is_held(self, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> bool:
        """Whether members of the ISR on so many racks hold the record."""
        return self.end_offset is not None and racks.count(self.holders(isr)) >= min_racks
