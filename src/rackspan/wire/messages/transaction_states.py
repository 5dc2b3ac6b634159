"""Requests and responses: transaction states. Generated from kio's schemas by tools/wire_messages.py: do not edit.

DescribeProducers (key 61), version 0; DescribeTransactions (key 65), version 0; ListTransactions (key 66), versions
0-2.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class DescribeProducersRequestTopicRequest(WireStruct):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class DescribeProducersRequestData(WireStruct):
    topics: Sequence[DescribeProducersRequestTopicRequest] = ()


class ProducerState(WireStruct):
    producer_id: int = 0
    producer_epoch: int = 0
    last_sequence: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = 0
    current_txn_start_offset: int = -1


class PartitionResponse(WireStruct):
    partition_index: int = 0
    error_code: int = 0
    error_message: str | None = None
    active_producers: Sequence[ProducerState] = ()


class TopicResponse(WireStruct):
    name: str = ""
    partitions: Sequence[PartitionResponse] = ()


class DescribeProducersResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[TopicResponse] = ()


class DescribeTransactionsRequestData(WireStruct):
    transactional_ids: Sequence[str] = ()


class DescribeTransactionsResponseTopicData(WireStruct):
    topic: str = ""
    partitions: Sequence[int] = ()


class DescribeTransactionsResponseTransactionState(WireStruct):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout: int = 0
    transaction_start_time: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: Sequence[DescribeTransactionsResponseTopicData] = ()


class DescribeTransactionsResponseData(WireStruct):
    throttle_time: int = 0
    transaction_states: Sequence[DescribeTransactionsResponseTransactionState] = ()


class ListTransactionsRequestData(WireStruct):
    state_filters: Sequence[str] = ()
    producer_id_filters: Sequence[int] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


class ListTransactionsResponseTransactionState(WireStruct):
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


class ListTransactionsResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    unknown_state_filters: Sequence[str] = ()
    transaction_states: Sequence[ListTransactionsResponseTransactionState] = ()
