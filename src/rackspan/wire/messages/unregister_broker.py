"""UnregisterBroker (key 64), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from rackspan.wire.messages.base import WireStruct


class UnregisterBrokerRequestData(WireStruct):
    __slots__ = ("broker_id",)

    def __init__(self, *, broker_id: int = 0) -> None:
        self.broker_id = broker_id


class UnregisterBrokerResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "error_message")

    def __init__(self, *, throttle_time: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.error_message = error_message
