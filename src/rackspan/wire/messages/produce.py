"""Requests and responses: produce. Generated from kio's schemas by tools/wire_messages.py: do not edit.

Produce (key 0), versions 3-13.
"""

from collections.abc import Sequence
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class PartitionProduceData(WireStruct):
    index: int = 0
    records: memoryview | None = None


class TopicProduceData(WireStruct):
    name: str = ""
    topic_id: UUID | None = None
    partition_data: Sequence[PartitionProduceData] = ()


class ProduceRequestData(WireStruct):
    transactional_id: str | None = None
    acks: int = 0
    timeout: int = 0
    topic_data: Sequence[TopicProduceData] = ()


class BatchIndexAndErrorMessage(WireStruct):
    batch_index: int = 0
    batch_index_error_message: str | None = None


class ProduceResponseLeaderIdAndEpoch(WireStruct):
    leader_id: int = -1
    leader_epoch: int = -1


class PartitionProduceResponse(WireStruct):
    index: int = 0
    error_code: int = 0
    base_offset: int = 0
    log_append_time: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[BatchIndexAndErrorMessage] = ()
    error_message: str | None = None
    current_leader: ProduceResponseLeaderIdAndEpoch | None = None


class TopicProduceResponse(WireStruct):
    name: str = ""
    topic_id: UUID | None = None
    partition_responses: Sequence[PartitionProduceResponse] = ()


class ProduceResponseNodeEndpoint(WireStruct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class ProduceResponseData(WireStruct):
    responses: Sequence[TopicProduceResponse] = ()
    throttle_time: int = 0
    node_endpoints: Sequence[ProduceResponseNodeEndpoint] = ()
