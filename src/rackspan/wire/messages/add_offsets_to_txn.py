"""AddOffsetsToTxn (key 25), versions 0-4. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from rackspan.wire.messages.base import WireStruct


class AddOffsetsToTxnRequestData(WireStruct):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


class AddOffsetsToTxnResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code")

    def __init__(self, *, throttle_time: int = 0, error_code: int = 0) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
