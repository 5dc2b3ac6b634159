"""Requests and responses: groups. Generated from kio's schemas by tools/wire_messages.py: do not edit.

FindCoordinator (key 10), versions 0-6; DescribeGroups (key 15), versions 0-6; ListGroups (key 16), versions 0-5;
DeleteGroups (key 42), versions 0-3.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class FindCoordinatorRequestData(WireStruct):
    key: str = ""
    key_type: int = 0
    coordinator_keys: Sequence[str] = ()


class FindCoordinatorResponseCoordinator(WireStruct):
    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: int = 0
    error_message: str | None = None


class FindCoordinatorResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    error_message: str | None = None
    node_id: int = 0
    host: str = ""
    port: int = 0
    coordinators: Sequence[FindCoordinatorResponseCoordinator] = ()


class DescribeGroupsRequestData(WireStruct):
    groups: Sequence[str] = ()
    include_authorized_operations: bool = False


class DescribedGroupMember(WireStruct):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribeGroupsResponseDescribedGroup(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: Sequence[DescribedGroupMember] = ()
    authorized_operations: int = -2147483648


class DescribeGroupsResponseData(WireStruct):
    throttle_time: int = 0
    groups: Sequence[DescribeGroupsResponseDescribedGroup] = ()


class ListGroupsRequestData(WireStruct):
    states_filter: Sequence[str] = ()
    types_filter: Sequence[str] = ()


class ListGroupsResponseListedGroup(WireStruct):
    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    groups: Sequence[ListGroupsResponseListedGroup] = ()


class DeleteGroupsRequestData(WireStruct):
    groups_names: Sequence[str] = ()


class DeletableGroupResult(WireStruct):
    group_id: str = ""
    error_code: int = 0
    error_message: str | None = None


class DeleteGroupsResponseData(WireStruct):
    throttle_time: int = 0
    results: Sequence[DeletableGroupResult] = ()
