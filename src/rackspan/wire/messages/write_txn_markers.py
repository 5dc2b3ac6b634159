"""WriteTxnMarkers (key 27), version 1. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class WritableTxnMarkerTopic(WireStruct):
    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class WritableTxnMarker(WireStruct):
    __slots__ = ("producer_id", "producer_epoch", "transaction_result", "topics", "coordinator_epoch")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": WritableTxnMarkerTopic}

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: Sequence[WritableTxnMarkerTopic] = (),
        coordinator_epoch: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = topics
        self.coordinator_epoch = coordinator_epoch


class WriteTxnMarkersRequestData(WireStruct):
    __slots__ = ("markers",)
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"markers": WritableTxnMarker}

    def __init__(self, *, markers: Sequence[WritableTxnMarker] = ()) -> None:
        self.markers = markers


class WritableTxnMarkerPartitionResult(WireStruct):
    __slots__ = ("partition_index", "error_code")

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class WritableTxnMarkerTopicResult(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": WritableTxnMarkerPartitionResult}

    def __init__(self, *, name: str = "", partitions: Sequence[WritableTxnMarkerPartitionResult] = ()) -> None:
        self.name = name
        self.partitions = partitions


class WritableTxnMarkerResult(WireStruct):
    __slots__ = ("producer_id", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": WritableTxnMarkerTopicResult}

    def __init__(self, *, producer_id: int = 0, topics: Sequence[WritableTxnMarkerTopicResult] = ()) -> None:
        self.producer_id = producer_id
        self.topics = topics


class WriteTxnMarkersResponseData(WireStruct):
    __slots__ = ("markers",)
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"markers": WritableTxnMarkerResult}

    def __init__(self, *, markers: Sequence[WritableTxnMarkerResult] = ()) -> None:
        self.markers = markers
