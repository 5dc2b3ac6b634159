"""DescribeProducers (key 61), version 0. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DescribeProducersRequestTopicRequest(WireStruct):
    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class DescribeProducersRequestData(WireStruct):
    __slots__ = ("topics",)
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": DescribeProducersRequestTopicRequest}

    def __init__(self, *, topics: Sequence[DescribeProducersRequestTopicRequest] = ()) -> None:
        self.topics = topics


class ProducerState(WireStruct):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(WireStruct):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"active_producers": ProducerState}

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: Sequence[ProducerState] = (),
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = active_producers


class TopicResponse(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": PartitionResponse}

    def __init__(self, *, name: str = "", partitions: Sequence[PartitionResponse] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DescribeProducersResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": TopicResponse}

    def __init__(self, *, throttle_time: int = 0, topics: Sequence[TopicResponse] = ()) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
