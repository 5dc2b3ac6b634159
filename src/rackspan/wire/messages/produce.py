"""Produce (key 0), versions 3-13. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class PartitionProduceData(WireStruct):
    __slots__ = ("index", "records")

    def __init__(self, *, index: int = 0, records: memoryview | None = None) -> None:
        self.index = index
        self.records = records


class TopicProduceData(WireStruct):
    __slots__ = ("name", "topic_id", "partition_data")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partition_data": PartitionProduceData}

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partition_data: Sequence[PartitionProduceData] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = partition_data


class ProduceRequestData(WireStruct):
    __slots__ = ("transactional_id", "acks", "timeout", "topic_data")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topic_data": TopicProduceData}

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout: int = 0,
        topic_data: Sequence[TopicProduceData] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout = timeout
        self.topic_data = topic_data


class BatchIndexAndErrorMessage(WireStruct):
    __slots__ = ("batch_index", "batch_index_error_message")

    def __init__(self, *, batch_index: int = 0, batch_index_error_message: str | None = None) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


class ProduceResponseLeaderIdAndEpoch(WireStruct):
    __slots__ = ("leader_id", "leader_epoch")

    def __init__(self, *, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class PartitionProduceResponse(WireStruct):
    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "record_errors": BatchIndexAndErrorMessage,
        "current_leader": ProduceResponseLeaderIdAndEpoch,
    }

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time: int = -1,
        log_start_offset: int = -1,
        record_errors: Sequence[BatchIndexAndErrorMessage] = (),
        error_message: str | None = None,
        current_leader: ProduceResponseLeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.current_leader = current_leader


class TopicProduceResponse(WireStruct):
    __slots__ = ("name", "topic_id", "partition_responses")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partition_responses": PartitionProduceResponse}

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,
        partition_responses: Sequence[PartitionProduceResponse] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = partition_responses


class ProduceResponseNodeEndpoint(WireStruct):
    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class ProduceResponseData(WireStruct):
    __slots__ = ("responses", "throttle_time", "node_endpoints")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "responses": TopicProduceResponse,
        "node_endpoints": ProduceResponseNodeEndpoint,
    }

    def __init__(
        self,
        *,
        responses: Sequence[TopicProduceResponse] = (),
        throttle_time: int = 0,
        node_endpoints: Sequence[ProduceResponseNodeEndpoint] = (),
    ) -> None:
        self.responses = responses
        self.throttle_time = throttle_time
        self.node_endpoints = node_endpoints
