"""Requests and responses: fetch. Generated from kio's schemas by tools/wire_messages.py: do not edit.

Fetch (key 1), versions 4-18.
"""

from collections.abc import Sequence
from uuid import UUID

from rackspan.wire.messages.base import WireStruct


class FetchRequestReplicaState(WireStruct):
    replica_id: int = -1
    replica_epoch: int = -1


class FetchPartition(WireStruct):
    partition: int = 0
    current_leader_epoch: int = -1
    fetch_offset: int = 0
    last_fetched_epoch: int = -1
    log_start_offset: int = -1
    partition_max_bytes: int = 0
    replica_directory_id: UUID | None = None
    high_watermark: int = 9223372036854775807


class FetchTopic(WireStruct):
    topic: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[FetchPartition] = ()


class ForgottenTopic(WireStruct):
    topic: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[int] = ()


class FetchRequestData(WireStruct):
    cluster_id: str | None = None
    replica_id: int = -1
    replica_state: FetchRequestReplicaState | None = None
    max_wait: int = 0
    min_bytes: int = 0
    max_bytes: int = 2147483647
    isolation_level: int = 0
    session_id: int = 0
    session_epoch: int = -1
    topics: Sequence[FetchTopic] = ()
    forgotten_topics_data: Sequence[ForgottenTopic] = ()
    rack_id: str = ""


class FetchResponseEpochEndOffset(WireStruct):
    epoch: int = -1
    end_offset: int = -1


class FetchResponseLeaderIdAndEpoch(WireStruct):
    leader_id: int = -1
    leader_epoch: int = -1


class SnapshotId(WireStruct):
    end_offset: int = -1
    epoch: int = -1


class FetchResponseAbortedTransaction(WireStruct):
    producer_id: int = 0
    first_offset: int = 0


class FetchResponsePartitionData(WireStruct):
    partition_index: int = 0
    error_code: int = 0
    high_watermark: int = 0
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging_epoch: FetchResponseEpochEndOffset | None = None
    current_leader: FetchResponseLeaderIdAndEpoch | None = None
    snapshot_id: SnapshotId | None = None
    aborted_transactions: Sequence[FetchResponseAbortedTransaction] | None = None
    preferred_read_replica: int = -1
    records: Sequence[bytes | bytearray | memoryview] | None = None


class FetchableTopicResponse(WireStruct):
    topic: str = ""
    topic_id: UUID | None = None
    partitions: Sequence[FetchResponsePartitionData] = ()


class FetchResponseNodeEndpoint(WireStruct):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None


class FetchResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    session_id: int = 0
    responses: Sequence[FetchableTopicResponse] = ()
    node_endpoints: Sequence[FetchResponseNodeEndpoint] = ()
