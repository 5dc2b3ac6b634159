"""The rules an acknowledgement, an election, a truncation and a watermark are held against.

I1 an acknowledgement leaves a broker: the members of the committed ISR that hold the record span the required racks;
   a broker that has moved counts for any one of the racks in which its copy has stood.
I2 every change of the controller's partition: every member of ISR and ELR holds every acknowledged record.
I3 a broker begins to lead: one process an epoch; it holds what was acknowledged in lower epochs.
I4 a log is truncated: nothing acknowledged goes.
I5 a watermark moves: never back within one leadership; committed entries are the same on every leader; ISR members have
   reached it; no idempotent record stands in a log twice; what readers may see is held by the required racks.
I6 at every fault and at the end: see survival.py.
I7 after everything healed: one leader, equal logs.

While as many racks lost data as are required, nothing is promised of a record.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from rackspan.model.ids import BrokerId
from tests.simulation.judges.evidence import Acked, Committed, Entry, Evidence, LeaderView, Violation
from tests.simulation.kinds import WorldKind


@dataclass(slots=True)
class Rules:
    """Judges one run of one partition. `min_insync_racks` is what the acknowledging broker required, where it matters."""

    kind: WorldKind
    evidence: Evidence
    led_by: dict[int, tuple[BrokerId, int]] = field(default_factory=dict)
    watermarks: dict[tuple[BrokerId, int], int] = field(default_factory=dict)
    passed: list[Entry] = field(default_factory=list)
    idempotent: set[int] = field(default_factory=set)

    def acknowledged(self, leader: LeaderView, offset: int, entry: Entry) -> None:
        """I1, then I2 for the record that has just become a promise."""
        acked = self.evidence.acknowledged(offset, entry, leader.required_racks)
        holders = self._holders(leader, offset, entry)
        racks = self.evidence.racks_with_copy(holders, offset, acked.lost_racks)
        if racks < leader.required_racks:
            self._break(
                "I1",
                f"broker {leader.broker} acknowledged record {entry.record} at offset {offset} of epoch {entry.epoch},"
                f" held in sync by {holders} in {racks} racks of {leader.required_racks} asked for (its ISR"
                f" {sorted(leader.isr)})",
            )
        self._members_hold_all(self.evidence.committed, "after an acknowledgement")

    def _holders(self, leader: LeaderView, offset: int, entry: Entry) -> list[BrokerId]:
        """Members that hold it, and those that an operator has had taken away: the leader cannot know that yet.

        Whether what stays in the ISR holds it, I2 checks.
        """
        found = [one for one in leader.isr if self.evidence.replicas[one].holds(offset, entry)]
        if len(found) < len(leader.isr) and self.evidence.not_replica:
            found += [one for one in leader.isr if self.evidence.was_taken_away(one, leader.partition_epoch)]
        return found

    def committed(self, before: Committed, after: Committed) -> None:
        """I2 on every change of the controller's partition."""
        if self._losses():
            joined = set(after.isr) - set(before.isr)
            self._hold_all([one for one in joined if not self.evidence.replicas[one].lossy], after, "joining the ISR")
        else:
            self._members_hold_all(after, "after a change")

    def _members_hold_all(self, committed: Committed, when: str) -> None:
        if not self._losses():
            self._hold_all([*committed.isr, *committed.elr], committed, when)

    def _hold_all(self, members: Collection[BrokerId], committed: Committed, when: str) -> None:
        for member in members:
            missing = self.evidence.replicas[member].missing
            lacking = [record for record in missing if self.evidence.acked[record].guaranteed] if missing else []
            if lacking:
                self._break(
                    "I2",
                    f"broker {member} lacks acknowledged record {min(lacking)} {when}: ISR {committed.isr}, ELR"
                    f" {committed.elr}, leader {committed.leader} in epoch {committed.leader_epoch}",
                )

    def leads(self, broker: BrokerId, incarnation: int, epoch: int) -> None:
        """I3."""
        who = self.led_by.setdefault(epoch, (broker, incarnation))
        if who != (broker, incarnation):
            self._break(
                "I3", f"epoch {epoch} is led by broker {broker} ({incarnation}) after broker {who[0]} ({who[1]})"
            )
        replica = self.evidence.replicas[broker]
        for record in sorted(replica.missing):
            acked = self.evidence.acked[record]
            if acked.entry.epoch < epoch and acked.guaranteed:
                self._break(
                    "I3",
                    f"broker {broker} leads epoch {epoch} without acknowledged record {record} of epoch {acked.entry.epoch}",
                )

    def truncated(self, broker: BrokerId, gone: list[Acked]) -> None:
        """I4. What a lossy fault took is not a truncation."""
        for acked in gone:
            if acked.guaranteed:
                self._break(
                    "I4", f"broker {broker} truncated acknowledged record {acked.entry.record} at offset {acked.offset}"
                )

    def appended(self, broker: BrokerId, entry: Entry) -> None:
        """I5, the part about idempotent producers. Call before the entry is added to the evidence."""
        if entry.record in self.idempotent and entry.record in self.evidence.replicas[broker].records:
            self._break("I5", f"broker {broker} holds idempotent record {entry.record} twice")

    def watermark(self, leader: LeaderView, incarnation: int, epoch: int, offset: int) -> None:
        """I5, for a leader's high watermark."""
        broker = leader.broker
        key = (broker, epoch)
        before = self.watermarks.get(key, 0)
        if offset < before and self.led_by.get(epoch) == (broker, incarnation):
            self._break("I5", f"broker {broker}'s watermark went back from {before} to {offset} in epoch {epoch}")
        self.watermarks[key] = max(offset, before)
        if self._losses():
            return
        self._same_as_passed(leader, before, offset)
        if epoch == self.evidence.committed.leader_epoch:
            self._members_reached(broker, offset)

    def _same_as_passed(self, leader: LeaderView, before: int, offset: int) -> None:
        """What lay below this leadership's watermark was compared when that moved there."""
        entries = self.evidence.replicas[leader.broker].entries
        for at in range(before, min(offset, len(self.passed))):
            if at < len(entries) and entries[at] != self.passed[at]:
                self._break(
                    "I5",
                    f"broker {leader.broker} commits {entries[at]} at offset {at}, where {self.passed[at]} was committed",
                )
        for at in range(len(self.passed), min(offset, len(entries))):
            self._readers_safe(leader, at, entries[at])
            self.passed.append(entries[at])

    def _readers_safe(self, leader: LeaderView, offset: int, entry: Entry) -> None:
        racks = self.evidence.racks_with_copy(self._holders(leader, offset, entry), offset)
        if racks < leader.required_racks:
            self._break(
                "I5",
                f"broker {leader.broker} shows readers offset {offset}, held in sync by {racks} racks of"
                f" {leader.required_racks} asked for",
            )

    def _members_reached(self, broker: BrokerId, offset: int) -> None:
        for member in self.evidence.committed.isr:
            if len(self.evidence.replicas[member].entries) < offset:
                self._break(
                    "I5", f"broker {member} is in the ISR and ends before the watermark {offset} of leader {broker}"
                )

    def settled(self, logs: dict[BrokerId, list[Entry]], leader: BrokerId | None) -> None:
        """I7: `logs` of the replicas that run, once everything healed."""
        if leader is None:
            if self.kind.trusted and not self._losses():
                self._break("I7", "no leader after everything healed")
            return
        for broker, entries in sorted(logs.items()):
            if entries != logs[leader]:
                self._break(
                    "I7",
                    f"broker {broker} and leader {leader} differ after everything healed: {len(entries)} and {len(logs[leader])} records",
                )

    def _losses(self) -> bool:
        return bool(self.evidence.losses)

    def _break(self, rule: str, text: str) -> None:
        raise Violation(rule, self.evidence.event, text)
