"""LeaveGroup (key 13), versions 0-5. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class MemberIdentity(WireStruct):
    __slots__ = ("member_id", "group_instance_id", "reason")

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, reason: str | None = None) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


class LeaveGroupRequestData(WireStruct):
    __slots__ = ("group_id", "member_id", "members")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"members": MemberIdentity}

    def __init__(self, *, group_id: str = "", member_id: str = "", members: Sequence[MemberIdentity] = ()) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = members


class MemberResponse(WireStruct):
    __slots__ = ("member_id", "group_instance_id", "error_code")

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, error_code: int = 0) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


class LeaveGroupResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "members")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"members": MemberResponse}

    def __init__(self, *, throttle_time: int = 0, error_code: int = 0, members: Sequence[MemberResponse] = ()) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.members = members
