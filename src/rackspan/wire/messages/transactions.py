"""Requests and responses: transactions. Generated from kio's schemas by tools/wire_messages.py: do not edit.

InitProducerId (key 22), versions 0-5; AddPartitionsToTxn (key 24), versions 0-5; AddOffsetsToTxn (key 25), versions
0-4; EndTxn (key 26), versions 0-5; WriteTxnMarkers (key 27), versions 1-2; TxnOffsetCommit (key 28), versions 0-5.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class InitProducerIdRequestData(WireStruct):
    transactional_id: str | None = None
    transaction_timeout: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


class InitProducerIdResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0


class AddPartitionsToTxnTopic(WireStruct):
    name: str = ""
    partitions: Sequence[int] = ()


class AddPartitionsToTxnTransaction(WireStruct):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: Sequence[AddPartitionsToTxnTopic] = ()


class AddPartitionsToTxnRequestData(WireStruct):
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = ()
    transactions: Sequence[AddPartitionsToTxnTransaction] = ()


class AddPartitionsToTxnPartitionResult(WireStruct):
    partition_index: int = 0
    partition_error_code: int = 0


class AddPartitionsToTxnTopicResult(WireStruct):
    name: str = ""
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()


class AddPartitionsToTxnResult(WireStruct):
    transactional_id: str = ""
    topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()


class AddPartitionsToTxnResponseData(WireStruct):
    throttle_time: int = 0
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = ()
    error_code: int = 0
    results_by_transaction: Sequence[AddPartitionsToTxnResult] = ()


class AddOffsetsToTxnRequestData(WireStruct):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


class AddOffsetsToTxnResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0


class EndTxnRequestData(WireStruct):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


class EndTxnResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1


class WritableTxnMarkerTopic(WireStruct):
    name: str = ""
    partition_indexes: Sequence[int] = ()


class WritableTxnMarker(WireStruct):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: Sequence[WritableTxnMarkerTopic] = ()
    coordinator_epoch: int = 0
    transaction_version: int = 0


class WriteTxnMarkersRequestData(WireStruct):
    markers: Sequence[WritableTxnMarker] = ()


class WritableTxnMarkerPartitionResult(WireStruct):
    partition_index: int = 0
    error_code: int = 0


class WritableTxnMarkerTopicResult(WireStruct):
    name: str = ""
    partitions: Sequence[WritableTxnMarkerPartitionResult] = ()


class WritableTxnMarkerResult(WireStruct):
    producer_id: int = 0
    topics: Sequence[WritableTxnMarkerTopicResult] = ()


class WriteTxnMarkersResponseData(WireStruct):
    markers: Sequence[WritableTxnMarkerResult] = ()


class TxnOffsetCommitRequestPartition(WireStruct):
    partition_index: int = 0
    committed_offset: int = 0
    committed_leader_epoch: int = -1
    committed_metadata: str | None = None


class TxnOffsetCommitRequestTopic(WireStruct):
    name: str = ""
    partitions: Sequence[TxnOffsetCommitRequestPartition] = ()


class TxnOffsetCommitRequestData(WireStruct):
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: Sequence[TxnOffsetCommitRequestTopic] = ()


class TxnOffsetCommitResponsePartition(WireStruct):
    partition_index: int = 0
    error_code: int = 0


class TxnOffsetCommitResponseTopic(WireStruct):
    name: str = ""
    partitions: Sequence[TxnOffsetCommitResponsePartition] = ()


class TxnOffsetCommitResponseData(WireStruct):
    throttle_time: int = 0
    topics: Sequence[TxnOffsetCommitResponseTopic] = ()
