"""AddPartitionsToTxn (key 24), versions 0-5. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class AddPartitionsToTxnTopic(WireStruct):
    __slots__ = ("name", "partitions")

    def __init__(self, *, name: str = "", partitions: Sequence[int] = ()) -> None:
        self.name = name
        self.partitions = partitions


class AddPartitionsToTxnTransaction(WireStruct):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": AddPartitionsToTxnTopic}

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: Sequence[AddPartitionsToTxnTopic] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = topics


class AddPartitionsToTxnRequestData(WireStruct):
    __slots__ = (
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
        "transactions",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "v3_and_below_topics": AddPartitionsToTxnTopic,
        "transactions": AddPartitionsToTxnTransaction,
    }

    def __init__(
        self,
        *,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = (),
        transactions: Sequence[AddPartitionsToTxnTransaction] = (),
    ) -> None:
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = v3_and_below_topics
        self.transactions = transactions


class AddPartitionsToTxnPartitionResult(WireStruct):
    __slots__ = ("partition_index", "partition_error_code")

    def __init__(self, *, partition_index: int = 0, partition_error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(WireStruct):
    __slots__ = ("name", "results_by_partition")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results_by_partition": AddPartitionsToTxnPartitionResult}

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = (),
    ) -> None:
        self.name = name
        self.results_by_partition = results_by_partition


class AddPartitionsToTxnResult(WireStruct):
    __slots__ = ("transactional_id", "topic_results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topic_results": AddPartitionsToTxnTopicResult}

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: Sequence[AddPartitionsToTxnTopicResult] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = topic_results


class AddPartitionsToTxnResponseData(WireStruct):
    __slots__ = ("throttle_time", "results_by_topic_v3_and_below", "error_code", "results_by_transaction")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "results_by_topic_v3_and_below": AddPartitionsToTxnTopicResult,
        "results_by_transaction": AddPartitionsToTxnResult,
    }

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = (),
        error_code: int = 0,
        results_by_transaction: Sequence[AddPartitionsToTxnResult] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.results_by_topic_v3_and_below = results_by_topic_v3_and_below
        self.error_code = error_code
        self.results_by_transaction = results_by_transaction
