"""DescribeTransactions (key 65), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DescribeTransactionsRequestData(WireStruct):
    __slots__ = ("transactional_ids",)

    def __init__(self, *, transactional_ids: Sequence[str] = ()) -> None:
        self.transactional_ids = transactional_ids


class DescribeTransactionsResponseTopicData(WireStruct):
    __slots__ = ("topic", "partitions")

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class DescribeTransactionsResponseTransactionState(WireStruct):
    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout",
        "transaction_start_time",
        "producer_id",
        "producer_epoch",
        "topics",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DescribeTransactionsResponseTopicData}

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout: int = 0,
        transaction_start_time: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: Sequence[DescribeTransactionsResponseTopicData] = (),
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout = transaction_timeout
        self.transaction_start_time = transaction_start_time
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = topics


class DescribeTransactionsResponseData(WireStruct):
    __slots__ = ("throttle_time", "transaction_states")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "transaction_states": DescribeTransactionsResponseTransactionState,
    }

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        transaction_states: Sequence[DescribeTransactionsResponseTransactionState] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.transaction_states = transaction_states
