"""Heartbeat (key 12), versions 0-4. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from rackspan.wire.messages.base import WireStruct


class HeartbeatRequestData(WireStruct):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class HeartbeatResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code")

    def __init__(self, *, throttle_time: int = 0, error_code: int = 0) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
