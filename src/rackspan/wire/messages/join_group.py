"""JoinGroup (key 11), versions 0-9. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class JoinGroupRequestProtocol(WireStruct):
    __slots__ = ("name", "metadata")

    def __init__(self, *, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class JoinGroupRequestData(WireStruct):
    __slots__ = (
        "group_id",
        "session_timeout",
        "rebalance_timeout",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"protocols": JoinGroupRequestProtocol}

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout: int = 0,
        rebalance_timeout: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: Sequence[JoinGroupRequestProtocol] = (),
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout = session_timeout
        self.rebalance_timeout = rebalance_timeout
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.reason = reason


class JoinGroupResponseMember(WireStruct):
    __slots__ = ("member_id", "group_instance_id", "metadata")

    def __init__(self, *, member_id: str = "", group_instance_id: str | None = None, metadata: bytes = b"") -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


class JoinGroupResponseData(WireStruct):
    __slots__ = (
        "throttle_time",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"members": JoinGroupResponseMember}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: Sequence[JoinGroupResponseMember] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = members
