"""One member of a group: its ids, its protocols, and the requests that wait for a response."""

from dataclasses import dataclass

from rackspan.cluster.core.groups.records import MemberMetadata
from rackspan.cluster.core.groups.requests import JoinedMember, JoinGroup, Protocol
from rackspan.cluster.core.ids import CorrelationId


@dataclass(slots=True)
class Member:
    """`join_correlation_id` and `sync_correlation_id` are the requests it waits on. `deadline` (ms) is when its session ends.

    `is_new`: its first join has no response yet, so that its client has no member id and cannot send heartbeats.
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
        """Whether one of its requests waits for a response. Its client then sends no heartbeats."""
        return self.join_correlation_id is not None or self.sync_correlation_id is not None

    def metadata(self, protocol: str | None) -> bytes:
        return next((known.metadata for known in self.protocols if known.name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """Its first protocol among the candidates."""
        return next(known.name for known in self.protocols if known.name in candidates)

    def extend_session(self, now: int) -> None:
        """Its session ends `session_timeout_ms` from now."""
        self.deadline = now + self.session_timeout_ms

    def rejoins(self, request: JoinGroup) -> None:
        """Replace what each JoinGroup request sets anew."""
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
    """A member from its group's record. A new session begins, because the member did not see its coordinator change."""
    protocols = () if protocol is None else (Protocol(protocol, record.subscription),)
    member = Member(
        *(record.member_id, record.group_instance_id, record.client_id, record.client_host),
        *(record.rebalance_timeout_ms, record.session_timeout_ms),
        protocols,
        record.assignment,
    )
    member.extend_session(now)
    return member
