"""One member of a group: who it is, what it can do, what it waits for."""

from dataclasses import dataclass

from rackspan.cluster.core.groups.records import MemberMetadata
from rackspan.cluster.core.groups.requests import JoinedMember, JoinGroup, Protocol
from rackspan.cluster.core.ids import CorrelationId


@dataclass(slots=True)
class Member:
    """`join_correlation_id` and `sync_correlation_id` are the requests it waits on. `deadline` (ms) is when its session ends.

    `is_new`: its first join is not answered yet, so it knows no member id and cannot send heartbeats.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    join_correlation_id: CorrelationId | None = None
    sync_correlation_id: CorrelationId | None = None
    deadline: int = 0
    is_new: bool = False

    @property
    def waits(self) -> bool:
        """Whether a request of its own is held here: a client that waits is alive without heartbeats."""
        return self.join_correlation_id is not None or self.sync_correlation_id is not None

    def knows(self, protocol: str) -> bool:
        return any(known.name == protocol for known in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        return next((known.metadata for known in self.protocols if known.name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The protocol it likes best among those that everybody knows."""
        return next(known.name for known in self.protocols if known.name in candidates)

    def heard(self, now: int) -> None:
        self.deadline = now + self.session_timeout_ms

    def rejoins(self, request: JoinGroup) -> None:
        """What it says anew at each join replaces what it said before."""
        self.protocols = request.protocols
        self.rebalance_timeout_ms = request.rebalance_timeout_ms
        self.session_timeout_ms = request.session_timeout_ms
        self.client_id, self.client_host = request.client_id, request.client_host

    def joined(self, protocol: str | None) -> JoinedMember:
        return JoinedMember(self.member_id, self.group_instance_id, self.metadata(protocol))

    def record(self, protocol: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            *(self.member_id, self.group_instance_id, self.client_id, self.client_host),
            *(self.rebalance_timeout_ms, self.session_timeout_ms),
            self.metadata(protocol),
            assignment,
        )


def new_member(member_id: str, request: JoinGroup) -> Member:
    return Member(
        *(member_id, request.group_instance_id, request.client_id, request.client_host),
        *(request.rebalance_timeout_ms, request.session_timeout_ms),
        request.protocols,
        is_new=True,
    )


def loaded_member(record: MemberMetadata, protocol: str | None, now: int) -> Member:
    """A member as its group's record tells it; a session begins anew, for it does not know that its coordinator moved."""
    protocols = () if protocol is None else (Protocol(protocol, record.subscription),)
    member = Member(
        *(record.member_id, record.group_instance_id, record.client_id, record.client_host),
        *(record.rebalance_timeout_ms, record.session_timeout_ms),
        protocols,
        record.assignment,
    )
    member.heard(now)
    return member
