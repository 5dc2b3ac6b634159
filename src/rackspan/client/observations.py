"""Requests that observe a record's partition: the ISR in a broker's metadata, and the log ends of replicas.

See acks/verification.py for what a log end proves. Nothing is judged here.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final
from uuid import UUID

from rackspan.acks.isr_samples import BEYOND_END, LogEnd, LogRead, Sample, SampledPartition
from rackspan.acks.min_insync_racks import RackBits
from rackspan.client.connection import REQUEST_SECONDS, BrokerConnection
from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.fetch import (
    FetchPartition,
    FetchRequestData,
    FetchResponseData,
    FetchResponsePartitionData,
    FetchTopic,
)
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

DIVERGING_EPOCH_SINCE: Final = 12
"""The version of Fetch that reads a log end (KIP-595, Kafka 2.7)."""

_IDS_SINCE: Final = 13

_DESCRIBED: Final = (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)


async def read_log_ends(
    connection: BrokerConnection, reads: Iterable[LogRead], seconds: float
) -> tuple[dict[LogRead, LogEnd | None], dict[LogRead, int]]:
    """The log ends of one broker, and the error code of each read that it refused.

    Without a topic id, and before Fetch 13, a topic is read by its name: the log of an earlier topic of that name counts.
    Errors: OSError, RackspanError.
    """
    ordered = sorted(reads, key=lambda read: (read.partition, read.leader_epoch))
    by_id = all(read.topic_id is not None for read in ordered)
    version = connection.version(ApiKey.FETCH) if by_id else min(connection.version(ApiKey.FETCH), _IDS_SINCE - 1)
    if version < DIVERGING_EPOCH_SINCE:
        raise ClusterRequestFailed(
            f"the broker offers Fetch up to version {version}, and logs are read from {DIVERGING_EPOCH_SINCE} on (Kafka 2.7)"
        )
    response: FetchResponseData = await connection.call(ApiKey.FETCH, _request(ordered), version, seconds)
    if response.error_code != 0:
        raise ClusterRequestFailed(f"Fetch: error {response.error_code}")
    ends: dict[LogRead, LogEnd | None] = {}
    errors: dict[LogRead, int] = {}
    of = {(_topic(version, read.partition[0], read.topic_id), read.partition[1]): read for read in ordered}
    for topic in response.responses:
        for data in topic.partitions:
            read = of.get((_topic(version, topic.topic, topic.topic_id), data.partition_index))
            if read is None:
                continue
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                ends[read] = None
            elif data.error_code != 0:
                errors[read] = data.error_code
            elif (end := _log_end(data, is_by_id=version >= _IDS_SINCE)) is not None:
                ends[read] = end
    return ends, errors


def _topic(version: int, name: str, topic_id: UUID | None) -> str | UUID | None:
    return name if version < _IDS_SINCE else topic_id


def _log_end(data: FetchResponsePartitionData, *, is_by_id: bool) -> LogEnd | None:
    diverging = data.diverging_epoch
    if diverging is None or diverging.end_offset < 0:
        return None
    return LogEnd(diverging.epoch, diverging.end_offset, data.log_start_offset, is_by_id)


def _request(reads: Iterable[LogRead]) -> FetchRequestData:
    """No wait, no records, no fetch session; the offset is beyond every log."""
    topics = [
        FetchTopic(
            topic=name,
            topic_id=topic_id,
            partitions=[
                FetchPartition(
                    partition=read.partition[1], fetch_offset=BEYOND_END, last_fetched_epoch=read.leader_epoch
                )
                for read in of_topic
            ],
        )
        for (name, topic_id), of_topic in groupby(reads, key=lambda read: (read.partition[0], read.topic_id))
    ]
    return FetchRequestData(max_wait=0, min_bytes=0, max_bytes=0, topics=topics)


async def read_metadata(
    connection: BrokerConnection, topics: Iterable[str], seconds: float = REQUEST_SECONDS
) -> MetadataResponseData:
    """A broker's metadata of these topics, none of which is created. Errors: OSError, RackspanError."""
    request = MetadataRequestData(
        topics=[MetadataRequestTopic(name=topic) for topic in sorted(topics)], allow_auto_topic_creation=False
    )
    metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request, seconds=seconds)
    return metadata


def registered_brokers(metadata: MetadataResponseData) -> list[Broker]:
    """The brokers of a broker's metadata, with the racks that are registered there."""
    return [
        Broker(BrokerId(broker.node_id), None if broker.rack is None else RackId(broker.rack))
        for broker in metadata.brokers
    ]


def sample_of(
    source: int, requested_at: float, topics: frozenset[str], metadata: MetadataResponseData, racks: RackBits
) -> Sample:
    """A broker's metadata as a sample; `racks` are those of the brokers."""
    partitions = {
        (topic.name or "", partition.partition_index): SampledPartition(
            partition.leader_id,
            partition.leader_epoch,
            tuple(map(BrokerId, partition.isr_nodes)),
            len(partition.replica_nodes) or None,
        )
        for topic in metadata.topics
        if topic.error_code == ErrorCode.NONE
        for partition in topic.partitions
    }
    topic_ids = {topic.name: topic.topic_id for topic in metadata.topics if topic.name and topic.topic_id is not None}
    undescribed = frozenset(topic.name or "" for topic in metadata.topics if topic.error_code not in _DESCRIBED)
    return Sample(source, requested_at, racks, topics, partitions, topic_ids, undescribed)
