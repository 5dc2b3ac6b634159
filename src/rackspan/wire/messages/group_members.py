"""Requests and responses: group members. Generated from kio's schemas by tools/wire_messages.py: do not edit.

JoinGroup (key 11), versions 0-9; Heartbeat (key 12), versions 0-4; LeaveGroup (key 13), versions 0-5; SyncGroup (key
14), versions 0-5.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class JoinGroupRequestProtocol(WireStruct):
    name: str = ""
    metadata: bytes = b""


class JoinGroupRequestData(WireStruct):
    group_id: str = ""
    session_timeout: int = 0
    rebalance_timeout: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: Sequence[JoinGroupRequestProtocol] = ()
    reason: str | None = None


class JoinGroupResponseMember(WireStruct):
    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: Sequence[JoinGroupResponseMember] = ()


class HeartbeatRequestData(WireStruct):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


class HeartbeatResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0


class MemberIdentity(WireStruct):
    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequestData(WireStruct):
    group_id: str = ""
    member_id: str = ""
    members: Sequence[MemberIdentity] = ()


class MemberResponse(WireStruct):
    member_id: str = ""
    group_instance_id: str | None = None
    error_code: int = 0


class LeaveGroupResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    members: Sequence[MemberResponse] = ()


class SyncGroupRequestAssignment(WireStruct):
    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequestData(WireStruct):
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Sequence[SyncGroupRequestAssignment] = ()


class SyncGroupResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
