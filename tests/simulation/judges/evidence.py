"""What the judges read, observed from outside: logs on disk, responses as they were sent, the controller's record.

No rule of Kafka's stands here, and nothing of the code under test is called: only its logs are read.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from rackspan.model.ids import BrokerId, RackId


class Violation(AssertionError):
    """A rule is broken, at the event of number `event`.

    `rule` is its name: I of the log, GS of groups, RS of reassignments, TX of transactions, V of records as bytes.
    """

    def __init__(self, rule: str, event: int, text: str) -> None:
        super().__init__(f"{rule} broken at event {event}: {text}")
        self.rule = rule
        self.event = event
        self.text = text


class Entry(NamedTuple):
    """One record at one offset. The leader epoch is part of it: a retry may put the same record at the same offset."""

    epoch: int
    record: int


class LeaderView(NamedTuple):
    """What a leader uses when it moves its watermark or responds: the committed ISR and the threshold of its metadata."""

    broker: BrokerId
    isr: tuple[BrokerId, ...]
    partition_epoch: int
    required_racks: int


@dataclass(slots=True)
class Acked:
    """An acknowledged record: where it stood, how many racks were required, which racks lost something since."""

    offset: int
    entry: Entry
    required_racks: int
    lost_racks: set[str]

    @property
    def guaranteed(self) -> bool:
        """Fewer racks have lost data since it was appended than held it."""
        return len(self.lost_racks) < self.required_racks


@dataclass(slots=True)
class Replica:
    """One broker's disk, mirrored. `missing` are the acknowledged records it does not hold."""

    rack: RackId | None
    entries: list[Entry] = field(default_factory=list)
    missing: set[int] = field(default_factory=set)
    lossy: bool = False
    """Whether anything was ever lost here."""
    records: set[int] = field(default_factory=set)
    """Those that stand in it, wherever."""
    moves: list[tuple[int, RackId | None]] = field(default_factory=list)
    """(First offset written after it, the rack before), of each move to another rack."""

    def stands_in(self, rack: RackId | None) -> None:
        if rack != self.rack:
            self.moves.append((len(self.entries), self.rack))
            self.rack = rack

    def racks_of_copy(self, offset: int) -> set[str]:
        """Every rack in which this replica's copy has stood: a leader learns of a move only from later metadata."""
        return {self.rack or "", *(before or "" for first, before in self.moves if offset < first)}

    def holds(self, offset: int, entry: Entry) -> bool:
        return offset < len(self.entries) and self.entries[offset] == entry


@dataclass(slots=True)
class Committed:
    """The partition as the controller last committed it, and when each replica was last in the ISR."""

    leader: BrokerId | None = None
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[BrokerId, ...] = ()
    elr: tuple[BrokerId, ...] = ()
    replicas: tuple[BrokerId, ...] = ()
    last_in_isr: dict[BrokerId, int] = field(default_factory=dict)
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()


@dataclass(slots=True)
class Evidence:
    """All of it. `event` numbers what has happened, `appended_at` says when a record first stood in any log."""

    replicas: dict[BrokerId, Replica]
    event: int = 0
    acked: dict[int, Acked] = field(default_factory=dict)
    committed: Committed = field(default_factory=Committed)
    losses: list[tuple[int, str]] = field(default_factory=list)
    appended_at: dict[Entry, int] = field(default_factory=dict)
    not_replica: set[tuple[BrokerId, int]] = field(default_factory=set)
    """(broker, partition epoch) in which the controller counted it among no replicas: a broker that learns of that epoch deletes its log."""

    def appended(self, broker: BrokerId, entry: Entry) -> None:
        replica = self.replicas[broker]
        offset = len(replica.entries)
        replica.entries.append(entry)
        replica.records.add(entry.record)
        self.appended_at.setdefault(entry, self.event)
        acked = self.acked.get(entry.record)
        if acked is not None and acked.offset == offset and acked.entry == entry:
            replica.missing.discard(entry.record)

    def truncated(self, broker: BrokerId, offset: int) -> list[Acked]:
        """What went from there on, as far as it was acknowledged."""
        replica = self.replicas[broker]
        gone = [
            acked
            for acked in self._acked_in(replica, offset)
            # A retry may have put the record there a second time: only the copy that was acknowledged counts.
            if acked.offset >= offset and replica.holds(acked.offset, acked.entry)
        ]
        replica.moves = [(min(first, offset), rack) for first, rack in replica.moves]
        replica.records.difference_update(entry.record for entry in replica.entries[offset:])
        del replica.entries[offset:]
        replica.missing.update(acked.entry.record for acked in gone)
        return gone

    def _acked_in(self, replica: Replica, offset: int) -> Iterator[Acked]:
        for entry in replica.entries[offset:]:
            acked = self.acked.get(entry.record)
            if acked is not None:
                yield acked

    def acknowledged(self, offset: int, entry: Entry, required_racks: int) -> Acked:
        first = self.appended_at.get(entry, self.event)
        acked = Acked(offset, entry, required_racks, {rack for event, rack in self.losses if event >= first})
        self.acked[entry.record] = acked
        for replica in self.replicas.values():
            if not replica.holds(offset, entry):
                replica.missing.add(entry.record)
        return acked

    def lost(self, broker: BrokerId) -> None:
        """Something was lost for good on this broker's disk."""
        replica = self.replicas[broker]
        replica.lossy = True
        self.losses.append((self.event, replica.rack or ""))
        for acked in self.acked.values():
            acked.lost_racks.add(replica.rack or "")

    def was_taken_away(self, broker: BrokerId, since: int) -> bool:
        """Whether it was counted among no replicas in a later partition epoch."""
        return any(one == broker and epoch > since for one, epoch in self.not_replica)

    def racks_with_copy(self, brokers: Iterable[BrokerId], offset: int, others: Iterable[str] = ()) -> int:
        """In how many racks these brokers hold their copies of that offset, counting `others` too."""
        options = [self.replicas[broker].racks_of_copy(offset) for broker in brokers]
        return max(len({*others, *racks}) for racks in product(*options))

    def racks_of(self, brokers: Iterable[BrokerId]) -> set[str]:
        return {self.replicas[broker].rack or "" for broker in brokers}
