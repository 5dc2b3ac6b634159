"""DeleteGroups (key 42), versions 0-2. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DeleteGroupsRequestData(WireStruct):
    __slots__ = ("groups_names",)

    def __init__(self, *, groups_names: Sequence[str] = ()) -> None:
        self.groups_names = groups_names


class DeletableGroupResult(WireStruct):
    __slots__ = ("group_id", "error_code")

    def __init__(self, *, group_id: str = "", error_code: int = 0) -> None:
        self.group_id = group_id
        self.error_code = error_code


class DeleteGroupsResponseData(WireStruct):
    __slots__ = ("throttle_time", "results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results": DeletableGroupResult}

    def __init__(self, *, throttle_time: int = 0, results: Sequence[DeletableGroupResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.results = results
