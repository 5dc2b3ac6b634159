"""EndTxn (key 26), versions 0-5. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from rackspan.wire.messages.base import WireStruct


class EndTxnRequestData(WireStruct):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed


class EndTxnResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "producer_id", "producer_epoch")

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
