"""Fetch (key 1), versions 4-18. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class FetchRequestReplicaState(WireStruct):
    __slots__ = ("replica_id", "replica_epoch")

    def __init__(self, *, replica_id: int = -1, replica_epoch: int = -1) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


class FetchPartition(WireStruct):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: UUID | None = None,
        high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


class FetchTopic(WireStruct):
    __slots__ = ("topic", "topic_id", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": FetchPartition}

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: UUID | None = None,
        partitions: Sequence[FetchPartition] = (),
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions


class ForgottenTopic(WireStruct):
    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(self, *, topic: str = "", topic_id: UUID | None = None, partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions


class FetchRequestData(WireStruct):
    __slots__ = (
        "cluster_id",
        "replica_id",
        "replica_state",
        "max_wait",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "replica_state": FetchRequestReplicaState,
        "topics": FetchTopic,
        "forgotten_topics_data": ForgottenTopic,
    }

    def __init__(
        self,
        *,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: FetchRequestReplicaState | None = None,
        max_wait: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: Sequence[FetchTopic] = (),
        forgotten_topics_data: Sequence[ForgottenTopic] = (),
        rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait = max_wait
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = topics
        self.forgotten_topics_data = forgotten_topics_data
        self.rack_id = rack_id


class FetchResponseEpochEndOffset(WireStruct):
    __slots__ = ("epoch", "end_offset")

    def __init__(self, *, epoch: int = -1, end_offset: int = -1) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


class FetchResponseLeaderIdAndEpoch(WireStruct):
    __slots__ = ("leader_id", "leader_epoch")

    def __init__(self, *, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


class SnapshotId(WireStruct):
    __slots__ = ("end_offset", "epoch")

    def __init__(self, *, end_offset: int = -1, epoch: int = -1) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


class FetchResponseAbortedTransaction(WireStruct):
    __slots__ = ("producer_id", "first_offset")

    def __init__(self, *, producer_id: int = 0, first_offset: int = 0) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


class FetchResponsePartitionData(WireStruct):
    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "diverging_epoch": FetchResponseEpochEndOffset,
        "current_leader": FetchResponseLeaderIdAndEpoch,
        "snapshot_id": SnapshotId,
        "aborted_transactions": FetchResponseAbortedTransaction,
    }

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: FetchResponseEpochEndOffset | None = None,
        current_leader: FetchResponseLeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: Sequence[FetchResponseAbortedTransaction] | None = None,
        preferred_read_replica: int = -1,
        records: Sequence[bytes | bytearray | memoryview] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


class FetchableTopicResponse(WireStruct):
    __slots__ = ("topic", "topic_id", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": FetchResponsePartitionData}

    def __init__(
        self,
        *,
        topic: str = "",
        topic_id: UUID | None = None,
        partitions: Sequence[FetchResponsePartitionData] = (),
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions


class FetchResponseNodeEndpoint(WireStruct):
    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(self, *, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


class FetchResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "session_id", "responses", "node_endpoints")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "responses": FetchableTopicResponse,
        "node_endpoints": FetchResponseNodeEndpoint,
    }

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: Sequence[FetchableTopicResponse] = (),
        node_endpoints: Sequence[FetchResponseNodeEndpoint] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.session_id = session_id
        self.responses = responses
        self.node_endpoints = node_endpoints
