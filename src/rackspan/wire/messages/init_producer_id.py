"""InitProducerId (key 22), versions 0-5. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from rackspan.wire.messages.base import WireStruct


class InitProducerIdRequestData(WireStruct):
    __slots__ = ("transactional_id", "transaction_timeout", "producer_id", "producer_epoch")

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        transaction_timeout: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout = transaction_timeout
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


class InitProducerIdResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "producer_id", "producer_epoch")

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
