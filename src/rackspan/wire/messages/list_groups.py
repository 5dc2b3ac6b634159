"""ListGroups (key 16), versions 0-5. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ListGroupsRequestData(WireStruct):
    __slots__ = ("states_filter", "types_filter")

    def __init__(self, *, states_filter: Sequence[str] = (), types_filter: Sequence[str] = ()) -> None:
        self.states_filter = states_filter
        self.types_filter = types_filter


class ListGroupsResponseListedGroup(WireStruct):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


class ListGroupsResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "groups")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"groups": ListGroupsResponseListedGroup}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        groups: Sequence[ListGroupsResponseListedGroup] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.groups = groups
