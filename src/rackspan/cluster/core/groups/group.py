"""A classic consumer group: its members, its generation, and the state it is in.

    Empty ──join──► PreparingRebalance ──all joined, or time is up──► CompletingRebalance ──leader's sync──► Stable
      ▲                  ▲    │                                              │                                │
      └──no member joined┼────┘◄────────────── a member joins, leaves or is lost ◄────────────────────────────┘
                         │
    Dead: deleted, or its coordinator resigned

Source: Kafka's ClassicGroup. This is only the state; membership/rebalance.py decides when it changes.
"""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from rackspan.cluster.core.groups.committed_offsets import Offsets
from rackspan.cluster.core.groups.member import Member
from rackspan.cluster.core.groups.records import GroupMetadataValue
from rackspan.cluster.core.groups.requests import Protocol

CONSUMER_PROTOCOL: Final = "consumer"


class GroupState(Enum):
    """By Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Group:
    """One group. `partition` is that of `__consumer_offsets` which holds it.

    `pending_joins`: member ids that were handed out and have not joined yet, with the deadline of each (ms).
    `pending_syncs`: members of this generation that have not synced; they are removed at `sync_deadline`.
    `join_deadline`: when the rebalance stops waiting for joins; `initial_delay_left_ms` may extend it (KIP-134).
    `persisted`: its partition holds a record of it. `storing_generation`: the one whose assignments are being written.
    """

    group_id: str
    partition: int
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_joins: dict[str, int] = field(default_factory=dict)
    pending_syncs: set[str] = field(default_factory=set)
    join_deadline: int | None = None
    sync_deadline: int | None = None
    initial_delay_left_ms: int | None = None
    new_member_joined: bool = False
    persisted: bool = False
    storing_generation: int | None = None
    offsets: Offsets = field(default_factory=Offsets)

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    @property
    def is_unused(self) -> bool:
        """Whether it has no member, no offset and no record: a client requested a member id and never joined."""
        idle = self.is_in(GroupState.EMPTY) and self.generation == 0 and not self.persisted
        return idle and self.offsets.empty and not self.pending_joins

    # Members.

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member. The first one sets the protocol type, and is the leader until an election."""
        self.protocol_type = self.protocol_type if self.members else protocol_type
        self.members[member.member_id] = member
        self.pending_joins.pop(member.member_id, None)
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> Member:
        member = self.members.pop(member_id)
        self.pending_syncs.discard(member_id)
        if member.group_instance_id is not None and self.static_members.get(member.group_instance_id) == member_id:
            del self.static_members[member.group_instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, old_id: str, new_id: str) -> Member:
        """Give a static member a new member id. Its position in the order of members stays."""
        self.members = {new_id if id_ == old_id else id_: member for id_, member in self.members.items()}
        member = self.members[new_id]
        member.member_id = new_id
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = new_id
        if old_id in self.pending_syncs:
            self.pending_syncs.remove(old_id)
            self.pending_syncs.add(new_id)
        if self.leader == old_id:
            self.leader = new_id
        return member

    @property
    def all_joined(self) -> bool:
        return not self.pending_joins and all(
            member.join_correlation_id is not None for member in self.members.values()
        )

    @property
    def waiting_to_join(self) -> int:
        return sum(member.join_correlation_id is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """Whether a member that has joined is the leader now: the old leader, or else the first that has joined."""
        if self.leader is not None and self.members[self.leader].join_correlation_id is not None:
            return True
        joined = next(
            (member.member_id for member in self.members.values() if member.join_correlation_id is not None), None
        )
        self.leader = joined if joined is not None else self.leader
        return joined is not None

    # Protocols.

    def candidates(self) -> frozenset[str]:
        """The protocols that every member supports."""
        known = [frozenset(protocol.name for protocol in member.protocols) for member in self.members.values()]
        return frozenset.intersection(*known) if known else frozenset()

    def supports(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Whether a new member with these protocols shares one with all members."""
        if not self.members:
            return bool(protocol_type) and bool(protocols)
        return protocol_type == self.protocol_type and any(offer.name in self.candidates() for offer in protocols)

    def elected_protocol(self) -> str | None:
        """Each member votes for its first among the candidates. On a tie the vote of the older member wins."""
        candidates = self.candidates()
        votes = Counter(member.vote(candidates) for member in self.members.values() if candidates)
        return votes.most_common(1)[0][0] if votes else None

    # Generations.

    def next_generation(self) -> None:
        """Begin a new generation of the present members, or become Empty."""
        self.generation += 1
        self.protocol = self.elected_protocol()
        self.pending_syncs = set(self.members)
        self.state = GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY

    def record_of(self, assignments: dict[str, bytes], now: int) -> GroupMetadataValue:
        """The group's record. `assignments` is by member id; members get theirs once the record is committed."""
        return GroupMetadataValue(
            *(self.protocol_type or "", self.generation, self.protocol, self.leader, now),
            members=tuple(
                member.record(self.protocol, assignments.get(member.member_id, b"")) for member in self.members.values()
            ),
        )
