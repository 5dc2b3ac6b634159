"""Requests to a group coordinator, and its responses. Times in ms; "" is a member id that was not handed out yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from rackspan.cluster.core.ids import NO_OFFSET
from rackspan.cluster.core.messages import TransactionSupport
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition

NO_GENERATION: Final = -1


class Protocol(NamedTuple):
    """An assignment protocol that a member supports (`range`), and its subscription in that protocol's own format."""

    name: str
    metadata: bytes


# Membership.


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """`protocols` in the member's order of preference.

    `require_known_member_id`: a new dynamic member gets its id first and joins with it (KIP-394, from v4 on).
    `can_skip_assignment`: the client supports that a leader need not assign (KIP-814, from v9 on).
    """

    group_id: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    require_known_member_id: bool = True
    can_skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class JoinedMember:
    member_id: str
    group_instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinGroupResponse:
    """`members` is for the leader alone, which assigns; `protocol` is the elected one."""

    error: ErrorCode
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """`assignments` by member id come from the leader. Protocol type and name are checked if the request has them (v5)."""

    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SyncGroupResponse:
    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    group_id: str
    generation: int
    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    error: ErrorCode


class LeavingMember(NamedTuple):
    """A static member may be named by its instance id alone (KIP-345)."""

    member_id: str
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    group_id: str
    members: tuple[LeavingMember, ...]


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse:
    """One error a member, in the order of the request; `error` concerns the whole request."""

    error: ErrorCode
    members: tuple[tuple[LeavingMember, ErrorCode], ...] = ()


# Offsets.


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, and the leader epoch of the record before it (-1 unknown)."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """Generation -1 without a member id is a client outside the group: allowed while the group is empty."""

    group_id: str
    offsets: Mapping[TopicPartition, CommittedOffset]
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class TxnOffsetCommit:
    """Offsets that become visible when the producer's transaction commits. Membership is checked from v3 on (KIP-447).

    `transactional_id` and `support` are for the verification before the commit (KIP-890).
    """

    group_id: str
    producer_id: int
    producer_epoch: int
    offsets: Mapping[TopicPartition, CommittedOffset]
    generation: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None
    transactional_id: str = ""
    support: TransactionSupport = TransactionSupport.VERIFIES


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """`partitions` None is all that the group has committed. `require_stable` is KIP-447's."""

    group_id: str
    partitions: tuple[TopicPartition, ...] | None = None
    require_stable: bool = False


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """Offset -1 and no error: nothing was committed."""

    offset: int = NO_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    error: ErrorCode
    offsets: Mapping[TopicPartition, FetchedOffset] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """KIP-496: an offset of a topic that members of a consumer group still read stays."""

    group_id: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse:
    error: ErrorCode
    errors: Mapping[TopicPartition, ErrorCode] = field(default_factory=dict)


# Administration.


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    group_id: str


@dataclass(frozen=True, slots=True)
class DeleteGroupResponse:
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class DescribedMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class DescribeGroupResponse:
    """A group that does not exist is Dead, without an error (GROUP_ID_NOT_FOUND is for v6 on, KIP-1043)."""

    error: ErrorCode
    group_id: str
    state: str = "Dead"
    protocol_type: str = ""
    protocol: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    state: str


GroupRequest: TypeAlias = (
    JoinGroup | SyncGroup | Heartbeat | LeaveGroup | OffsetCommit | TxnOffsetCommit | OffsetDelete | DeleteGroup
)
GroupResponse: TypeAlias = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetDeleteResponse
    | DeleteGroupResponse
)
