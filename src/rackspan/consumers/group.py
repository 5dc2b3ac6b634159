"""A consumer group at the moment of a rebalance, as its leader sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NewType

from rackspan.errors import InvalidProblem
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition

MemberId = NewType("MemberId", str)

NO_EPOCH: Final = -1
"""The assignment epoch of a member that was never assigned anything."""


@dataclass(frozen=True, slots=True)
class Member:
    """What one consumer said when it joined.

    `owned` is what it was last assigned, at assignment epoch `epoch`; `holds` says that it reads on until an assignment
    takes a partition away (the cooperative protocol, KIP-429), not having given up everything before (eager).
    `fault` says why what it sent could not be read, None where it could.
    """

    id: MemberId
    topics: frozenset[str]
    rack: RackId | None = None
    owned: frozenset[TopicPartition] = frozenset()
    epoch: int = NO_EPOCH
    holds: bool = False
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Members, and every partition of their topics with the racks it can be read from without leaving them.

    Partitions of topics that nobody subscribes to are left out of every assignment.
    Errors: InvalidProblem when two members have one id.
    """

    members: tuple[Member, ...]
    racks: Mapping[TopicPartition, frozenset[RackId]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ids = [member.id for member in self.members]
        if len(set(ids)) < len(ids):
            twice = next(one for one in ids if ids.count(one) > 1)
            raise InvalidProblem(f"member {twice!r} is listed twice; a group knows a member by its id, list it once")

    def crosses_racks(self, partition: TopicPartition, member: Member) -> bool:
        """Whether the member reads the partition from another rack."""
        return member.rack not in self.racks[partition]
