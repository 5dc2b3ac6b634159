"""DescribeGroups (key 15), versions 0-6. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DescribeGroupsRequestData(WireStruct):
    __slots__ = ("groups", "include_authorized_operations")

    def __init__(self, *, groups: Sequence[str] = (), include_authorized_operations: bool = False) -> None:
        self.groups = groups
        self.include_authorized_operations = include_authorized_operations


class DescribedGroupMember(WireStruct):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


class DescribeGroupsResponseDescribedGroup(WireStruct):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"members": DescribedGroupMember}

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: Sequence[DescribedGroupMember] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = members
        self.authorized_operations = authorized_operations


class DescribeGroupsResponseData(WireStruct):
    __slots__ = ("throttle_time", "groups")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"groups": DescribeGroupsResponseDescribedGroup}

    def __init__(self, *, throttle_time: int = 0, groups: Sequence[DescribeGroupsResponseDescribedGroup] = ()) -> None:
        self.throttle_time = throttle_time
        self.groups = groups
