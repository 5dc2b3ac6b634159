"""The lease on the config topic: for how long a gateway may acknowledge by the values of min.insync.racks that it has replayed.

Who sets a value above 1 acknowledges that when the logs of `replicas_to_hold` replicas show its record, and SETTLE_SECONDS after that.
A lease begins when the oldest of `replicas_to_read` reads of log ends was sent, of replicas in sync, none of which shows a record that is not
replayed here.
So many replicas have one in common with those that hold the record, and no replica loses a committed record: a lease that begins after
the record was held begins with the record replayed, and one that began before has ended when the value is acknowledged. A leader that
was deposed and cut off is one replica of several, and renews nothing by itself.

Pure: times are arguments, in seconds of a clock that nobody sets and that runs on while the machine is suspended.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

LEASE_SECONDS: Final = 3.0
"""One length for all gateways of a cluster: who sets a value waits until every lease has ended that began before it."""

_MARGIN_SECONDS: Final = 0.5
"""Clocks of two machines do not run at exactly the same rate."""

SETTLE_SECONDS: Final = LEASE_SECONDS + _MARGIN_SECONDS
"""From the time at which enough replicas hold a value's record to its acknowledgement."""

_LEAST_READ: Final = 2


def replicas_to_read(replicas: int) -> int:
    """How many log ends begin a lease: 2, which one lost replica of three leaves, and 1 of two replicas or one."""
    return min(_LEAST_READ, max(1, replicas - 1))


def replicas_to_hold(replicas: int) -> int:
    """How many replicas hold a record before it is acknowledged, so that any `replicas_to_read` of them have one of these among them.

    All but one of three and more: then all but one hold it of those, too, that were replicas before others were added.
    """
    return replicas - replicas_to_read(replicas) + 1


@dataclass(frozen=True, slots=True)
class EndReading:
    """The end of one replica's log, committed or not, by a request sent at `sent_at`; leader epoch and replicas as its broker reports them."""

    replica: int
    sent_at: float
    end_offset: int
    topic_id: UUID | None
    leader_epoch: int
    replicas: frozenset[int]
    in_sync: bool = True
    """Whether the replica is in the ISR, by its own broker."""


class LeaseRules:
    """The decisions of a lease, one method each, so that a test plants a mistake by overriding one."""

    def is_current(self, began_at: float, now: float, seconds: float) -> bool:
        """Whether a lease that began then has not ended. The clock is never set back, so a time before the beginning is no time of it."""
        return 0 <= now - began_at < seconds

    def begins_at(self, reading: EndReading, _received_at: float) -> float:
        """A record may be appended between the time at which a log end is read and the one at which its response is received."""
        return reading.sent_at

    def reads_needed(self, replicas: int) -> int:
        return replicas_to_read(replicas)

    def is_replayed(self, end_offset: int, replayed_offset: int) -> bool:
        """Whether a log has nothing beyond what is replayed, be it committed or not."""
        return end_offset <= replayed_offset

    def counts(self, reading: EndReading, replicas: frozenset[int]) -> bool:
        """Whether a reading is of a replica whose broker reports it in sync, and the newest set of replicas.

        In sync it has every record that was committed before. A replica that is being added has not, and its log may be empty.
        """
        return reading.in_sync and reading.replica in replicas and reading.replicas == replicas


class ConfigLease:
    """The lease of one process. It is renewed by `observe`, when a log end is read, and by `replayed`, when records are."""

    def __init__(self, rules: LeaseRules | None = None, seconds: float = LEASE_SECONDS) -> None:
        self._rules = rules or LeaseRules()
        self._seconds = seconds
        self.began_at = float("-inf")
        self.replicas: frozenset[int] = frozenset()
        """Of the newest leader epoch that a broker has reported."""
        self._leader_epoch = -1
        self._topic_id: UUID | None = None
        self.replayed_offset = -1
        """Every record before it is replayed; -1 before the topic was read to its end."""
        self._read_at: dict[int, float] = {}
        """By replica, when the last read was sent of a log end that is replayed."""
        self._ahead: dict[int, tuple[EndReading, float]] = {}
        """By replica, the oldest reading of a log end that is not replayed yet, and when it was received."""

    def is_current(self, now: float) -> bool:
        """Whether the gateway may acknowledge by what it has replayed."""
        return self._rules.is_current(self.began_at, now, self._seconds)

    def left_seconds(self, now: float) -> float:
        """How long it lasts if it is not renewed; 0 once it has ended."""
        return self.began_at + self._seconds - now if self.is_current(now) else 0.0

    def follow_replicas(self, topic_id: UUID | None, leader_epoch: int, replicas: frozenset[int]) -> None:
        """A broker reports the topic's replicas. Within one leader epoch replicas are only added: removing one begins an epoch."""
        if topic_id != self._topic_id or leader_epoch < self._leader_epoch:
            return
        newest = replicas if leader_epoch > self._leader_epoch else replicas | self.replicas
        self._leader_epoch = leader_epoch
        if newest != self.replicas:
            self.replicas = newest
            self._read_at.clear()
            self._ahead.clear()

    def replayed(self, topic_id: UUID | None, offset: int) -> None:
        """Every record of this topic before `offset` is replayed. A topic that was made anew under the name has another id."""
        if topic_id != self._topic_id:
            self._topic_id, self._leader_epoch, self.replicas = topic_id, -1, frozenset()
            self._read_at.clear()
            self._ahead.clear()
            self.replayed_offset = -1
        if offset < self.replayed_offset:
            # Read again from a shorter log: what was replayed beyond its end is in force no more.
            self.began_at = float("-inf")
            self._read_at.clear()
            self._ahead.clear()
        self.replayed_offset = offset
        for reading, received_at in tuple(self._ahead.values()):
            self._count(reading, received_at)
        self._renew()

    def observe(self, reading: EndReading, received_at: float) -> None:
        """A log end was read."""
        if reading.topic_id != self._topic_id:
            return
        self.follow_replicas(reading.topic_id, reading.leader_epoch, reading.replicas)
        if not self._rules.counts(reading, self.replicas):
            return
        self._count(reading, received_at)
        self._renew()

    def _count(self, reading: EndReading, received_at: float) -> None:
        replica = reading.replica
        if self._rules.is_replayed(reading.end_offset, self.replayed_offset):
            began_at = self._rules.begins_at(reading, received_at)
            self._read_at[replica] = max(began_at, self._read_at.get(replica, began_at))
            self._ahead.pop(replica, None)
            return
        # The oldest is replayed first, unless its records were truncated since.
        known, _ = self._ahead.get(replica, (reading, received_at))
        if reading.end_offset <= known.end_offset:
            self._ahead[replica] = reading, received_at

    def _renew(self) -> None:
        needed = self._rules.reads_needed(len(self.replicas))
        newest = sorted(self._read_at.values(), reverse=True)
        if self.replicas and len(newest) >= needed:
            self.began_at = max(self.began_at, newest[needed - 1])

    def unread_replicas(self) -> list[int]:
        """The replicas whose logs have records that are not replayed, committed or not."""
        return list(self._ahead)
