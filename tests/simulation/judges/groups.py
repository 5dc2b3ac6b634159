"""What members of a consumer group rely on, judged by the responses that its coordinators send and by nothing else.

GS1 in one generation a partition has one owner, and no member receives two assignments.
GS2 a commit that was acknowledged is what its group reads, unless a later one stands; what was read once is not unread.
GS3 generations only grow: no coordinator falls behind what an earlier one, or itself, has handed out.
GS4 a member's commit is refused once a later generation was handed out, and so is one of nobody in its generation.
GS5 after everything healed the group commits again.

A coordinator that was deposed may go on responding from memory until it learns that. Its responses are held against the
epochs up to its own. So "later" is an order of (leader epoch, event), which is that of the records in the log: a request
is appended when it arrives, and no leader takes in what an older one appended after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rackspan.model.ids import BrokerId
from tests.simulation.judges.evidence import Evidence, Violation


class Seat(NamedTuple):
    """One process coordinating in one leader epoch."""

    broker: BrokerId
    incarnation: int
    epoch: int


class Place(NamedTuple):
    """Where in the log a commit stands, in order."""

    epoch: int
    event: int


@dataclass(slots=True)
class Commit:
    """One attempt: `value` is never used twice. `fenced` when it arrived, by a generation handed out before."""

    member: str
    generation: int
    partition: int
    value: int
    place: Place
    fenced: bool


@dataclass(slots=True)
class GroupRules:
    """Judges one group."""

    evidence: Evidence
    owners: dict[int, dict[str, frozenset[int]]] = field(default_factory=dict)
    members: dict[int, set[str]] = field(default_factory=dict)
    """By generation, who was let in."""
    commits: dict[int, Commit] = field(default_factory=dict)
    acknowledged: dict[int, Commit] = field(default_factory=dict)
    """The last acknowledged commit, by partition."""
    shown: dict[int, Commit] = field(default_factory=dict)
    """The last commit that the current coordinator has returned to a reader, by partition."""
    count: int = 0
    last_at_event: int = 0
    _reported: dict[Seat, int] = field(default_factory=dict)
    _handed_out: dict[int, int] = field(default_factory=dict)
    """By leader epoch, the newest generation whose assignments any member has received."""

    # Membership.

    def joined(self, seat: Seat, member: str, generation: int) -> None:
        """A JoinGroup response without an error."""
        self._grows(seat, generation, f"lets {member} join")
        self.members.setdefault(generation, set()).add(member)

    def synced(self, seat: Seat, member: str, generation: int, owned: frozenset[int]) -> None:
        """A SyncGroup response: a member receives what it owns."""
        self._grows(seat, generation, f"gives {member} its partitions")
        owners = self.owners.setdefault(generation, {})
        self._owns_alone(owners, member, generation, owned)
        owners[member] = owned
        self._handed_out[seat.epoch] = max(generation, self._handed_out.get(seat.epoch, -1))

    def _owns_alone(
        self, owners: Mapping[str, frozenset[int]], member: str, generation: int, owned: frozenset[int]
    ) -> None:
        for other, theirs in owners.items():
            if other == member and theirs != owned:
                self._break("GS1", f"{member} owns {sorted(owned)} in generation {generation}, and {sorted(theirs)}")
            if other != member and theirs & owned:
                shared = sorted(theirs & owned)
                self._break("GS1", f"{other} and {member} both own {shared} in generation {generation}")

    def _grows(self, seat: Seat, generation: int, what: str) -> None:
        newest = max(self._reported.get(seat, -1), self._newest_up_to(seat.epoch))
        if generation < newest:
            self._break("GS3", f"broker {seat.broker} {what} in generation {generation} after generation {newest}")
        self._reported[seat] = generation

    def _newest_up_to(self, epoch: int) -> int:
        return max((newest for known, newest in self._handed_out.items() if known <= epoch), default=-1)

    # Offsets.

    def arrives(self, seat: Seat | None, member: str, generation: int, partition: int, value: int) -> None:
        """A commit has reached a broker."""
        newest = max(self._handed_out.values(), default=-1)
        place = Place(-1 if seat is None else seat.epoch, self.evidence.event)
        self.commits[value] = Commit(member, generation, partition, value, place, generation < newest)

    def committed(self, value: int) -> None:
        """It was acknowledged."""
        commit = self.commits[value]
        if commit.fenced:
            self._break(
                "GS4", f"a commit of {commit.member} in generation {commit.generation}, fenced, is acknowledged"
            )
        if commit.member not in self.members.get(commit.generation, ()):
            self._break("GS4", f"a commit of {commit.member}, not in generation {commit.generation}, is acknowledged")
        self.count += 1
        self.last_at_event = self.evidence.event
        before = self.acknowledged.get(commit.partition)
        if before is None or before.place < commit.place:
            self.acknowledged[commit.partition] = commit

    def fetched(self, seat: Seat, partition: int, value: int) -> None:
        """A reader received this value, -1 being nothing. Only the current coordinator is held to it."""
        if (seat.broker, seat.epoch) != (self.evidence.committed.leader, self.evidence.committed.leader_epoch):
            return
        commit = self.commits.get(value)
        for kind, known in (("acknowledged", self.acknowledged), ("read", self.shown)):
            last = known.get(partition)
            if last is not None and (commit is None or commit.place < last.place):
                self._break(
                    "GS2",
                    f"broker {seat.broker} tells {value} for partition {partition}, where {last.value} of {last.member} was {kind}",
                )
        if commit is not None:
            self.shown[partition] = commit

    def settled(self, healed_at_event: int, *, demanded: bool) -> None:
        """GS5."""
        if demanded and self.evidence.committed.leader is not None and self.last_at_event < healed_at_event:
            self._break("GS5", "nobody committed after everything healed")

    def _break(self, rule: str, text: str) -> None:
        raise Violation(rule, self.evidence.event, text)
